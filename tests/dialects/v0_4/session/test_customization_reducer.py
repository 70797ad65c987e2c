"""The session reducer's customization arms: every target is found by its id."""

from typing import Any

import pytest

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.session.reducer import session_reducer
from ahpkit.protocol.session.enablement import find
from support import requirement


def entry(kind: str, entry_id: str, **more: Any) -> JsonObject:
    return {"type": kind, "id": entry_id, "uri": "file:///same", "name": "same", **more}


SERVER = entry(
    "mcpServer", "mcp", enabled=True, state={"kind": "ready"}, channel="mcp://x", mcpApp={"capabilities": {}}
)
CHILDREN = [
    entry("skill", "skill"),
    entry("agent", "agent", enabled=False, _meta={"x": 1}),
    entry("rule", "rule"),
    SERVER,
]
TREE = [
    entry("plugin", "plugin", enabled=True, children=CHILDREN),
    entry("directory", "directory", enabled=True, contents="hook", writable=True, children=[entry("hook", "hook")]),
    {**SERVER, "id": "top"},
]
STATE: JsonObject = {"summary": {}, "lifecycle": "ready", "chats": [], "customizations": TREE}


def act(kind: str, **more: Any) -> JsonObject:
    return {"type": f"session/{kind}", **more}


def toggle(entry_id: str, enabled: bool) -> JsonObject:
    return act("customizationToggled", id=entry_id, enabled=enabled)


def fold(state: JsonObject, *actions: JsonObject) -> JsonObject:
    for action in actions:
        state = session_reducer(state, action, now=1)
    return state


def tree_with(state: JsonObject, entry_id: str) -> JsonObject:
    placed = find(state, entry_id)
    assert placed is not None
    return placed.entry


def others(state: JsonObject, entry_id: str) -> list[JsonObject]:
    """Everything in the tree but that entry itself."""
    flat = [{**e, "children": None} for e in state["customizations"]]
    flat += [child for e in state["customizations"] for child in e.get("children", [])]
    return [e for e in flat if e["id"] != entry_id]


@requirement(
    "session:action:customization-toggled",
    "customizations:toggle:container-by-id",
    "enablement:toggle:container-ids-as-before",
    "enablement:toggle:child-by-id",
    "enablement:toggle:siblings-untouched",
    "customizations:identity:actions-address-by-id",
)
@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("entry_id", ["plugin", "directory", "top", "skill", "agent", "rule", "mcp", "hook"])
def test_a_toggle_sets_enabled_of_the_named_entry_and_of_nothing_else(entry_id: str, enabled: bool) -> None:
    after = fold(STATE, toggle(entry_id, enabled))
    assert tree_with(after, entry_id) == {**tree_with(STATE, entry_id), "enabled": enabled}
    assert others(after, entry_id) == others(STATE, entry_id)


@requirement("customizations:toggle:unknown-id-is-noop")
def test_a_toggle_of_an_unknown_id_returns_the_same_state() -> None:
    assert fold(STATE, toggle("nobody", False)) is STATE
    empty: JsonObject = {"summary": {}, "chats": []}
    assert fold(empty, toggle("plugin", False)) is empty


def test_a_toggle_to_what_is_already_set_returns_the_same_state() -> None:
    assert fold(STATE, toggle("agent", False)) is STATE
    assert fold(STATE, toggle("plugin", True)) is STATE


@requirement("enablement:precedence:child-flag-kept")
def test_a_container_that_goes_off_and_on_leaves_its_children_as_they_were() -> None:
    assert fold(STATE, toggle("plugin", False), toggle("plugin", True)) == STATE


@requirement("enablement:compat:additive")
def test_nothing_but_a_toggle_adds_a_flag_to_a_child() -> None:
    state = fold(STATE, act("customizationUpdated", customization=TREE[0]), act("customizationRemoved", id="hook"))
    assert "enabled" not in tree_with(state, "skill")


