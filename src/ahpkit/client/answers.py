"""Builds the actions for a person's decisions and answers. Pure.

A callback may answer with plain Python values; this module converts them to the form that each kind of question needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ahpkit.client.core import given
from ahpkit.protocol.chat.messages import ANSWER_KINDS
from ahpkit.protocol.chat.state import ChatInputAnswer, ChatInputRequest
from ahpkit.protocol.common.state import JsonObject, StringOrMarkdown
from ahpkit.protocol.meta_keys import AUTOMATIC


@dataclass(frozen=True, slots=True)
class Approve:
    """Approves a tool call, or the use of its result."""

    option_id: str | None = None
    edited_input: str | None = None
    automatic: bool = False
    """A program decided without asking a person. The record of approvals says so."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Denies a tool call, or the use of its result."""

    option_id: str | None = None
    reason: StringOrMarkdown | None = None
    """The reason, which is shown with the call and which the agent reads."""
    automatic: bool = False
    """A program decided without asking a person. The record of approvals says so."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answers by question id; plain values, or the wire's answer objects. None skips a question."""

    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Decline:
    """No answer: the person declined, or cancelled."""

    response: Literal["decline", "cancel"] = "decline"


Decision = Approve | Deny
Reply = Answer | Decline


def decision_of(returned: Any) -> Decision | None:
    """What a confirmation callback decided: a `Decision`, True, False, or None for "somebody else decides"."""
    if isinstance(returned, bool):
        return Approve() if returned else Deny()
    if returned is None or isinstance(returned, Approve | Deny):
        return returned
    raise TypeError(f"an approval was answered with {returned!r}; it must be True, False, Approve(), Deny() or None")


def reply_of(returned: Any) -> Reply | None:
    """What a question callback answered: a `Reply`, a mapping of answers, or None for "somebody else answers"."""
    if isinstance(returned, Mapping):
        return Answer(cast("Mapping[str, Any]", returned))
    if returned is None or isinstance(returned, Answer | Decline):
        return returned
    raise TypeError(f"questions were answered with {returned!r}; it must be a dict, Answer(), Decline() or None")


def confirmed(turn_id: str, tool_call_id: str, decision: Decision) -> JsonObject:
    """The action that decides about a call before it runs."""
    action: JsonObject = {"type": "chat/toolCallConfirmed", "turnId": turn_id, "toolCallId": tool_call_id}
    match decision:
        case Approve(edited_input=edited, automatic=automatic):
            how = "setting" if automatic else "user-action"
            action |= {"approved": True, "confirmed": how} | given(editedToolInput=edited)
        case Deny(reason=reason):
            action |= {"approved": False, "reason": "denied"} | given(reasonMessage=reason)
    return action | given(selectedOptionId=decision.option_id)


def by_program(action: JsonObject, call: Mapping[str, Any]) -> JsonObject:
    """The same decision about a call or its result, marked as one that a program took without asking a person."""
    return {**action, "_meta": {**call.get("_meta", {}), AUTOMATIC: True}}


def result_confirmed(turn_id: str, tool_call_id: str, *, approved: bool) -> JsonObject:
    """The action that decides about the use of a call's result."""
    ids = {"turnId": turn_id, "toolCallId": tool_call_id}
    return {"type": "chat/toolCallResultConfirmed", **ids, "approved": approved}


def input_completed(request: ChatInputRequest, reply: Reply) -> JsonObject:
    """The action that ends an input request."""
    action: JsonObject = {"type": "chat/inputCompleted", "requestId": request["id"]}
    match reply:
        case Decline(response):
            return {**action, "response": response}
        case Answer(values):
            answers = {id: answer_to(request, id, value) for id, value in values.items()}
            return {**action, "response": "accept", **given(answers=answers or None)}


def answer_to(
    request: ChatInputRequest, question_id: str, value: Any, *, state: Literal["draft", "submitted"] = "submitted"
) -> ChatInputAnswer:
    """A plain value in the form that answers one question of `request`; None skips it. Raises `LookupError`."""
    if value is None:
        return {"state": "skipped"}
    if isinstance(value, Mapping):
        return cast("ChatInputAnswer", value)
    question = next((one for one in request.get("questions", ()) if one["id"] == question_id), None)
    if question is None:
        raise LookupError(f"input request {request['id']!r} has no question {question_id!r}")
    wire: Any = {"state": state, "value": {"kind": ANSWER_KINDS[question["kind"]], "value": value}}
    return wire


def open_requests(chat: Mapping[str, Any]) -> list[ChatInputRequest]:
    """The questions of a chat that nobody has answered yet."""
    turn: Mapping[str, Any] = chat.get("activeTurn") or {}
    parts: Sequence[Any] = turn.get("responseParts", ())
    return [part["request"] for part in parts if part["kind"] == "inputRequest" and part.get("response") is None]


def input_text(call: Any) -> str:
    """The input of a tool call for display: its text, or the URI from which the text can be read."""
    given = call.get("toolInput", "")
    return given if isinstance(given, str) else str(given.get("uri", ""))


__all__ = [
    "Answer",
    "Approve",
    "Decision",
    "Decline",
    "Deny",
    "Reply",
    "answer_to",
    "by_program",
    "confirmed",
    "decision_of",
    "input_completed",
    "input_text",
    "open_requests",
    "reply_of",
    "result_confirmed",
]
