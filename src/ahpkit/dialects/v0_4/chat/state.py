"""State of a chat: turns and their responses. Messages, tool calls and input requests have modules of their own beside
this one and are re-exported here: every name of the specification's chat state is found in this module.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.chat.messages import (
    ChatInputAnswer,
    ChatInputAnswered,
    ChatInputAnswerState,
    ChatInputAnswerValue,
    ChatInputAnswerValueKind,
    ChatInputBooleanAnswerValue,
    ChatInputBooleanQuestion,
    ChatInputMultiSelectQuestion,
    ChatInputNumberAnswerValue,
    ChatInputNumberQuestion,
    ChatInputOption,
    ChatInputQuestion,
    ChatInputQuestionBase,
    ChatInputQuestionKind,
    ChatInputRequest,
    ChatInputResponseKind,
    ChatInputSelectedAnswerValue,
    ChatInputSelectedManyAnswerValue,
    ChatInputSingleSelectQuestion,
    ChatInputSkipped,
    ChatInputTextAnswerValue,
    ChatInputTextQuestion,
    ConfirmationOption,
    ConfirmationOptionKind,
    Message,
    MessageAnnotationsAttachment,
    MessageAttachment,
    MessageAttachmentBase,
    MessageAttachmentKind,
    MessageEmbeddedResourceAttachment,
    MessageKind,
    MessageOrigin,
    MessageResourceAttachment,
    PendingMessage,
    PendingMessageKind,
    SimpleMessageAttachment,
    ToolCallBase,
    ToolCallCancellationReason,
    ToolCallCancelledState,
    ToolCallClientContributor,
    ToolCallCompletedState,
    ToolCallConfirmationReason,
    ToolCallContributor,
    ToolCallContributorKind,
    ToolCallEdits,
    ToolCallError,
    ToolCallMcpContributor,
    ToolCallParameterFields,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
    ToolCallResult,
    ToolCallRunningState,
    ToolCallState,
    ToolCallStatus,
    ToolCallStreamingState,
    ToolResultContent,
    ToolResultContentType,
    ToolResultEmbeddedResourceContent,
    ToolResultFileEditContent,
    ToolResultResourceContent,
    ToolResultSubagentContent,
    ToolResultTerminalContent,
    ToolResultTextContent,
)
from ahpkit.dialects.v0_4.common import (
    URI,
    AgentSelection,
    ContentRef,
    ErrorInfo,
    JsonObject,
    ModelSelection,
    StringOrMarkdown,
)
from ahpkit.protocol.chat.state import (
    ChatForkOrigin,
    ChatInteractivity,
    ChatToolOrigin,
    ChatUserOrigin,
    MarkdownResponsePart,
    ReasoningResponsePart,
    TurnState,
)
from ahpkit.protocol.common.state import UsageInfo

ChatOriginKind = Literal["user", "fork", "tool"]


ResponsePartKind = Literal["markdown", "contentRef", "toolCall", "reasoning", "systemNotification"]


ChatOrigin = ChatUserOrigin | ChatForkOrigin | ChatToolOrigin


class ResourceReponsePart(ContentRef):
    """Content by reference. The specification spells the name like this."""

    kind: Literal["contentRef"]


class ToolCallResponsePart(TypedDict):
    """A tool call."""

    kind: Literal["toolCall"]
    toolCall: ToolCallState


class SystemNotificationResponsePart(TypedDict):
    """The host says something in between."""

    kind: Literal["systemNotification"]
    content: StringOrMarkdown


ResponsePart = (
    MarkdownResponsePart
    | ResourceReponsePart
    | ToolCallResponsePart
    | ReasoningResponsePart
    | SystemNotificationResponsePart
)


class ActiveTurn(TypedDict):
    """The turn that runs."""

    id: str
    message: Message
    responseParts: list[ResponsePart]
    usage: NotRequired[UsageInfo]


class Turn(ActiveTurn):
    """A turn that ended."""

    state: TurnState
    error: NotRequired[ErrorInfo]


class PartialChatSummary(TypedDict):
    """Fields of a summary that changed."""

    resource: NotRequired[URI]
    title: NotRequired[str]
    status: NotRequired[int]
    activity: NotRequired[str]
    modifiedAt: NotRequired[str]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    origin: NotRequired[ChatOrigin]
    interactivity: NotRequired[ChatInteractivity]
    workingDirectory: NotRequired[URI]


class ChatSummary(TypedDict):
    """A chat in a session's list. `modifiedAt` is ISO 8601 with milliseconds and Z."""

    resource: URI
    title: str
    status: int
    activity: NotRequired[str]
    modifiedAt: str
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    origin: NotRequired[ChatOrigin]
    interactivity: NotRequired[ChatInteractivity]
    workingDirectory: NotRequired[URI]


class ChatState(ChatSummary):
    """State of `ahp-chat:/<id>`: the summary's fields and the conversation."""

    turns: list[Turn]
    activeTurn: NotRequired[ActiveTurn]
    steeringMessage: NotRequired[PendingMessage]
    queuedMessages: NotRequired[list[PendingMessage]]
    inputRequests: NotRequired[list[ChatInputRequest]]
    _meta: NotRequired[JsonObject]


__all__ = [
    "ActiveTurn",
    "ChatForkOrigin",
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
    "ChatInteractivity",
    "ChatOrigin",
    "ChatOriginKind",
    "ChatState",
    "ChatSummary",
    "ChatToolOrigin",
    "ChatUserOrigin",
    "ConfirmationOption",
    "ConfirmationOptionKind",
    "MarkdownResponsePart",
    "Message",
    "MessageAnnotationsAttachment",
    "MessageAttachment",
    "MessageAttachmentBase",
    "MessageAttachmentKind",
    "MessageEmbeddedResourceAttachment",
    "MessageKind",
    "MessageOrigin",
    "MessageResourceAttachment",
    "PartialChatSummary",
    "PendingMessage",
    "PendingMessageKind",
    "ReasoningResponsePart",
    "ResourceReponsePart",
    "ResponsePart",
    "ResponsePartKind",
    "SimpleMessageAttachment",
    "SystemNotificationResponsePart",
    "ToolCallBase",
    "ToolCallCancellationReason",
    "ToolCallCancelledState",
    "ToolCallClientContributor",
    "ToolCallCompletedState",
    "ToolCallConfirmationReason",
    "ToolCallContributor",
    "ToolCallContributorKind",
    "ToolCallEdits",
    "ToolCallError",
    "ToolCallMcpContributor",
    "ToolCallParameterFields",
    "ToolCallPendingConfirmationState",
    "ToolCallPendingResultConfirmationState",
    "ToolCallResponsePart",
    "ToolCallResult",
    "ToolCallRunningState",
    "ToolCallState",
    "ToolCallStatus",
    "ToolCallStreamingState",
    "ToolResultContent",
    "ToolResultContentType",
    "ToolResultEmbeddedResourceContent",
    "ToolResultFileEditContent",
    "ToolResultResourceContent",
    "ToolResultSubagentContent",
    "ToolResultTerminalContent",
    "ToolResultTextContent",
    "Turn",
    "TurnState",
    "UsageInfo",
]
