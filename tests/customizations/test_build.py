from __future__ import annotations

from ahpkit.customizations.build import stable_id


def test_an_id_depends_on_every_part_and_on_nothing_else() -> None:
    assert stable_id("skill", "a", "b") == stable_id("skill", "a", "b")
    assert stable_id("skill", "a", "b").startswith("skill-")
    assert len({stable_id("skill", "a", "b"), stable_id("skill", "ab", ""), stable_id("agent", "a", "b")}) == 3


def test_any_path_makes_an_id() -> None:
    assert stable_id("skill", "\udcff").isascii()
