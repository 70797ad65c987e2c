"""The session reducer of 1.0.0: a flat state, several clients, directories, what waits, decisions by scope."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session import actions as make
from ahpkit.protocol.session.enablement import effective
from ahpkit.protocol.session.reducer import session_reducer
from ahpkit.protocol.session.state import CustomizationEnablement
from support import requirement

IN_PROGRESS, INPUT_NEEDED, READ, FUTURE = 8, 24, 32, 1 << 31


def session(**more: Any) -> JsonObject:
    basics: JsonObject = {
        "provider": "p",
        "title": "",
        "status": 1,
        "lifecycle": "ready",
        "activeClients": [],
        "chats": [],
    }
    return {**basics, **more}


def reduced(state: JsonObject, *actions: Any) -> JsonObject:
    for action in actions:
        state = session_reducer(state, action)
    return state


def unchanged(state: JsonObject, action: Any) -> bool:
    return session_reducer(state, action) is state


def test_a_session_that_could_not_be_made_says_so() -> None:
    error: Any = {"errorType": "e", "message": "m"}
    after = reduced(session(lifecycle="creating"), make.session_creation_failed(error=error))
    assert (after["lifecycle"], after["creationError"]) == ("failed", error)


@requirement("gen:active-clients:upsert")
def test_a_client_replaces_its_own_entry_only() -> None:
    a: Any = {"clientId": "a", "tools": []}
    b: Any = {"clientId": "b", "tools": [{"name": "x"}]}
    both = reduced(session(), *(make.session_active_client_set(active_client=client) for client in (a, b)))
    assert both["activeClients"] == [a, b]
    newer: Any = {"clientId": "a", "tools": [{"name": "y"}]}
    assert reduced(both, make.session_active_client_set(active_client=newer))["activeClients"] == [newer, b]
    assert reduced(both, make.session_active_client_removed(client_id="a"))["activeClients"] == [b]
    assert unchanged(both, make.session_active_client_removed(client_id="z"))


@requirement("gen:workdir:set", "gen:workdir:removed")
def test_directories_are_added_and_removed_once() -> None:
    one = reduced(session(), make.session_working_directory_set(directory="a"))
    assert one["workingDirectories"] == ["a"]
    assert unchanged(one, make.session_working_directory_set(directory="a"))
    assert reduced(one, make.session_working_directory_removed(directory="a"))["workingDirectories"] == []
    assert unchanged(one, make.session_working_directory_removed(directory="b"))
    assert unchanged(session(), make.session_working_directory_removed(directory="b")) is True


@requirement("gen:workdir:replaced")
@pytest.mark.parametrize(
    ("old", "new", "after"),
    [("B", "X", ["A", "X", "C"]), ("B", "C", ["A", "C"]), ("C", "A", ["A", "B"]), ("A", "C", ["C", "B"])],
)
def test_a_replacement_stands_once(old: str, new: str, after: list[str]) -> None:
    state = session(workingDirectories=["A", "B", "C"])
    action = make.session_working_directory_replaced(directory=old, replacement=new)
    assert reduced(state, action)["workingDirectories"] == after


@requirement("gen:workdir:replaced")
def test_what_is_not_there_cannot_be_replaced() -> None:
    state = session(workingDirectories=["A"])
    assert unchanged(state, make.session_working_directory_replaced(directory="Z", replacement="A"))


def waits(kind: str, id: str = "1", **more: Any) -> Any:
    return make.session_input_needed_set(request=_request(kind, id, **more))


def _request(kind: str, id: str, **more: Any) -> Any:
    return {"id": id, "chat": "ahp-chat:/c", "kind": kind, **more}


@requirement("gen:input-needed:set-upsert", "gen:input-needed:removed")
def test_what_waits_is_kept_by_id() -> None:
    one = reduced(session(), waits("chatInput"), waits("chatInput", "2"), waits("toolConfirmation"))
    assert [request["kind"] for request in one["inputNeeded"]] == ["toolConfirmation", "chatInput"]
    assert unchanged(one, make.session_input_needed_removed(id="3"))
    none = reduced(one, *(make.session_input_needed_removed(id=id) for id in "12"))
    assert "inputNeeded" not in none


@requirement("gen:input-needed:raises-status", "gen:input-needed:cleared-status", "gen:forward:status-bits")
@pytest.mark.parametrize("kind", ["chatInput", "toolConfirmation", "toolAuthentication", "future"])
def test_what_waits_for_a_person_shows_in_the_status(kind: str) -> None:
    waiting = reduced(session(status=1 | READ | FUTURE), waits(kind))
    assert waiting["status"] == INPUT_NEEDED | READ | FUTURE
    after = reduced(waiting, make.session_input_needed_removed(id="1"))
    assert after["status"] == IN_PROGRESS | READ | FUTURE


@requirement("gen:input-needed:execution-does-not-raise")
def test_a_client_that_runs_a_tool_does_not_wait_for_a_person() -> None:
    running = reduced(session(status=IN_PROGRESS), waits("toolClientExecution"))
    assert running["status"] == IN_PROGRESS
    asked = reduced(running, waits("chatInput", "2"))
    assert asked["status"] == INPUT_NEEDED
    assert reduced(asked, make.session_input_needed_removed(id="2"))["status"] == IN_PROGRESS


@requirement("gen:chat:reordered-permutation")
def test_chats_are_reordered_by_a_complete_list_only() -> None:
    state = session(chats=[{"resource": "a"}, {"resource": "b"}])
    after = reduced(state, make.session_chats_reordered(chats=["b", "a"]))
    assert [chat["resource"] for chat in after["chats"]] == ["b", "a"]
    for wrong in (["b"], ["b", "b"], ["b", "z"], ["a", "b", "a"]):
        assert unchanged(state, make.session_chats_reordered(chats=wrong))


def test_a_chat_that_is_gone_is_nobodys_default() -> None:
    state = session(chats=[{"resource": "a"}], defaultChat="a")
    assert "defaultChat" not in reduced(state, make.session_chat_removed(chat="a"))


# Decisions

SESSION_OFF: CustomizationEnablement = {"kind": "session", "enabled": False}
GLOBAL_ON: CustomizationEnablement = {"kind": "global", "enabled": True}


def customized() -> JsonObject:
    server = {"type": "mcpServer", "id": "m", "uri": "u", "name": "M", "state": {"kind": "ready"}, "channel": "mcp://m"}
    skill = {"type": "skill", "id": "s", "uri": "u", "name": "S"}
    plugin = {"type": "plugin", "id": "p", "uri": "u", "name": "P", "children": [skill, server]}
    directory = {"type": "directory", "id": "d", "uri": "u", "name": "D", "enabled": True, "contents": "skill"}
    return session(customizations=[plugin, directory])


def toggled(state: JsonObject, id: str, *decisions: CustomizationEnablement) -> JsonObject:
    return reduced(state, make.session_customization_toggled(id=id, enablement=list(decisions)))


def entry(state: JsonObject, id: str) -> JsonObject:
    entries = [*state["customizations"], *state["customizations"][0]["children"]]
    return next(each for each in entries if each["id"] == id)


@requirement("gen:enablement:toggle-replaces", "gen:enablement:effective")
@pytest.mark.parametrize("id", ["p", "m"])
def test_decisions_about_a_plugin_or_server_are_replaced(id: str) -> None:
    off = toggled(customized(), id, SESSION_OFF, GLOBAL_ON)
    assert entry(off, id)["enablement"] == [SESSION_OFF, GLOBAL_ON]
    assert (found := effective(off, id)) is not None
    assert not found.enabled
    on = toggled(off, id, GLOBAL_ON)
    assert (found := effective(on, id)) is not None
    assert found.enabled
    assert "enablement" not in entry(toggled(on, id), id)


@requirement("gen:enablement:toggle-leaf")
@pytest.mark.parametrize("id", ["d", "s"])
def test_others_keep_the_first_decision_only(id: str) -> None:
    off = toggled(customized(), id, SESSION_OFF, GLOBAL_ON)
    assert entry(off, id)["enabled"] is False
    assert "enablement" not in entry(off, id)
    assert entry(toggled(off, id), id)["enabled"] is True


@requirement("gen:enablement:toggle-malformed")
def test_a_toggle_without_decisions_changes_nothing() -> None:
    assert unchanged(customized(), {"type": "session/customizationToggled", "id": "p", "enabled": False}) is True


def test_a_child_of_a_disabled_plugin_is_not_in_force() -> None:
    found = effective(toggled(customized(), "p", SESSION_OFF), "s")
    assert found is not None
    assert not found.enabled


# MCP servers


@requirement("gen:mcp:start-requested")
def test_a_server_that_shall_start_or_stop_has_no_channel_any_more() -> None:
    for action, kind in (
        (make.session_mcp_server_start_requested(id="m"), "starting"),
        (make.session_mcp_server_stop_requested(id="m"), "stopped"),
    ):
        server = entry(reduced(customized(), action), "m")
        assert server["state"] == {"kind": kind}
        assert "channel" not in server
    assert unchanged(customized(), make.session_mcp_server_start_requested(id="s")) is True
    assert unchanged(session(), make.session_mcp_server_stop_requested(id="m")) is True


@requirement("gen:mcp:background")
def test_messages_wait_no_longer_for_a_server_in_the_background() -> None:
    state: Any = {"kind": "starting", "blocking": True}
    blocking = reduced(customized(), make.session_mcp_server_state_changed(id="m", state=state))
    after = reduced(blocking, make.session_mcp_server_background_requested(id="m"))
    assert entry(after, "m")["state"] == {"kind": "starting", "blocking": False}
    assert unchanged(after, make.session_mcp_server_background_requested(id="m"))
    assert unchanged(customized(), make.session_mcp_server_background_requested(id="m")) is True
