"""The session reducer: life cycle, summary, chats, tools, configuration."""

from typing import Any

import pytest

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.dialects.v0_4.session.reducer import HANDLERS, STAMPED, session_reducer
from support import requirement


def new_session(**more: Any) -> JsonObject:
    summary = {
        "resource": "ahp-session:/s",
        "provider": "p",
        "title": "T",
        "status": 1,
        "createdAt": 1,
        "modifiedAt": 2,
    }
    return {"summary": summary, "lifecycle": "creating", "chats": [], **more}


def act(kind: str, **more: Any) -> JsonObject:
    return {"type": f"session/{kind}", **more}


def fold(state: JsonObject, *actions: JsonObject) -> JsonObject:
    for action in actions:
        state = session_reducer(state, action, now=9999)
    return state


def chat(name: str, **more: Any) -> JsonObject:
    return {"resource": f"ahp-chat:/{name}", "title": name, "status": 1, "modifiedAt": "then", **more}


def test_every_action_of_the_channel_has_a_handler() -> None:
    assert set(HANDLERS) == {spec.type for spec in ACTIONS.values() if spec.channel == "session"}
    assert set(HANDLERS) >= STAMPED


@requirement("session:action:ready")
def test_a_session_becomes_ready() -> None:
    assert fold(new_session(), act("ready")) == new_session(lifecycle="ready")


@requirement("session:action:creation-failed")
def test_creation_failed_keeps_the_error() -> None:
    error = {"errorType": "x", "message": "y"}
    failed = fold(new_session(), act("creationFailed", error=error))
    assert failed == new_session(lifecycle="creationFailed", creationError=error)


@requirement("session:action:chat-added")
def test_a_chat_is_appended_or_replaced_by_its_resource() -> None:
    state = fold(new_session(), act("chatAdded", summary=chat("a")), act("chatAdded", summary=chat("b")))
    state = fold(state, act("chatAdded", summary=chat("a", title="New")))
    assert state["chats"] == [chat("a", title="New"), chat("b")]


@requirement("session:action:chat-removed")
def test_a_removed_chat_is_gone_and_an_unknown_one_changes_nothing() -> None:
    state = new_session(chats=[chat("a"), chat("b")], defaultChat="ahp-chat:/b")
    assert fold(state, act("chatRemoved", chat="ahp-chat:/a"))["chats"] == [chat("b")]
    assert fold(state, act("chatRemoved", chat="ahp-chat:/z")) is state


def test_removing_the_default_chat_clears_the_hint() -> None:
    state = new_session(chats=[chat("a"), chat("b")], defaultChat="ahp-chat:/b")
    assert "defaultChat" not in fold(state, act("chatRemoved", chat="ahp-chat:/b"))
    assert fold(state, act("chatRemoved", chat="ahp-chat:/a"))["defaultChat"] == "ahp-chat:/b"


@requirement("session:action:chat-updated-partial", "session:action:chat-updated-identity-ignored")
def test_an_update_writes_only_what_it_names_and_never_the_resource() -> None:
    state = new_session(chats=[chat("a", activity="x"), chat("b")])
    changes = {"resource": "ahp-chat:/z", "status": 8}
    after = fold(state, act("chatUpdated", chat="ahp-chat:/a", changes=changes))
    assert after["chats"] == [chat("a", activity="x", status=8), chat("b")]


@requirement("session:action:chat-updated-unknown", "session:action:chat-updated-wait")
def test_an_update_of_an_unknown_chat_changes_nothing_until_it_is_added() -> None:
    state = new_session(chats=[chat("a")])
    update = act("chatUpdated", chat="ahp-chat:/z", changes={"title": "x"})
    assert fold(state, update) is state
    assert fold(state, act("chatAdded", summary=chat("z")), update)["chats"][1]["title"] == "x"


@requirement("session:action:default-chat-changed")
def test_the_default_chat_is_set_and_cleared() -> None:
    state = fold(new_session(), act("defaultChatChanged", defaultChat="ahp-chat:/a"))
    assert state["defaultChat"] == "ahp-chat:/a"
    assert fold(state, act("defaultChatChanged")) == new_session()


@requirement("session:action:title-changed")
def test_the_title_is_set() -> None:
    assert fold(new_session(), act("titleChanged", title="New"))["summary"]["title"] == "New"


@requirement("session:action:model-changed")
def test_the_model_is_set() -> None:
    model = {"id": "m", "config": {"level": "high"}}
    assert fold(new_session(), act("modelChanged", model=model))["summary"]["model"] == model


@requirement("session:action:agent-changed")
def test_the_agent_is_set_and_without_one_the_selection_is_absent() -> None:
    state = fold(new_session(), act("agentChanged", agent={"uri": "file:///a.md"}))
    assert state["summary"]["agent"] == {"uri": "file:///a.md"}
    assert "agent" not in fold(state, act("agentChanged"))["summary"]


