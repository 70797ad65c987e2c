"""What clients may do to a chat."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.host.limits import MAX_QUEUED_MESSAGES
from ahpkit.protocol.common.state import JsonObject
from support import requirement
from support.policy_cases import CHAT, busy_chat, chat, check, message, session, tool_call

MINE: JsonObject = {"contributor": {"kind": "client", "clientId": "me"}}
OPTIONS = [{"id": "yes", "label": "Yes", "kind": "approve"}, {"id": "no", "label": "No", "kind": "deny"}]


def start(state: JsonObject, **fields: Any) -> str | None:
    fields = {"turnId": "t2", "message": message(), **fields}
    return check(CHAT, state, "chat/turnStarted", **fields)


# Turns


def test_a_turn_starts_in_an_idle_chat() -> None:
    assert start(chat()) is None


@requirement("core:chat:reject-second-turn")
def test_a_second_turn_is_refused_while_one_runs() -> None:
    assert start(busy_chat(), turnId="t3") == (
        "turn 't2' is still running; queue the message, or cancel the turn first"
    )


@requirement("gen:chat:read-only")
@pytest.mark.parametrize("interactivity", ["read-only", "hidden"])
def test_chats_that_are_not_for_writing_take_no_messages(interactivity: str) -> None:
    state = chat(interactivity=interactivity)
    assert start(state) == f"this chat is {interactivity}"
    assert queue(state) == f"this chat is {interactivity}"
    assert check(CHAT, state, "chat/truncated") == f"this chat is {interactivity}"


@pytest.mark.parametrize(
    ("lifecycle", "reason"),
    [
        ("creating", None),
        ("creationFailed", "the session could not be created"),
        ("ready", None),
    ],
)
def test_only_a_session_that_failed_takes_no_messages(lifecycle: str, reason: str | None) -> None:
    assert start(chat(), session=session(lifecycle=lifecycle)) == reason
    assert queue(chat(), session=session(lifecycle=lifecycle)) == reason


def test_turn_ids_are_not_used_again() -> None:
    assert start(chat(), turnId="t1") == "there is already a turn with id 't1'"
    assert start(chat(), turnId="") == "a turn needs an id"


@pytest.mark.parametrize("kind", ["agent", "tool", "systemNotification"])
def test_clients_send_messages_of_users_only(kind: str) -> None:
    assert start(chat(), message=message(kind)) == f"a client sends messages of kind user, not {kind}"
    assert queue(chat(), message=message(kind)) == f"a client sends messages of kind user, not {kind}"


def test_a_turn_can_be_started_from_a_message_that_is_queued() -> None:
    state = chat(queuedMessages=[{"id": "q", "message": message()}])
    assert start(state, queuedMessageId="q") is None
    assert start(state, queuedMessageId="x") == "there is no queued message 'x'"


def cancel(state: JsonObject, turn_id: str) -> str | None:
    return check(CHAT, state, "chat/turnCancelled", turnId=turn_id)


@requirement("core:chat:reject-cancel-without-turn")
def test_without_a_running_turn_there_is_nothing_to_cancel() -> None:
    assert cancel(chat(), "t1") == "no turn is running"


def test_only_the_running_turn_can_be_cancelled() -> None:
    assert cancel(busy_chat(), "t1") == "turn 't1' is not the one that is running"
    assert cancel(busy_chat(), "t2") is None


def test_history_is_cut_at_a_finished_turn_or_completely() -> None:
    assert check(CHAT, chat(), "chat/truncated", turnId="t1") is None
    assert check(CHAT, busy_chat(), "chat/truncated") is None
    assert check(CHAT, busy_chat(), "chat/truncated", turnId="t2") == "there is no finished turn 't2'"


# Pending messages


def queue(state: JsonObject, **fields: Any) -> str | None:
    fields = {"kind": "queued", "id": "q", "message": message(), **fields}
    return check(CHAT, state, "chat/pendingMessageSet", **fields)


def test_messages_are_queued_and_steer_at_any_time() -> None:
    assert queue(busy_chat()) is None
    assert queue(chat(), kind="steering") is None
    assert queue(chat(), id="") == "a pending message needs an id"


def test_a_full_queue_takes_changes_but_no_new_message() -> None:
    full = chat(queuedMessages=[{"id": str(n), "message": message()} for n in range(MAX_QUEUED_MESSAGES)])
    assert queue(full, id="0") is None
    assert (
        queue(full, id="new")
        == f"{MAX_QUEUED_MESSAGES} messages are queued, which is the limit of a chat; wait, or remove one first"
    )
    assert queue(full, id="new", kind="steering") is None


@requirement("core:chat:reject-unknown-pending-message")
@pytest.mark.parametrize("kind", ["queued", "steering"])
def test_a_pending_message_that_is_not_there_cannot_be_removed(kind: str) -> None:
    def remove(state: JsonObject, id: str) -> str | None:
        return check(CHAT, state, "chat/pendingMessageRemoved", kind=kind, id=id)

    there = {"id": "q", "message": message()}
    state = chat(queuedMessages=[there]) if kind == "queued" else chat(steeringMessage=there)
    assert remove(state, "q") is None
    assert remove(state, "x") == f"there is no {kind} message 'x'"
    assert remove(chat(), "q") == f"there is no {kind} message 'q'"


def test_the_queue_is_reordered_also_with_ids_that_are_gone() -> None:
    assert check(CHAT, chat(), "chat/queuedMessagesReordered", order=["gone"]) is None


# Decisions about tool calls


def confirm(state: JsonObject, *, approved: bool = True, **fields: Any) -> str | None:
    decision: JsonObject = {"confirmed": "user-action"} if approved else {"reason": "denied"}
    return check(
        CHAT, state, "chat/toolCallConfirmed", turnId="t2", toolCallId="c1", approved=approved, **decision, **fields
    )


def test_a_pending_call_is_approved_or_denied_by_any_client() -> None:
    waiting = busy_chat(tool_call("pending-confirmation"))
    assert confirm(waiting) is None
    assert confirm(waiting, approved=False) is None


@requirement("core:chat:reject-confirm-not-pending")
@pytest.mark.parametrize("status", ["streaming", "running", "pending-result-confirmation", "completed", "cancelled"])
def test_a_call_that_is_not_pending_cannot_be_confirmed(status: str) -> None:
    assert confirm(busy_chat(tool_call(status))) == f"tool call 'c1' is {status}, not pending-confirmation"


def test_the_second_of_two_answers_is_told_that_it_was_too_late() -> None:
    answered = busy_chat(tool_call("running", confirmed="user-action"))
    assert confirm(answered, approved=False) == "tool call 'c1' is running, not pending-confirmation"


def test_a_call_must_be_in_the_running_turn() -> None:
    assert confirm(chat()) == "no turn is running"
    assert confirm(busy_chat()) == "the running turn has no tool call 'c1'"
    other_turn = check(
        CHAT, busy_chat(tool_call("pending-confirmation")), "chat/toolCallConfirmed", turnId="t1", toolCallId="c1"
    )
    assert other_turn == "turn 't1' is not the one that is running"


def test_a_client_may_deny_a_call_of_a_tool_it_does_not_know_while_the_call_is_pending() -> None:
    assert confirm(busy_chat(tool_call("pending-confirmation", **MINE)), approved=False) is None


def test_only_an_offered_option_can_be_selected() -> None:
    waiting = busy_chat(tool_call("pending-confirmation", options=OPTIONS))
    assert confirm(waiting, selectedOptionId="yes") is None
    assert confirm(waiting, selectedOptionId="no", approved=False) is None
    assert confirm(waiting, selectedOptionId="x") == "'x' is not one of the options offered for this tool call"


def test_the_option_must_mean_what_the_decision_says() -> None:
    waiting = busy_chat(tool_call("pending-confirmation", options=OPTIONS))
    assert confirm(waiting, selectedOptionId="no") == "option 'no' means deny, which contradicts `approved`"


def test_only_editable_input_can_be_edited() -> None:
    editable = tool_call("pending-confirmation", editable=True, toolInput="{}")
    assert confirm(busy_chat(editable), editedToolInput="[]") is None
    assert confirm(busy_chat(tool_call("pending-confirmation")), editedToolInput="{}") == (
        "the input of this tool call cannot be edited"
    )


@requirement("gen:tool:input-ref-edited")
@pytest.mark.parametrize("shown", [{}, {"toolInput": {"uri": "x:/input"}}], ids=["none", "reference"])
def test_an_input_that_no_client_sees_as_text_cannot_be_edited(shown: JsonObject) -> None:
    waiting = busy_chat(tool_call("pending-confirmation", editable=True, **shown))
    assert confirm(waiting) is None
    assert confirm(waiting, editedToolInput="{}") == (
        "the input of this tool call is missing or a reference, so it cannot be edited"
    )


def test_a_result_is_confirmed_only_while_it_waits_for_that() -> None:
    def confirm_result(status: str) -> str | None:
        state = busy_chat(tool_call(status))
        return check(CHAT, state, "chat/toolCallResultConfirmed", turnId="t2", toolCallId="c1", approved=True)

    assert confirm_result("pending-result-confirmation") is None
    assert confirm_result("completed") == "tool call 'c1' is completed, not pending-result-confirmation"


# Calls that clients run

PROGRESS: JsonObject = {"type": "chat/toolCallContentChanged", "content": []}
RESULT: JsonObject = {"type": "chat/toolCallComplete", "result": {"success": True, "pastTenseMessage": "done"}}


def report(state: JsonObject, action: JsonObject, *, by: str = "me") -> str | None:
    return check(CHAT, state, **action, by=by, turnId="t2", toolCallId="c1")


@requirement("client-tools:actions:progress-and-result-by-client")
@pytest.mark.parametrize("action", [PROGRESS, RESULT])
def test_the_client_that_runs_a_tool_reports_on_it(action: JsonObject) -> None:
    assert report(busy_chat(tool_call("running", **MINE)), action) is None


@requirement("core:chat:reject-foreign-tool-result")
@requirement("client-tools:call:foreign-complete-rejected")
@pytest.mark.parametrize("action", [PROGRESS, RESULT])
def test_another_clients_call_is_not_to_be_reported_on(action: JsonObject) -> None:
    reason = report(busy_chat(tool_call("running", **MINE)), action, by="other")
    assert reason == "tool call 'c1' belongs to another client"


@requirement("core:chat:contributor")
@pytest.mark.parametrize(
    "contributor", [{}, {"contributor": {"kind": "mcp", "customizationId": "m"}}, {"toolClientId": "me"}]
)
@pytest.mark.parametrize("action", [PROGRESS, RESULT])
def test_calls_that_no_client_contributed_are_the_hosts(action: JsonObject, contributor: JsonObject) -> None:
    assert report(busy_chat(tool_call("running", **contributor)), action) == "tool call 'c1' is run by the host"


@pytest.mark.parametrize("action", [PROGRESS, RESULT])
@pytest.mark.parametrize("status", ["streaming", "pending-confirmation", "completed", "cancelled"])
def test_a_result_cannot_go_around_the_approval_or_come_twice(action: JsonObject, status: str) -> None:
    assert report(busy_chat(tool_call(status, **MINE)), action) == f"tool call 'c1' is {status}, not running"
