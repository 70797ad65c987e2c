"""Questions an agent asks a person, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, JsonObject
from ahpkit.protocol.type_schemas import CLOSED

ChatInputQuestionKind = Literal["text", "number", "integer", "boolean", "single-select", "multi-select"] | str

ChatInputAnswerState = Literal["draft", "submitted", "skipped"]

ChatInputAnswerValueKind = Literal["text", "number", "boolean", "selected", "selected-many"] | str

ChatInputResponseKind = Literal["accept", "decline", "cancel"]

ANSWER_KINDS: Final[Mapping[str, ChatInputAnswerValueKind]] = {
    "text": "text",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "single-select": "selected",
    "multi-select": "selected-many",
}
"""Kind of question → kind of the value that answers it."""


class ChatInputOption(TypedDict):
    """A choice."""

    id: str
    label: str
    description: NotRequired[str]
    recommended: NotRequired[bool]


class ChatInputQuestionBase(TypedDict):
    """What all questions have."""

    id: str
    title: NotRequired[str]
    message: str
    required: NotRequired[bool]


class ChatInputTextQuestion(ChatInputQuestionBase):
    """Asks for text; `min` and `max` are lengths."""

    kind: Literal["text"]
    format: NotRequired[str]
    min: NotRequired[int | float]
    max: NotRequired[int | float]
    defaultValue: NotRequired[str]


class ChatInputNumberQuestion(ChatInputQuestionBase):
    """Asks for a number."""

    kind: Literal["number", "integer"]
    min: NotRequired[int | float]
    max: NotRequired[int | float]
    defaultValue: NotRequired[int | float]


class ChatInputBooleanQuestion(ChatInputQuestionBase):
    """Asks for yes or no."""

    kind: Literal["boolean"]
    defaultValue: NotRequired[bool]


class ChatInputSingleSelectQuestion(ChatInputQuestionBase):
    """Asks for one option."""

    kind: Literal["single-select"]
    options: list[ChatInputOption]
    allowFreeformInput: NotRequired[bool]


class ChatInputMultiSelectQuestion(ChatInputQuestionBase):
    """Asks for `min` to `max` options."""

    kind: Literal["multi-select"]
    options: list[ChatInputOption]
    allowFreeformInput: NotRequired[bool]
    min: NotRequired[int | float]
    max: NotRequired[int | float]


ChatInputQuestion = (
    ChatInputTextQuestion
    | ChatInputNumberQuestion
    | ChatInputBooleanQuestion
    | ChatInputSingleSelectQuestion
    | ChatInputMultiSelectQuestion
)


class ChatInputTextAnswerValue(TypedDict):
    """Text."""

    kind: Literal["text"]
    value: str


class ChatInputNumberAnswerValue(TypedDict):
    """A number."""

    kind: Literal["number"]
    value: int | float


class ChatInputBooleanAnswerValue(TypedDict):
    """Yes or no."""

    kind: Literal["boolean"]
    value: bool


class ChatInputSelectedAnswerValue(TypedDict):
    """The id of an option, or words of the user's own."""

    kind: Literal["selected"]
    value: str
    freeformValues: NotRequired[list[str]]


class ChatInputSelectedManyAnswerValue(TypedDict):
    """The ids of options, and words of the user's own."""

    kind: Literal["selected-many"]
    value: list[str]
    freeformValues: NotRequired[list[str]]


ChatInputAnswerValue = (
    ChatInputTextAnswerValue
    | ChatInputNumberAnswerValue
    | ChatInputBooleanAnswerValue
    | ChatInputSelectedAnswerValue
    | ChatInputSelectedManyAnswerValue
)


class ChatInputAnswered(TypedDict):
    """An answer, final or not."""

    state: Literal["draft", "submitted"]
    value: ChatInputAnswerValue


class ChatInputSkipped(TypedDict):
    """No answer to this question."""

    state: Literal["skipped"]
    freeformValues: NotRequired[list[str]]


ChatInputAnswer = Annotated[ChatInputAnswered | ChatInputSkipped, CLOSED]


class ChatInputRequest(TypedDict):
    """Questions that wait; `url` leads to a page to fill in instead."""

    id: str
    message: NotRequired[str]
    url: NotRequired[URI]
    questions: NotRequired[list[ChatInputQuestion]]
    answers: NotRequired[dict[str, ChatInputAnswer]]
    _meta: NotRequired[JsonObject]


__all__ = [
    "ANSWER_KINDS",
    "ChatInputAnswer",
    "ChatInputAnswerState",
    "ChatInputAnswerValue",
    "ChatInputAnswerValueKind",
    "ChatInputAnswered",
    "ChatInputBooleanAnswerValue",
    "ChatInputBooleanQuestion",
    "ChatInputMultiSelectQuestion",
    "ChatInputNumberAnswerValue",
    "ChatInputNumberQuestion",
    "ChatInputOption",
    "ChatInputQuestion",
    "ChatInputQuestionBase",
    "ChatInputQuestionKind",
    "ChatInputRequest",
    "ChatInputResponseKind",
    "ChatInputSelectedAnswerValue",
    "ChatInputSelectedManyAnswerValue",
    "ChatInputSingleSelectQuestion",
    "ChatInputSkipped",
    "ChatInputTextAnswerValue",
    "ChatInputTextQuestion",
]
