"""Offers the tool `ask_user`, with which a model asks the people of its session a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ahpkit.host.agent import ToolCall, ToolOutcome, Turn
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.protocol.chat.state import (
    ChatInputAnswer,
    ChatInputOption,
    ChatInputQuestion,
    ChatInputSingleSelectQuestion,
)
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import Owner, Tool, input_object

_OWNER = Owner("host", "questions")
_OPTIONS = 20
_WORDS = 4000

ASK_USER: ToolDefinition = {
    "name": "ask_user",
    "title": "Ask the user",
    "description": "Ask the user a question and wait for the answer. With options the user picks from them.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to pick from."},
            "multiple": {"type": "boolean", "description": "Whether several options may be picked."},
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
}


class Questions(Feature):
    """Offers `ask_user` to every session. It needs no approval: it is a question itself."""

    name = "questions"

    def register(self, host: Registration, services: Services) -> None:
        host.tools.add(self)

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        return [(_OWNER, [ASK_USER])]

    def asks(self, tool: Tool) -> bool:
        return False

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        try:
            given = input_object(tool_input)
        except ValueError as error:
            return ToolOutcome(success=False, error=str(error))
        question = given.get("question")
        if not isinstance(question, str) or not question.strip():
            return ToolOutcome(success=False, error="`question` is missing: say what to ask")
        answers = await turn.ask([_question(question[:_WORDS], given)])
        if answers.response != "accept":
            return ToolOutcome(success=True, content=[{"type": "text", "text": "The user did not answer."}])
        answer = _answer_text(answers.answers.get("answer"))
        return ToolOutcome(success=True, content=[{"type": "text", "text": answer}])


def _question(text: str, given: JsonObject) -> ChatInputQuestion:
    offered = given.get("options")
    texts = cast("list[object]", offered) if isinstance(offered, list) else []
    labels = list(dict.fromkeys(label[:_WORDS] for label in texts if isinstance(label, str) and label))[:_OPTIONS]
    if not labels:
        return {"id": "answer", "message": text, "required": True, "kind": "text"}
    options: list[ChatInputOption] = [{"id": label, "label": label} for label in labels]  # So the answer is the label.
    one: ChatInputSingleSelectQuestion = {
        "id": "answer",
        "message": text,
        "required": True,
        "kind": "single-select",
        "options": options,
        "allowFreeformInput": True,
    }
    return {**one, "kind": "multi-select"} if given.get("multiple") is True else one


def _answer_text(answer: ChatInputAnswer | None) -> str:
    """An answer as a model reads it."""
    if answer is None or answer["state"] == "skipped":
        return ""
    value = answer["value"]
    picks = value["value"] if value["kind"] == "selected-many" else [value["value"]]
    return ", ".join(str(one) for one in (*picks, *value.get("freeformValues", ())) if one != "")


__all__ = ["Questions"]
