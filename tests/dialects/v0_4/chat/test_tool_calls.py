"""The life cycle of a tool call, read from its tables."""

import itertools
from typing import Any

import pytest

from ahpkit.dialects.v0_4.chat.reducer import (
    ACTIONS,
    FIELDS,
    LIFE_CYCLE,
    TERMINAL,
    WAITING,
    advanced,
    skipped,
    started,
)
from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.protocol.rope import Rope
from support import requirement

OPTION = {"id": "once", "label": "Once", "kind": "approve"}
RESULT = {"success": True, "pastTenseMessage": "Ran"}
VALUES: JsonObject = {
    "partialInput": "{",
    "invocationMessage": "Run",
    "toolInput": "{}",
    "confirmationTitle": "Run?",
    "edits": {"items": []},
    "editable": True,
    "options": [OPTION],
    "confirmed": "user-action",
    "selectedOption": OPTION,
    **RESULT,
    "content": [],
    "structuredContent": {},
    "error": {"message": "no"},
    "reason": "denied",
    "reasonMessage": "No",
    "userSuggestion": {"text": "Ask"},
}
"""A value for every field a call may carry."""

EVENTS: dict[str, JsonObject] = {
    "delta": {"type": "chat/toolCallDelta", "content": "x"},
    "ready": {"type": "chat/toolCallReady", "invocationMessage": "Go"},
    "ready, confirmed": {"type": "chat/toolCallReady", "invocationMessage": "Go", "confirmed": "not-needed"},
    "approved": {"type": "chat/toolCallConfirmed", "approved": True, "confirmed": "user-action"},
    "denied": {"type": "chat/toolCallConfirmed", "approved": False, "reason": "denied"},
    "complete": {"type": "chat/toolCallComplete", "result": RESULT},
    "complete, to review": {"type": "chat/toolCallComplete", "result": RESULT, "requiresResultConfirmation": True},
    "result approved": {"type": "chat/toolCallResultConfirmed", "approved": True},
    "result denied": {"type": "chat/toolCallResultConfirmed", "approved": False},
    "content": {"type": "chat/toolCallContentChanged", "content": [{"type": "text", "text": "x"}]},
}
"""One action for every event but the end of the turn."""


def call_in(status: str, **more: Any) -> JsonObject:
    """A call in `status` that carries everything it may."""
    identity = {"toolCallId": "tc", "toolName": "sh", "displayName": "Shell", "future": 1}
    return {"status": status, **identity, **{field: VALUES[field] for field in FIELDS[status]}, **more}


def take(call: JsonObject, event: str) -> JsonObject:
    return skipped(call) if event == "turn ended" else advanced(call, EVENTS[event])


def test_the_tables_are_complete() -> None:
    events = {event for events in LIFE_CYCLE.values() for event in events}
    assert events == {*EVENTS, "turn ended"}
    assert {action["type"] for action in EVENTS.values()} == set(ACTIONS)
    assert set(FIELDS) == set(LIFE_CYCLE)
    assert {target for events in LIFE_CYCLE.values() for target in events.values()} <= set(LIFE_CYCLE)


@requirement("core:chat:tool-call-states")
def test_a_call_ends_completed_or_cancelled() -> None:
    assert {"completed", "cancelled"} == TERMINAL
    assert started({"toolCallId": "tc", "toolName": "sh", "displayName": "Shell"})["status"] == "streaming"
    assert {LIFE_CYCLE["streaming"][event] for event in ("ready", "ready, confirmed")} == {
        "pending-confirmation",
        "running",
    }
    reachable = {"streaming"}
    for _ in LIFE_CYCLE:
        reachable |= {target for status in reachable for target in LIFE_CYCLE[status].values()}
    assert reachable == set(LIFE_CYCLE)


@pytest.mark.parametrize(("status", "event"), list(itertools.product(LIFE_CYCLE, [*EVENTS, "turn ended"])))
def test_an_event_leads_where_the_table_says_and_nowhere_else(status: str, event: str) -> None:
    call = call_in(status)
    after = take(call, event)
    if (target := LIFE_CYCLE[status].get(event)) is None:
        assert after is call
        return
    known = {"status", "toolCallId", "toolName", "displayName", "future"}
    assert after["status"] == target
    assert set(after) - known <= FIELDS[target]
    assert after["future"] == 1
    assert call == call_in(status)


@requirement("core:chat:tool-result-confirmation")
def test_a_result_that_needs_approval_waits_for_the_decision() -> None:
    call = take(call_in("running"), "complete, to review")
    assert call["status"] == "pending-result-confirmation"
    assert call["status"] in WAITING
    assert take(call, "result approved")["status"] == "completed"
    denied = take(call, "result denied")
    assert (denied["status"], denied["reason"]) == ("cancelled", "result-denied")
    assert "success" not in denied


