"""Checks answers to an agent's questions: their kind, the question's limits, and that none is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ahpkit.host.policy.proposed_action import repeated
from ahpkit.protocol.chat.messages import (
    ANSWER_KINDS,
    ChatInputAnswer,
    ChatInputAnswerValue,
    ChatInputMultiSelectQuestion,
    ChatInputNumberAnswerValue,
    ChatInputNumberQuestion,
    ChatInputQuestion,
    ChatInputSelectedAnswerValue,
    ChatInputSelectedManyAnswerValue,
    ChatInputSingleSelectQuestion,
    ChatInputTextAnswerValue,
    ChatInputTextQuestion,
)
from ahpkit.protocol.json_schema import find_problem

_STATES = ("draft", "submitted", "skipped")

_SKIPPED: ChatInputAnswer = {"state": "skipped"}


def check_draft(question: ChatInputQuestion, answer: ChatInputAnswer | None) -> str | None:
    """Check one answer. A draft must have the right kind, but may break limits. A submitted answer must also keep the
    limits."""
    if answer is None:
        return None
    return _check_answer(question, answer, complete=answer["state"] == "submitted")


def check_accepted(questions: Sequence[ChatInputQuestion], answers: Mapping[str, ChatInputAnswer]) -> str | None:
    """Check all answers of a request that is being accepted. A required question needs a submitted answer. A draft is
    not enough."""
    for question in questions:
        answer = answers.get(question["id"], _SKIPPED)
        if reason := _check_answer(question, answer, complete=True):
            return reason
        if question.get("required") and (answer["state"] != "submitted" or _is_blank(answer)):
            return f"question {question['id']!r} must be answered"
    return None


def _check_answer(question: ChatInputQuestion, answer: ChatInputAnswer, *, complete: bool) -> str | None:
    if answer["state"] not in _STATES:
        return f"an answer is {', '.join(_STATES)}; not {answer['state']!r}"
    if answer["state"] == "skipped":
        return None
    reason = _check_kind(question, answer["value"])
    return reason or (_check_limits(question, answer["value"]) if complete and not _is_blank(answer) else None)


def _check_kind(question: ChatInputQuestion, value: ChatInputAnswerValue) -> str | None:
    wanted = ANSWER_KINDS.get(question["kind"])
    if wanted is not None and value["kind"] != wanted:
        return f"question {question['id']!r} is answered with a value of kind {wanted}, not {value['kind']}"
    return None


def _is_blank(answer: ChatInputAnswer) -> bool:
    """Whether nothing was entered or picked. Such an answer is not enough for a required question."""
    value = answer.get("value")
    return value is None or (value.get("value", "") in ("", []) and not value.get("freeformValues"))


def _check_limits(question: ChatInputQuestion, value: ChatInputAnswerValue) -> str | None:
    check = _LIMITS.get(question["kind"])
    problem = check(question, value) if check else None
    return f"the answer to question {question['id']!r} {problem}" if problem else None


def _check_text(question: ChatInputTextQuestion, value: ChatInputTextAnswerValue) -> str | None:
    text = value["value"]
    return _check_range(question, len(text), "characters") or _check_format(question.get("format"), text)


def _check_number(question: ChatInputNumberQuestion, value: ChatInputNumberAnswerValue) -> str | None:
    number = value["value"]
    if question["kind"] == "integer" and number != int(number):
        return f"must be a whole number, not {number}"
    return _check_range(question, number, "")


def _check_selected(question: ChatInputSingleSelectQuestion, value: ChatInputSelectedAnswerValue) -> str | None:
    picked = [value["value"]] if value["value"] else []
    return _check_options(question, value, picked, question.get("allowFreeformInput", False))


def _check_selected_many(question: ChatInputMultiSelectQuestion, value: ChatInputSelectedManyAnswerValue) -> str | None:
    picked = value["value"]
    count = len(picked) + len(value.get("freeformValues", ()))
    return _check_options(question, value, picked, False) or _check_range(question, count, "selections")


def _check_options(
    question: ChatInputSingleSelectQuestion | ChatInputMultiSelectQuestion,
    value: ChatInputSelectedAnswerValue | ChatInputSelectedManyAnswerValue,
    picked: list[str],
    free: bool,
) -> str | None:
    if value.get("freeformValues") and not question.get("allowFreeformInput"):
        return "must be picked from the options, free text is not allowed"
    if (twice := repeated(picked)) is not None:
        return f"picks option {twice!r} twice"
    offered = {option["id"] for option in question["options"]}
    unknown = next((option for option in picked if option not in offered and not free), None)
    return None if unknown is None else f"picks {unknown!r}, which is not one of the options"


def _check_range(
    question: ChatInputTextQuestion | ChatInputNumberQuestion | ChatInputMultiSelectQuestion, amount: float, unit: str
) -> str | None:
    low, high = question.get("min"), question.get("max")
    if low is not None and amount < low:
        return f"must be at least {low} {unit}".rstrip()
    if high is not None and amount > high:
        return f"must be at most {high} {unit}".rstrip()
    return None


def _check_format(name: str | None, text: str) -> str | None:
    """Check the format of a text. Formats that JSON Schema does not have are only hints for display."""
    if name is None or not text:
        return None
    return f"must be a valid {name}" if find_problem({"format": name}, text) else None


_LIMITS: dict[str, Callable[[Any, Any], str | None]] = {
    "text": _check_text,
    "number": _check_number,
    "integer": _check_number,
    "single-select": _check_selected,
    "multi-select": _check_selected_many,
}

__all__ = ["check_accepted", "check_draft"]
