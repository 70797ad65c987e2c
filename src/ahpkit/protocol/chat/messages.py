"""Messages and what is attached to them; the questions that an agent asks a person, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import (
    URI,
    AgentSelection,
    ContentRef,
    JsonObject,
    ModelSelection,
    TextRange,
    TextSelection,
)
from ahpkit.protocol.type_schemas import CLOSED

MessageKind = Literal["user", "agent", "tool", "automation", "systemNotification"] | str

MessageAttachmentKind = Literal["simple", "embeddedResource", "resource", "annotations", "chat"] | str

PendingMessageKind = Literal["steering", "queued"]


class MessageOrigin(TypedDict):
    """Who produced a message."""

    kind: MessageKind


class MessageAttachmentBase(TypedDict):
    """What all attachments have. `range` is the place of the mention in the message's text."""

    label: str
    range: NotRequired[TextRange]
    displayKind: NotRequired[str]
    _meta: NotRequired[JsonObject]


class SimpleMessageAttachment(MessageAttachmentBase):
    """Something with a name; `modelRepresentation` is what the model sees of it."""

    type: Literal["simple"]
    modelRepresentation: NotRequired[str]


class MessageEmbeddedResourceAttachment(MessageAttachmentBase):
    """Content inside the message, in base64."""

    type: Literal["embeddedResource"]
    data: str
    contentType: str
    selection: NotRequired[TextSelection]


class MessageResourceAttachment(MessageAttachmentBase, ContentRef):
    """A resource by its URI."""

    type: Literal["resource"]
    selection: NotRequired[TextSelection]


class MessageAnnotationsAttachment(MessageAttachmentBase):
    """Annotations of an annotations channel: some, or all of them."""

    type: Literal["annotations"]
    resource: URI
    annotationIds: NotRequired[list[str]]


class MessageChatAttachment(MessageAttachmentBase):
    """Another chat, up to and including `endTurn`."""

    type: Literal["chat"]
    resource: URI
    endTurn: NotRequired[str]


MessageAttachment = (
    SimpleMessageAttachment
    | MessageEmbeddedResourceAttachment
    | MessageResourceAttachment
    | MessageAnnotationsAttachment
    | MessageChatAttachment
)


class Message(TypedDict):
    """What starts or steers a turn, with the model and the custom agent that should answer it."""

    text: str
    origin: MessageOrigin
    attachments: NotRequired[list[MessageAttachment]]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    _meta: NotRequired[JsonObject]


class PendingMessage(TypedDict):
    """A message that waits: to steer the running turn, or to start the next."""

    id: str
    message: Message


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
    "Message",
    "MessageAnnotationsAttachment",
    "MessageAttachment",
    "MessageAttachmentBase",
    "MessageAttachmentKind",
    "MessageChatAttachment",
    "MessageEmbeddedResourceAttachment",
    "MessageKind",
    "MessageOrigin",
    "MessageResourceAttachment",
    "PendingMessage",
    "PendingMessageKind",
    "SimpleMessageAttachment",
]
