"""Answers to an agent's questions: the right request, the right kind, within limits, complete."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.common.state import JsonObject
from support import requirement
from support.policy_cases import CHAT, busy_chat, check

CHOICES = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}, {"id": "c", "label": "C"}]

QUESTIONS: dict[str, JsonObject] = {
    "text": {"kind": "text"},
    "number": {"kind": "number"},
    "integer": {"kind": "integer"},
    "boolean": {"kind": "boolean"},
    "single-select": {"kind": "single-select", "options": CHOICES},
    "multi-select": {"kind": "multi-select", "options": CHOICES},
}
VALUES: dict[str, JsonObject] = {
    "text": {"kind": "text", "value": "hello"},
    "number": {"kind": "number", "value": 1.5},
    "boolean": {"kind": "boolean", "value": False},
    "selected": {"kind": "selected", "value": "a"},
    "selected-many": {"kind": "selected-many", "value": ["a", "b"]},
}
RIGHT_KIND = {
    "text": "text",
    "number": "number",
    "boolean": "boolean",
    "single-select": "selected",
    "multi-select": "selected-many",
}


def asked(*questions: JsonObject, **answers: JsonObject) -> JsonObject:
    """A chat with an open request `r`."""
    request = {"id": "r", "questions": [{"id": "q", "message": "?", **q} for q in questions], "answers": answers}
    return busy_chat(inputRequests=[request])


def draft(question: JsonObject, value: JsonObject | None, *, state: str = "draft", **fields: Any) -> str | None:
    answer = {} if value is None else {"answer": {"state": state, "value": value}}
    fields = {"requestId": "r", "questionId": "q", **answer, **fields}
    return check(CHAT, asked(question), "chat/inputAnswerChanged", **fields)


def submit(question: JsonObject, value: JsonObject) -> str | None:
    """The same outcome whether an answer is submitted by itself or with the acceptance of the request."""
    alone = draft(question, value, state="submitted")
    assert alone == accept(asked(question), q={"state": "draft", "value": value})
    return alone


def accept(state: JsonObject, **answers: JsonObject) -> str | None:
    fields: JsonObject = {"answers": answers} if answers else {}
    return check(CHAT, state, "chat/inputCompleted", requestId="r", response="accept", **fields)


@requirement("core:chat:reject-unknown-input-request")
def test_a_request_that_is_not_open_cannot_be_answered() -> None:
    reason = "there is no open input request 'x'"
    assert draft(QUESTIONS["text"], VALUES["text"], requestId="x") == reason
    for response in ("accept", "decline", "cancel"):
        assert check(CHAT, asked(), "chat/inputCompleted", requestId="x", response=response) == reason


def test_a_question_that_was_not_asked_cannot_be_answered() -> None:
    reason = "the input request has no question 'x'"
    assert draft(QUESTIONS["text"], VALUES["text"], questionId="x") == reason
    assert accept(asked(QUESTIONS["text"]), x={"state": "submitted", "value": VALUES["text"]}) == reason


@requirement("core:chat:reject-wrong-answer-kind")
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("kind", RIGHT_KIND)
def test_only_a_value_of_the_questions_kind_is_an_answer(kind: str, value: str) -> None:
    reasons = {draft(QUESTIONS[kind], VALUES[value]), submit(QUESTIONS[kind], VALUES[value])}
    right = RIGHT_KIND[kind]
    assert reasons == {
        None if value == right else f"question 'q' is answered with a value of kind {right}, not {value}"
    }


def test_a_draft_can_be_taken_back_or_skipped() -> None:
    assert draft(QUESTIONS["text"], None) is None
    assert draft(QUESTIONS["text"], None, answer={"state": "skipped"}) is None


def test_an_answer_in_a_state_nobody_knows_is_refused() -> None:
    reason = "an answer is draft, submitted, skipped; not 'odd'"
    assert draft(QUESTIONS["text"], None, answer={"state": "odd"}) == reason
    assert accept(asked(QUESTIONS["text"]), q={"state": "odd"}) == reason


def test_a_value_of_a_kind_nobody_knows_is_refused() -> None:
    assert submit(QUESTIONS["text"], {"kind": "odd"}) == "question 'q' is answered with a value of kind text, not odd"


def test_a_draft_may_still_be_short_of_the_limits() -> None:
    question = {"kind": "text", "min": 10, "format": "email"}
    assert draft(question, {"kind": "text", "value": "a"}) is None
    assert submit(question, {"kind": "text", "value": "a"}) is not None


@pytest.mark.parametrize(
    ("question", "value", "problem"),
    [
        ({"kind": "text", "min": 3}, "ab", "must be at least 3 characters"),
        ({"kind": "text", "max": 3}, "abcd", "must be at most 3 characters"),
        ({"kind": "text", "min": 2, "max": 3}, "abc", None),
        ({"kind": "text", "format": "email"}, "nobody", "must be a valid email"),
        ({"kind": "text", "format": "email"}, "a@example.com", None),
        ({"kind": "text", "format": "uri"}, "not a uri", "must be a valid uri"),
        ({"kind": "text", "format": "uri"}, "https://example.com/", None),
        ({"kind": "text", "format": "date"}, "2024-02-30", "must be a valid date"),
        ({"kind": "text", "format": "date"}, "2024-02-29", None),
        ({"kind": "text", "format": "date-time"}, "yesterday", "must be a valid date-time"),
        ({"kind": "text", "format": "date-time"}, "2024-02-29T10:00:00Z", None),
        ({"kind": "text", "format": "haiku"}, "anything", None),
        ({"kind": "number", "min": 1}, 0.5, "must be at least 1"),
        ({"kind": "number", "max": 1}, 1.5, "must be at most 1"),
        ({"kind": "integer"}, 1.5, "must be a whole number, not 1.5"),
        ({"kind": "integer"}, 2.0, None),
        ({"kind": "integer", "max": 1}, 2, "must be at most 1"),
    ],
)
def test_limits_of_texts_and_numbers(question: JsonObject, value: object, problem: str | None) -> None:
    kind = "text" if question["kind"] == "text" else "number"
    expected = f"the answer to question 'q' {problem}" if problem else None
    assert submit(question, {"kind": kind, "value": value}) == expected


@pytest.mark.parametrize(
    ("more", "value", "problem"),
    [
        ({}, {"value": "b"}, None),
        ({}, {"value": "x"}, "picks 'x', which is not one of the options"),
        ({}, {"value": "", "freeformValues": ["x"]}, "must be picked from the options, free text is not allowed"),
        ({"allowFreeformInput": True}, {"value": "", "freeformValues": ["x"]}, None),
        ({"allowFreeformInput": True}, {"value": "x"}, None),
    ],
)
def test_limits_of_a_single_choice(more: JsonObject, value: JsonObject, problem: str | None) -> None:
    expected = f"the answer to question 'q' {problem}" if problem else None
    assert submit({**QUESTIONS["single-select"], **more}, {"kind": "selected", **value}) == expected


@pytest.mark.parametrize(
    ("more", "value", "problem"),
    [
        ({}, {"value": ["a", "c"]}, None),
        ({}, {"value": ["a", "x"]}, "picks 'x', which is not one of the options"),
        ({}, {"value": ["a", "a"]}, "picks option 'a' twice"),
        ({"min": 2}, {"value": ["a"]}, "must be at least 2 selections"),
        ({"max": 1}, {"value": ["a", "b"]}, "must be at most 1 selections"),
        (
            {"max": 1, "allowFreeformInput": True},
            {"value": ["a"], "freeformValues": ["x"]},
            "must be at most 1 selections",
        ),
        ({"min": 2, "allowFreeformInput": True}, {"value": ["a"], "freeformValues": ["x"]}, None),
        ({}, {"value": ["a"], "freeformValues": ["x"]}, "must be picked from the options, free text is not allowed"),
    ],
)
def test_limits_of_several_choices(more: JsonObject, value: JsonObject, problem: str | None) -> None:
    expected = f"the answer to question 'q' {problem}" if problem else None
    assert submit({**QUESTIONS["multi-select"], **more}, {"kind": "selected-many", **value}) == expected


@requirement("core:chat:reject-unanswered-required")
@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"state": "skipped"},
        {"state": "submitted", "value": {"kind": "text", "value": ""}},
    ],
)
def test_a_required_question_must_be_answered_to_accept(answer: JsonObject | None) -> None:
    state = asked({"kind": "text", "required": True})
    given = {"q": answer} if answer else {}
    assert accept(state, **given) == "question 'q' must be answered"


def test_answers_synced_before_count_when_the_request_is_accepted() -> None:
    answered = {"state": "submitted", "value": VALUES["text"]}
    assert accept(asked({"kind": "text", "required": True}, q=answered)) is None


def test_a_draft_is_no_answer_to_a_required_question() -> None:
    unfinished = {"state": "draft", "value": VALUES["text"]}
    assert accept(asked({"kind": "text", "required": True}, q=unfinished)) == "question 'q' must be answered"
    assert accept(asked({"kind": "text"}, q=unfinished)) is None


def test_the_last_answer_counts() -> None:
    state = asked({"kind": "text", "required": True}, q={"state": "submitted", "value": VALUES["text"]})
    assert accept(state, q={"state": "skipped"}) == "question 'q' must be answered"


def test_a_question_that_is_not_required_may_stay_open() -> None:
    assert accept(asked(QUESTIONS["text"])) is None


def test_false_and_zero_are_answers() -> None:
    no = {"state": "submitted", "value": {"kind": "boolean", "value": False}}
    zero = {"state": "submitted", "value": {"kind": "number", "value": 0}}
    assert accept(asked({"kind": "boolean", "required": True}), q=no) is None
    assert accept(asked({"kind": "integer", "required": True}), q=zero) is None


@pytest.mark.parametrize("response", ["decline", "cancel"])
def test_a_request_can_always_be_declined_or_cancelled(response: str) -> None:
    state = asked({"kind": "text", "required": True})
    assert check(CHAT, state, "chat/inputCompleted", requestId="r", response=response) is None


def test_a_request_without_questions_is_accepted_as_it_is() -> None:
    state = busy_chat(inputRequests=[{"id": "r", "url": "https://example.com/login"}])
    assert accept(state) is None
