"""Which customizations are in force, and who may invoke them."""

import itertools
from typing import Any

import pytest

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.enablement import EffectiveEnablement, PlacedCustomization, effective, find, walk
from support import requirement

ABSENT = object()
FLAGS = (True, False, ABSENT)


def entry(kind: str, entry_id: str, **more: Any) -> JsonObject:
    return {"type": kind, "id": entry_id, "uri": f"file:///{entry_id}", "name": entry_id, **more}


def given(**flags: Any) -> JsonObject:
    return {key: value for key, value in flags.items() if value is not ABSENT}


def rights(found: EffectiveEnablement | None) -> tuple[bool, bool, bool]:
    """Whether something is in force, and whether the user and the model may invoke it."""
    assert found is not None
    return found.enabled, found.user_invocable, found.model_invocable


@requirement(
    "enablement:precedence:both-must-be-enabled",
    "enablement:child:absent-means-enabled",
    "customizations:toggle:children-follow-container",
    "session:action:customization-toggled-children",
)
@pytest.mark.parametrize("kind", ["agent", "skill", "prompt", "rule", "hook", "mcpServer"])
@pytest.mark.parametrize(("container", "child"), list(itertools.product(FLAGS, FLAGS)))
def test_a_child_is_enabled_when_its_container_and_itself_are(kind: str, container: Any, child: Any) -> None:
    tree = [entry("plugin", "p", **given(enabled=container), children=[entry(kind, "c", **given(enabled=child))])]
    found = effective(tree, "c")
    assert found is not None
    assert found.enabled is (container is not False and child is not False)


@pytest.mark.parametrize("kind", ["plugin", "directory", "mcpServer"])
@pytest.mark.parametrize("flag", FLAGS)
def test_a_top_level_entry_answers_for_itself(kind: str, flag: Any) -> None:
    found = effective([entry(kind, "x", **given(enabled=flag))], "x")
    assert found is not None
    assert found.enabled is (flag is not False)


@requirement("enablement:invocation:default-allows-both", "enablement:invocation:flags-independent")
@pytest.mark.parametrize("kind", ["skill", "agent"])
@pytest.mark.parametrize(("user", "model"), list(itertools.product(FLAGS, FLAGS)))
def test_each_flag_forbids_its_own_side_only(kind: str, user: Any, model: Any) -> None:
    child = entry(kind, "c", **given(disableUserInvocation=user, disableModelInvocation=model))
    found = effective([entry("directory", "d", enabled=True, children=[child])], "c")
    assert rights(found) == (True, user is not True, model is not True)


@pytest.mark.parametrize(("container", "child"), [(False, True), (True, False), (False, False)])
def test_nobody_may_invoke_what_is_disabled(container: bool, child: bool) -> None:
    tree = [entry("plugin", "p", enabled=container, children=[entry("skill", "s", enabled=child)])]
    assert rights(effective(tree, "s")) == (False, False, False)


@requirement("enablement:fields:first-class")
def test_flags_are_fields_of_the_child_and_never_read_from_its_meta() -> None:
    meta = {"enabled": False, "disableUserInvocation": True, "disableModelInvocation": True}
    tree = [entry("plugin", "p", enabled=True, children=[entry("agent", "a", _meta=meta)])]
    assert rights(effective(tree, "a")) == (True, True, True)


@requirement("enablement:compat:additive")
def test_children_that_know_no_flag_are_in_force_as_before() -> None:
    child = entry("skill", "s")
    tree = [entry("plugin", "p", enabled=True, children=[child])]
    assert rights(effective(tree, "s")) == (True, True, True)
    assert "enabled" not in child


@requirement("customizations:children:filter-tolerates-absence")
@pytest.mark.parametrize("source", [None, [], {}, {"customizations": []}, {"customizations": [entry("plugin", "p")]}])
def test_a_session_without_list_or_children_has_nothing_to_find(source: Any) -> None:
    assert find(source, "c") is None
    assert effective(source, "c") is None
    assert [placed for placed in walk(source) if placed.container is not None] == []


def test_a_state_and_its_list_give_the_same_answer() -> None:
    tree = [entry("plugin", "p", enabled=False, children=[entry("rule", "r")]), entry("mcpServer", "m", enabled=True)]
    state: JsonObject = {"summary": {}, "customizations": tree}
    assert list(walk(state)) == list(walk(tree))
    assert effective(state, "r") == effective(tree, "r")


@requirement("customizations:children:filter-by-type")
def test_children_of_one_type_are_found_over_all_containers() -> None:
    tree = [
        entry("plugin", "p", children=[entry("agent", "a1"), entry("skill", "s")]),
        entry("directory", "d", children=[entry("agent", "a2")]),
    ]
    assert [placed.entry["id"] for placed in walk(tree) if placed.entry["type"] == "agent"] == ["a1", "a2"]


@requirement("enablement:surface:picker-knows-unselectable", "enablement:surface:palette-knows-user-invocable")
def test_a_picker_sees_every_agent_and_skill_and_which_of_them_the_user_may_choose() -> None:
    children = [
        entry("agent", "open"),
        entry("agent", "model-only", disableUserInvocation=True),
        entry("skill", "off", enabled=False),
        entry("skill", "slash-only", disableModelInvocation=True),
    ]
    choices = {
        placed.entry["id"]: placed.effective.user_invocable
        for placed in walk([entry("plugin", "p", enabled=True, children=children)])
        if placed.container is not None
    }
    assert choices == {"open": True, "model-only": False, "off": False, "slash-only": True}


@requirement("customizations:children:parent-by-position")
def test_the_parent_of_a_child_is_the_container_it_is_in() -> None:
    tree = [
        entry("plugin", "p1", children=[entry("rule", "r1")]),
        entry("plugin", "p2", children=[entry("rule", "r2")]),
    ]
    placed = find(tree, "r2")
    assert placed is not None
    assert placed.container is tree[1]
    assert set(placed.entry) == {"type", "id", "uri", "name"}


def test_walking_gives_each_container_before_its_children() -> None:
    child, server = entry("rule", "r"), entry("mcpServer", "m")
    plugin = entry("plugin", "p", children=[child])
    assert list(walk([plugin, server])) == [
        PlacedCustomization(plugin, None),
        PlacedCustomization(child, plugin),
        PlacedCustomization(server, None),
    ]


def test_entries_of_unknown_types_are_walked_and_need_no_id() -> None:
    tree = [{"type": "future"}, entry("plugin", "p", children=[{"type": "future", "id": "x"}])]
    assert find(tree, "x") is not None
    assert len(list(walk(tree))) == 3