@requirement("core:chat:tool-reconfirmation")
def test_a_running_call_can_ask_again_and_nothing_of_the_first_approval_remains() -> None:
    call = take(call_in("running"), "ready")
    assert call["status"] == "pending-confirmation"
    assert (call["invocationMessage"], call.get("toolInput"), call.get("confirmed")) == ("Go", None, None)


@requirement("core:chat:turn-end-cancels-calls")
@pytest.mark.parametrize("status", sorted(set(LIFE_CYCLE) - TERMINAL))
def test_the_end_of_the_turn_cancels_an_open_call_as_skipped(status: str) -> None:
    after = skipped(call_in(status))
    assert (after["status"], after["reason"]) == ("cancelled", "skipped")


def test_a_call_without_an_invocation_message_has_an_empty_one_when_it_is_skipped() -> None:
    call = {"status": "streaming", "toolCallId": "tc", "toolName": "sh", "displayName": "Shell"}
    assert skipped(call)["invocationMessage"] == ""


def test_a_status_nobody_knows_is_left_alone() -> None:
    call: JsonObject = {"status": "future", "toolCallId": "tc"}
    assert all(take(call, event) is call for event in [*EVENTS, "turn ended"])


def test_partial_input_grows_in_a_rope_and_goes_when_the_input_is_complete() -> None:
    call = started({"toolCallId": "tc", "toolName": "sh", "displayName": "Shell"})
    for _ in range(3):
        call = take(call, "delta")
    assert isinstance(call["partialInput"], Rope)
    assert call["partialInput"] == "xxx"
    assert "partialInput" not in take(call, "ready")


def test_a_delta_changes_the_message_only_when_it_carries_one() -> None:
    call = call_in("streaming")
    assert take(call, "delta")["invocationMessage"] == "Run"
    assert advanced(call, {**EVENTS["delta"], "invocationMessage": "New"})["invocationMessage"] == "New"


@requirement("core:chat:contributor")
@pytest.mark.parametrize(
    "contributor",
    [{"kind": "client", "clientId": "c"}, {"kind": "mcp", "customizationId": "m"}],
    ids=lambda c: c["kind"],
)
def test_the_contributor_stays_with_the_call_and_the_older_field_is_not_taken(contributor: JsonObject) -> None:
    action = {"toolCallId": "tc", "toolName": "sh", "displayName": "Shell", "contributor": contributor}
    call = started({**action, "toolClientId": "c"})
    for event in ("ready", "approved", "complete, to review", "result approved"):
        call = take(call, event)
    assert call["contributor"] == contributor
    assert "toolClientId" not in call


@requirement("client-tools:state:same-life-cycle")
def test_a_client_tool_passes_through_the_same_states() -> None:
    path = ("delta", "ready", "approved", "content", "complete, to review", "result approved")

    def states(**more: Any) -> list[str]:
        call = started({"toolCallId": "tc", "toolName": "sh", "displayName": "Shell", **more})
        seen = [call["status"]]
        for event in path:
            call = take(call, event)
            seen.append(call["status"])
        return seen

    assert states(contributor={"kind": "client", "clientId": "c"}) == states()


@requirement("client-tools:call:content-is-replaced")
def test_content_takes_the_place_of_earlier_content() -> None:
    call = call_in("running", content=[{"type": "text", "text": "old"}, {"type": "text", "text": "more"}])
    assert take(call, "content")["content"] == [{"type": "text", "text": "x"}]


def test_a_result_leaves_nothing_of_the_content_it_does_not_repeat() -> None:
    assert "content" not in take(call_in("running"), "complete")


def test_edited_input_takes_the_place_of_the_input_even_when_empty() -> None:
    call = call_in("pending-confirmation")
    assert take(call, "approved")["toolInput"] == "{}"
    assert advanced(call, {**EVENTS["approved"], "editedToolInput": ""})["toolInput"] == ""


def test_the_selected_option_is_kept_as_it_was_offered() -> None:
    call = call_in("pending-confirmation")
    assert advanced(call, {**EVENTS["approved"], "selectedOptionId": "once"})["selectedOption"] == OPTION
    assert advanced(call, {**EVENTS["denied"], "selectedOptionId": "once"})["selectedOption"] == OPTION
    assert "selectedOption" not in advanced(call, {**EVENTS["approved"], "selectedOptionId": "other"})


def test_a_call_that_is_completed_before_it_was_approved_claims_no_approval() -> None:
    assert take(call_in("pending-confirmation"), "complete")["confirmed"] == "not-needed"


def test_meta_is_replaced_when_an_action_carries_one_and_kept_otherwise() -> None:
    call = call_in("running", _meta={"a": 1})
    assert take(call, "content")["_meta"] == {"a": 1}
    assert advanced(call, {**EVENTS["content"], "_meta": {"b": 2}})["_meta"] == {"b": 2}
