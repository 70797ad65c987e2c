"""Messages and what is attached to them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import (
    URI,
    AgentSelection,
    ContentRef,
    JsonObject,
    ModelSelection,
    TextRange,
    TextSelection,
)

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


__all__ = [
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
