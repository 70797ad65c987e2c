"""A person's decisions and answers as actions of the wire."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.client.answers import (
    Answer,
    Approve,
    Decline,
    Deny,
    answer_to,
    by_program,
    confirmed,
    decision_of,
    input_completed,
    reply_of,
    result_confirmed,
)
from ahpkit.protocol.chat.state import ChatInputRequest
from support import requirement
from support.oldest import check_action

KINDS = ["text", "number", "integer", "boolean", "single-select", "multi-select"]


def request() -> ChatInputRequest:
    questions: Any = [
        {"id": kind, "kind": kind, "message": "?", "options": [{"id": "a", "label": "A"}]} for kind in KINDS
    ]
    return {"id": "r", "questions": questions}


@pytest.mark.parametrize(
    ("kind", "value", "wire"),
    [
        ("text", "hello", {"kind": "text", "value": "hello"}),
        ("number", 1.5, {"kind": "number", "value": 1.5}),
        ("integer", 3, {"kind": "number", "value": 3}),
        ("boolean", True, {"kind": "boolean", "value": True}),
        ("single-select", "a", {"kind": "selected", "value": "a"}),
        ("multi-select", ["a"], {"kind": "selected-many", "value": ["a"]}),
    ],
)
def test_a_plain_value_gets_the_kind_its_question_wants(kind: str, value: Any, wire: Any):
    assert answer_to(request(), kind, value) == {"state": "submitted", "value": wire}
    assert answer_to(request(), kind, value, state="draft")["state"] == "draft"
    check_action(input_completed(request(), Answer({kind: value})))


def test_none_skips_a_question_and_the_wires_own_form_passes():
    own = {"state": "submitted", "value": {"kind": "selected", "value": "", "freeformValues": ["else"]}}

    assert answer_to(request(), "text", None) == {"state": "skipped"}
    assert answer_to(request(), "single-select", own) == own


def test_an_answer_to_a_question_nobody_asked_is_an_error_that_names_it():
    with pytest.raises(LookupError, match="'nonsense'"):
        answer_to(request(), "nonsense", 1)


def test_declining_has_no_answers():
    assert input_completed(request(), Decline("cancel")) == {
        "type": "chat/inputCompleted",
        "requestId": "r",
        "response": "cancel",
    }


@requirement("core:reducer:no-null-on-the-wire")
def test_decisions_leave_out_what_has_no_value():
    base = {"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "c"}

    assert confirmed("t", "c", Approve()) == {**base, "approved": True, "confirmed": "user-action"}
    assert confirmed("t", "c", Deny()) == {**base, "approved": False, "reason": "denied"}


def test_a_decision_of_a_program_does_not_claim_to_be_a_persons():
    assert confirmed("t", "c", Approve(automatic=True))["confirmed"] == "setting"
    marked = by_program(confirmed("t", "c", Deny(automatic=True)), {"_meta": {"agent": 1}})
    assert (marked["reason"], marked["_meta"]) == ("denied", {"agent": 1, "ahpkit/automatic": True})
    check_action(marked)


def test_decisions_carry_option_edit_and_reason():
    approval = confirmed("t", "c", Approve("always", "{}"))
    denial = confirmed("t", "c", Deny("never", "too risky"))

    assert (approval["selectedOptionId"], approval["editedToolInput"]) == ("always", "{}")
    assert (denial["selectedOptionId"], denial["reasonMessage"]) == ("never", "too risky")
    for action in (approval, denial, result_confirmed("t", "c", approved=False)):
        check_action(action)


def test_callbacks_may_return_plain_values():
    assert decision_of(True) == Approve()
    assert decision_of(False) == Deny()
    assert decision_of(None) is None
    assert decision_of(Deny(reason="x")) == Deny(reason="x")
    assert reply_of({"q": 1}) == Answer({"q": 1})
    assert reply_of(Decline()) == Decline()
    assert reply_of(None) is None
