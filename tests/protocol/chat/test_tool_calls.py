"""Tool calls of 1.0.0: what a second ready keeps, who owns a call, and calls that wait for a token."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.chat import actions as make
from ahpkit.protocol.chat.tool_calls import FIELDS, LIFE_CYCLE, TERMINAL, WAITING, advanced, skipped, started
from ahpkit.protocol.common.state import JsonObject
from support import requirement

CALL: Any = {"turn_id": "t", "tool_call_id": "1"}
MCP: Any = {"kind": "mcp", "customizationId": "s"}
CLIENT: Any = {"kind": "client", "clientId": "c"}
AUTH: Any = {"reason": "required", "resource": {"resource": "https://x.test"}}
SHOWN: Any = {
    "confirmation_title": "Sure?",
    "risk_assessment": {"kind": "judge", "status": "loading"},
    "edits": {"items": []},
    "editable": True,
    "options": [{"id": "o", "label": "O", "kind": "approve"}],
}


def begun(**more: Any) -> JsonObject:
    return started(make.chat_tool_call_start(**CALL, tool_name="n", display_name="N", **more))


def ready(call: JsonObject, **more: Any) -> JsonObject:
    return advanced(call, make.chat_tool_call_ready(**CALL, invocation_message="m", **more))


def running(**more: Any) -> JsonObject:
    return ready(begun(**more), tool_input="in", confirmed="setting")


@requirement("gen:tool:ready-while-pending")
def test_a_second_ready_keeps_what_it_does_not_say() -> None:
    first = ready(begun(), tool_input="in", **SHOWN)
    second = ready(first)
    assert second == first
    verdict: Any = {"kind": "judge", "status": "complete", "reason": "ok", "safety": 0.9}
    assert ready(first, risk_assessment=verdict) == {**first, "riskAssessment": verdict}


def test_a_call_that_ran_is_asked_for_anew() -> None:
    again = ready(running())
    assert again["status"] == "pending-confirmation"
    assert again["toolInput"] == "in"
    assert again.keys().isdisjoint({"confirmed", "options", "content"})


@requirement("gen:tool:ready-confirmed-drops")
def test_a_confirmed_ready_drops_all_that_was_shown() -> None:
    after = ready(ready(begun(), tool_input="in", **SHOWN), confirmed="setting")
    assert after == running()
    shown = {"content": [{"type": "text", "text": "x"}], "selectedOption": SHOWN["options"][0]}
    assert ready({**running(), **shown}, confirmed="setting") == running()


@requirement("gen:tool:ready-finished")
@pytest.mark.parametrize("status", [*sorted(TERMINAL), "auth-required", "pending-result-confirmation"])
def test_a_ready_that_comes_too_late_changes_nothing(status: str) -> None:
    call = {**running(), "status": status}
    assert ready(call) is call


@requirement("gen:tool:ready-intention")
def test_an_intention_is_refined() -> None:
    call = begun(intention="look")
    assert ready(call)["intention"] == "look"
    assert ready(call, intention="look closer")["intention"] == "look closer"


@requirement("gen:tool:owner-fixed")
@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        (CLIENT, MCP, CLIENT),
        (CLIENT, {"kind": "client", "clientId": "other"}, CLIENT),
        (MCP, CLIENT, MCP),
        (None, CLIENT, None),
        (None, MCP, MCP),
        (MCP, {"kind": "mcp", "customizationId": "other"}, {"kind": "mcp", "customizationId": "other"}),
    ],
)
def test_who_runs_a_call_is_settled_at_its_start(before: Any, given: Any, after: Any) -> None:
    assert ready(begun(contributor=before), contributor=given).get("contributor") == after


@requirement("gen:tool:delta-without-content")
def test_a_delta_may_bring_words_only() -> None:
    call = advanced(begun(), make.chat_tool_call_delta(**CALL, invocation_message="soon"))
    assert "partialInput" not in call
    assert call["invocationMessage"] == "soon"


@requirement("gen:tool:input-ref-edited")
def test_only_text_is_replaced_by_an_edit() -> None:
    edit = make.chat_tool_call_approved(**CALL, confirmed="user-action", edited_tool_input="new")
    assert advanced(ready(begun(), tool_input="old"), edit)["toolInput"] == "new"
    reference: Any = {"uri": "ahp-content:/x"}
    assert advanced(ready(begun(), tool_input=reference), edit)["toolInput"] == reference


@requirement("gen:tool:auth-required", "gen:tool:auth-resolved")
def test_a_call_waits_for_a_token_and_goes_on_with_all_it_had() -> None:
    call = advanced(
        running(contributor=MCP), make.chat_tool_call_content_changed(**CALL, content=[{"type": "text", "text": "x"}])
    )
    waiting = advanced(call, make.chat_tool_call_auth_required(**CALL, auth=AUTH))
    assert waiting == {**call, "status": "auth-required", "auth": AUTH}
    assert advanced(waiting, make.chat_tool_call_auth_resolved(**CALL)) == call


@requirement("gen:tool:auth-required")
@pytest.mark.parametrize("call", [running(contributor=CLIENT), running(), ready(begun(contributor=MCP))])
def test_only_a_running_call_of_an_mcp_server_can_want_a_token(call: JsonObject) -> None:
    assert advanced(call, make.chat_tool_call_auth_required(**CALL, auth=AUTH)) is call


def complete(call: JsonObject, *, success: bool, **more: Any) -> JsonObject:
    result: Any = {"success": success, "pastTenseMessage": "p", **more}
    return advanced(call, make.chat_tool_call_complete(**CALL, result=result, requires_result_confirmation=True))


@requirement("gen:tool:auth-success-invalid", "gen:tool:auth-cancel")
def test_a_call_without_token_can_only_fail() -> None:
    waiting = advanced(running(contributor=MCP), make.chat_tool_call_auth_required(**CALL, auth=AUTH))
    waiting["content"] = [{"type": "text", "text": "x"}]
    assert complete(waiting, success=True) is waiting
    failed = complete(waiting, success=False)
    assert (failed["status"], failed["content"], "auth" in failed) == ("completed", waiting["content"], False)
    assert complete(waiting, success=False, content=[])["content"] == []


@requirement("gen:tool:content-not-carried")
def test_what_a_tool_showed_while_it_ran_is_not_its_result() -> None:
    call = advanced(running(), make.chat_tool_call_content_changed(**CALL, content=[{"type": "text", "text": "x"}]))
    done = advanced(call, make.chat_tool_call_complete(**CALL, result={"success": True, "pastTenseMessage": "p"}))
    assert "content" not in done


def test_every_status_has_its_fields_and_open_ones_end_with_the_turn() -> None:
    assert FIELDS.keys() == LIFE_CYCLE.keys()
    assert LIFE_CYCLE.keys() - TERMINAL > WAITING
    for status in LIFE_CYCLE.keys() - TERMINAL:
        assert skipped({**running(), "status": status})["status"] == "cancelled"
    unknown: JsonObject = {**running(), "status": "future"}
    assert skipped(unknown) is unknown