@requirement("customizations:identity:id-opaque")
@pytest.mark.parametrize("entry_id", ["with space", "a/b", "größe", "", "0"])
def test_any_string_is_an_id(entry_id: str) -> None:
    state = {**STATE, "customizations": [entry("plugin", "p", children=[entry("skill", entry_id)])]}
    assert tree_with(fold(state, toggle(entry_id, False)), entry_id)["enabled"] is False
    assert find(fold(state, act("customizationRemoved", id=entry_id)), entry_id) is None


@requirement("session:action:customizations-changed", "customizations:update:list-replaced")
def test_the_list_is_replaced_as_a_whole() -> None:
    assert fold(STATE, act("customizationsChanged", customizations=[TREE[2]]))["customizations"] == [TREE[2]]


@requirement("session:action:customization-updated-replaces", "customizations:update:known-id-replaces-entry")
def test_an_update_replaces_the_entry_with_the_same_id_without_merging() -> None:
    plain = entry("plugin", "plugin", enabled=False)
    assert fold(STATE, act("customizationUpdated", customization=plain))["customizations"] == [plain, *TREE[1:]]


@requirement(
    "session:action:customization-updated-appends",
    "customizations:update:unknown-id-appends",
    "customizations:update:no-child-update-action",
)
@pytest.mark.parametrize("entry_id", ["new", "skill"])
def test_an_update_with_an_id_that_is_not_at_top_level_appends(entry_id: str) -> None:
    added = entry("plugin", entry_id, enabled=True)
    assert fold(STATE, act("customizationUpdated", customization=added))["customizations"] == [*TREE, added]


@requirement("session:action:customization-removed", "customizations:remove:container-cascades")
def test_a_container_is_removed_with_its_children() -> None:
    assert fold(STATE, act("customizationRemoved", id="plugin"))["customizations"] == TREE[1:]


@requirement("session:action:customization-removed", "customizations:remove:child-alone")
def test_a_child_is_removed_alone() -> None:
    after = fold(STATE, act("customizationRemoved", id="agent"))
    assert others(after, "agent") == others(STATE, "agent")
    assert find(after, "agent") is None


@requirement("session:action:customization-removed-unknown", "customizations:remove:unknown-id-is-noop")
def test_a_removal_of_an_unknown_id_returns_the_same_state() -> None:
    assert fold(STATE, act("customizationRemoved", id="nobody")) is STATE
    empty: JsonObject = {"summary": {}, "chats": []}
    assert fold(empty, act("customizationRemoved", id="plugin")) is empty


@requirement("mcp:action:found-anywhere", "mcp:action:replaces-state", "mcp:action:keeps-other-fields")
@pytest.mark.parametrize("entry_id", ["top", "mcp"])
def test_an_mcp_state_is_replaced_wherever_the_server_is(entry_id: str) -> None:
    error = {"kind": "error", "error": {"errorType": "x", "message": "y"}}
    state = fold(STATE, act("mcpServerStateChanged", id=entry_id, state=error, channel="mcp://y"))
    after = fold(state, act("mcpServerStateChanged", id=entry_id, state={"kind": "starting"}, channel="mcp://z"))
    assert tree_with(after, entry_id) == {
        **tree_with(STATE, entry_id),
        "state": {"kind": "starting"},
        "channel": "mcp://z",
    }
    assert others(after, entry_id) == others(STATE, entry_id)


@requirement("mcp:action:replaces-channel")
def test_an_mcp_state_without_channel_removes_the_channel() -> None:
    after = fold(STATE, act("mcpServerStateChanged", id="top", state={"kind": "stopped"}))
    assert "channel" not in tree_with(after, "top")


@requirement("mcp:action:noop")
@pytest.mark.parametrize("entry_id", ["nobody", "plugin", "skill"])
def test_an_mcp_state_for_anything_else_returns_the_same_state(entry_id: str) -> None:
    assert fold(STATE, act("mcpServerStateChanged", id=entry_id, state={"kind": "ready"})) is STATE
