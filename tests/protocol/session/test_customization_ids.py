from __future__ import annotations

from ahpkit.protocol.session.customizations import is_host_id, is_top_level_id, stable_id


def test_an_id_depends_on_every_part_and_on_nothing_else() -> None:
    assert stable_id("skill", "a", "b") == stable_id("skill", "a", "b")
    assert stable_id("skill", "a", "b").startswith("skill-")
    assert len({stable_id("skill", "a", "b"), stable_id("skill", "ab", ""), stable_id("agent", "a", "b")}) == 3


def test_any_path_makes_an_id() -> None:
    assert stable_id("skill", "\udcff").isascii()


def test_ids_of_the_host_are_known_by_their_form() -> None:
    made = {kind: stable_id(kind, "x") for kind in ("plugin", "directory", "mcpServer", "skill", "agent", "hook")}
    assert [is_top_level_id(made[kind]) for kind in ("plugin", "directory", "mcpServer")] == [True] * 3
    assert not any(is_top_level_id(made[kind]) for kind in ("skill", "agent", "hook"))
    assert all(is_host_id(id) for id in made.values())
    assert not any(is_host_id(id) for id in ("mine", "plugin-mine", made["plugin"][:-1], made["plugin"] + "0"))