@requirement("session:action:is-read-changed", "session:action:is-archived-changed")
@pytest.mark.parametrize(
    ("kind", "field", "bit"), [("isReadChanged", "isRead", 32), ("isArchivedChanged", "isArchived", 64)]
)
def test_a_flag_sets_and_clears_its_bit_and_leaves_the_others(kind: str, field: str, bit: int) -> None:
    others = 8 | (96 - bit) | 1 << 12
    state = new_session()
    state["summary"]["status"] = others
    on = fold(state, act(kind, **{field: True}))
    assert on["summary"]["status"] == others | bit
    assert fold(on, act(kind, **{field: True})) is on
    assert fold(on, act(kind, **{field: False}))["summary"]["status"] == others


@requirement("session:action:activity-changed")
def test_the_activity_is_set_and_cleared() -> None:
    state = fold(new_session(), act("activityChanged", activity="Thinking"))
    assert state["summary"]["activity"] == "Thinking"
    assert "activity" not in fold(state, act("activityChanged"))["summary"]


@requirement("session:action:changesets-changed")
def test_the_changeset_catalogue_is_replaced_and_cleared() -> None:
    state = fold(new_session(changesets=[{"label": "old"}]), act("changesetsChanged", changesets=[{"label": "new"}]))
    assert state["changesets"] == [{"label": "new"}]
    assert "changesets" not in fold(state, act("changesetsChanged"))


@requirement("session:action:server-tools-changed")
def test_the_tools_of_the_host_are_replaced() -> None:
    state = fold(new_session(serverTools=[{"name": "old"}]), act("serverToolsChanged", tools=[{"name": "new"}]))
    assert state["serverTools"] == [{"name": "new"}]


CLIENT = {
    "clientId": "c",
    "displayName": "Editor",
    "tools": [{"name": "open", "title": "Open", "description": "Opens", "inputSchema": {"type": "object"}}],
    "customizations": [{"type": "plugin", "id": "p"}],
}


@requirement(
    "session:action:active-client-claimed",
    "client-tools:register:reducer-stores-tools",
    "session:active-client:only-one",
)
def test_a_claim_stores_the_client_as_it_came_and_null_clears_it() -> None:
    state = fold(new_session(), act("activeClientChanged", activeClient={"clientId": "other", "tools": []}))
    state = fold(state, act("activeClientChanged", activeClient=CLIENT))
    assert state["activeClient"] == CLIENT
    assert fold(state, act("activeClientChanged", activeClient=None)) == new_session()


@requirement(
    "session:action:client-tools-changed",
    "client-tools:update:without-reclaiming",
    "client-tools:update:full-replacement",
)
def test_the_tools_of_the_active_client_are_replaced_and_nothing_else_of_it() -> None:
    state = new_session(activeClient=CLIENT)
    after = fold(state, act("activeClientToolsChanged", tools=[{"name": "new"}]))
    assert after["activeClient"] == {**CLIENT, "tools": [{"name": "new"}]}
    claimed = fold(after, act("activeClientChanged", activeClient={**CLIENT, "tools": []}))
    assert claimed["activeClient"]["tools"] == []
    assert fold(new_session(), act("activeClientToolsChanged", tools=[])) == new_session()


CONFIG: JsonObject = {"schema": {"type": "object", "properties": {}}, "values": {"a": 1, "b": 2}}


@requirement("session:action:config-merged", "session:action:config-replaced")
def test_config_values_are_merged_or_replaced() -> None:
    state = new_session(config=CONFIG)
    assert fold(state, act("configChanged", config={"b": 3}))["config"] == {**CONFIG, "values": {"a": 1, "b": 3}}
    replaced = fold(state, act("configChanged", config={"b": 3}, replace=True))
    assert replaced["config"] == {**CONFIG, "values": {"b": 3}}


@requirement("session:action:meta-changed")
def test_meta_is_replaced_and_cleared() -> None:
    state = fold(new_session(_meta={"git": 1}), act("metaChanged", _meta={"other": 2}))
    assert state["_meta"] == {"other": 2}
    assert "_meta" not in fold(state, act("metaChanged"))


@requirement("core:reducer:time-formats")
def test_what_a_person_changed_is_stamped_with_the_given_milliseconds() -> None:
    state = new_session(config=CONFIG)
    for action in (
        act("titleChanged", title="x"),
        act("modelChanged", model={"id": "m"}),
        act("configChanged", config={}),
    ):
        assert session_reducer(state, action, now=1234)["summary"]["modifiedAt"] == 1234
    for action in (act("ready"), act("isReadChanged", isRead=True), act("chatAdded", summary=chat("a"))):
        assert session_reducer(state, action, now=1234)["summary"]["modifiedAt"] == 2


@requirement("core:chat:own-channel")
@pytest.mark.parametrize("kind", ["turnStarted", "toolCallStart", "toolCallComplete", "inputRequested"])
def test_turns_and_tool_calls_are_no_business_of_the_session(kind: str) -> None:
    state = new_session()
    assert fold(state, act(kind, turnId="t", toolCallId="tc", message={}, request={"id": "q"})) is state


@requirement("session:state:required-fields")
def test_no_action_removes_what_a_session_always_has() -> None:
    state = new_session()
    for kind in HANDLERS:
        assert {"summary", "lifecycle", "chats"} <= set(session_reducer(state, {"type": kind}, now=1))


def test_a_state_without_summary_cannot_be_stamped_and_stays() -> None:
    state: JsonObject = {"config": CONFIG, "chats": []}
    assert fold(state, act("configChanged", config={"a": 2})) is state
