"""State of a chat: turns and their responses. Messages, tool calls and input requests have their own modules beside
this one and are re-exported here: every name of the specification's chat state is found in this module.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.canvas import CanvasReference
from ahpkit.protocol.changeset import Changeset
from ahpkit.protocol.chat.messages import (
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
    Message,
    MessageAnnotationsAttachment,
    MessageAttachment,
    MessageAttachmentBase,
    MessageAttachmentKind,
    MessageChatAttachment,
    MessageEmbeddedResourceAttachment,
    MessageKind,
    MessageOrigin,
    MessageResourceAttachment,
    PendingMessage,
    PendingMessageKind,
    SimpleMessageAttachment,
)
from ahpkit.protocol.chat.tool_call_state import (
    ConfirmationOption,
    ConfirmationOptionKind,
    TerminalCommandResult,
    ToolCallAuthRequiredState,
    ToolCallBase,
    ToolCallCancellationReason,
    ToolCallCancelledState,
    ToolCallClientContributor,
    ToolCallCompletedState,
    ToolCallConfirmationReason,
    ToolCallConfirmationState,
    ToolCallContributor,
    ToolCallContributorKind,
    ToolCallEdits,
    ToolCallError,
    ToolCallMcpContributor,
    ToolCallParameterFields,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
    ToolCallPostConfirmationFields,
    ToolCallResult,
    ToolCallRiskAssessment,
    ToolCallRiskAssessmentBase,
    ToolCallRiskAssessmentCompleteState,
    ToolCallRiskAssessmentKind,
    ToolCallRiskAssessmentLoadingState,
    ToolCallRunningState,
    ToolCallState,
    ToolCallStatus,
    ToolCallStreamingState,
    ToolInput,
    ToolResultContent,
    ToolResultContentType,
    ToolResultEmbeddedResourceContent,
    ToolResultFileEditContent,
    ToolResultResourceContent,
    ToolResultSubagentContent,
    ToolResultTerminalContent,
    ToolResultTextContent,
)
from ahpkit.protocol.common.state import (
    URI,
    ChangesSummary,
    ContentRef,
    ErrorInfo,
    JsonObject,
    StringOrMarkdown,
    UsageInfo,
)

ChatOriginKind = Literal["user", "fork", "sideChat", "tool"] | str

ChatInteractivity = Literal["full", "read-only", "hidden"]

TurnState = Literal["complete", "cancelled", "error"]

ResponsePartKind = (
    Literal["markdown", "contentRef", "toolCall", "reasoning", "systemNotification", "inputRequest", "error"] | str
)

BackgroundWorkKind = Literal["shell", "subagent"] | str


class ChatUserOrigin(TypedDict):
    """A person opened the chat."""

    kind: Literal["user"]


class ChatForkOrigin(TypedDict):
    """The chat continues a copy of another."""

    kind: Literal["fork"]
    chat: URI
    turnId: str


class SideChatSelection(TypedDict):
    """The words that a side chat is about, perhaps inside one part of the response."""

    text: str
    responsePartId: NotRequired[str]


class ChatSideChatOrigin(TypedDict):
    """The chat was opened beside another, about one of its turns."""

    kind: Literal["sideChat"]
    chat: URI
    turnId: str
    selection: NotRequired[SideChatSelection]


class ChatToolOrigin(TypedDict):
    """A tool call in another chat started this one."""

    kind: Literal["tool"]
    chat: URI
    toolCallId: str


ChatOrigin = ChatUserOrigin | ChatForkOrigin | ChatSideChatOrigin | ChatToolOrigin


class MarkdownResponsePart(TypedDict):
    """Text; `chat/delta` appends to it."""

    kind: Literal["markdown"]
    id: str
    content: str


class ResourceResponsePart(ContentRef):
    """Content by reference."""

    kind: Literal["contentRef"]


class ToolCallResponsePart(TypedDict):
    """A tool call."""

    kind: Literal["toolCall"]
    toolCall: ToolCallState


class ReasoningResponsePart(TypedDict):
    """What the model thinks; `chat/reasoning` appends to it."""

    kind: Literal["reasoning"]
    id: str
    content: str


class SystemNotificationResponsePart(TypedDict):
    """A message of the host between other parts."""

    kind: Literal["systemNotification"]
    content: StringOrMarkdown
    _meta: NotRequired[JsonObject]


class InputRequestResponsePart(TypedDict):
    """Questions to the user and the answers; without `response` they are open, or the turn ended first."""

    kind: Literal["inputRequest"]
    request: ChatInputRequest
    response: NotRequired[ChatInputResponseKind]


class ErrorResponsePart(TypedDict):
    """Why the turn failed; `resumable` says whether `chat/turnResume` may go on with it."""

    kind: Literal["error"]
    error: ErrorInfo
    resumable: NotRequired[bool]


ResponsePart = (
    MarkdownResponsePart
    | ResourceResponsePart
    | ToolCallResponsePart
    | ReasoningResponsePart
    | SystemNotificationResponsePart
    | InputRequestResponsePart
    | ErrorResponsePart
)


class ActiveTurn(TypedDict):
    """The turn that runs."""

    id: str
    startedAt: str
    message: Message
    responseParts: list[ResponsePart]
    usage: NotRequired[UsageInfo]


class Turn(TypedDict):
    """A turn that ended, `duration` milliseconds after it began. Old turns have neither a start nor a duration."""

    id: str
    startedAt: NotRequired[str]
    duration: NotRequired[int | float]
    message: Message
    responseParts: list[ResponsePart]
    usage: NotRequired[UsageInfo]
    state: TurnState


class BackgroundWorkBase(TypedDict):
    """Something that goes on beside the turns."""

    id: str
    label: str
    startedAt: str
    _meta: NotRequired[JsonObject]


class BackgroundShellWork(BackgroundWorkBase):
    """A command."""

    kind: Literal["shell"]
    command: str
    terminal: NotRequired[URI]


class BackgroundSubagentWork(BackgroundWorkBase):
    """Another chat."""

    kind: Literal["subagent"]
    chat: URI


BackgroundWork = BackgroundShellWork | BackgroundSubagentWork


class PartialChatSummary(TypedDict):
    """Fields of a summary that changed."""

    resource: NotRequired[URI]
    title: NotRequired[str]
    status: NotRequired[int]
    activity: NotRequired[str]
    modifiedAt: NotRequired[str]
    origin: NotRequired[ChatOrigin]
    interactivity: NotRequired[ChatInteractivity]
    workingDirectories: NotRequired[list[URI]]
    changes: NotRequired[ChangesSummary]
    movable: NotRequired[bool]


class ChatSummary(TypedDict):
    """A chat in a session's list. Without `workingDirectories` it works in all of the session's."""

    resource: URI
    title: str
    status: int
    activity: NotRequired[str]
    modifiedAt: str
    origin: NotRequired[ChatOrigin]
    interactivity: NotRequired[ChatInteractivity]
    workingDirectories: NotRequired[list[URI]]
    changes: NotRequired[ChangesSummary]
    movable: NotRequired[bool]


class ChatState(ChatSummary):
    """State of `ahp-chat:/<id>`: the summary's fields and the conversation."""

    turns: list[Turn]
    turnsNextCursor: NotRequired[str]
    activeTurn: NotRequired[ActiveTurn]
    steeringMessage: NotRequired[PendingMessage]
    queuedMessages: NotRequired[list[PendingMessage]]
    draft: NotRequired[Message]
    changesets: NotRequired[list[Changeset]]
    backgroundWork: NotRequired[list[BackgroundWork]]
    canvases: NotRequired[list[CanvasReference]]
    _meta: NotRequired[JsonObject]


__all__ = [
    "ActiveTurn",
    "BackgroundShellWork",
    "BackgroundSubagentWork",
    "BackgroundWork",
    "BackgroundWorkBase",
    "BackgroundWorkKind",
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
    "ChatSideChatOrigin",
    "ChatState",
    "ChatSummary",
    "ChatToolOrigin",
    "ChatUserOrigin",
    "ConfirmationOption",
    "ConfirmationOptionKind",
    "ErrorResponsePart",
    "InputRequestResponsePart",
    "MarkdownResponsePart",
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
    "PartialChatSummary",
    "PendingMessage",
    "PendingMessageKind",
    "ReasoningResponsePart",
    "ResourceResponsePart",
    "ResponsePart",
    "ResponsePartKind",
    "SideChatSelection",
    "SimpleMessageAttachment",
    "SystemNotificationResponsePart",
    "TerminalCommandResult",
    "ToolCallAuthRequiredState",
    "ToolCallBase",
    "ToolCallCancellationReason",
    "ToolCallCancelledState",
    "ToolCallClientContributor",
    "ToolCallCompletedState",
    "ToolCallConfirmationReason",
    "ToolCallConfirmationState",
    "ToolCallContributor",
    "ToolCallContributorKind",
    "ToolCallEdits",
    "ToolCallError",
    "ToolCallMcpContributor",
    "ToolCallParameterFields",
    "ToolCallPendingConfirmationState",
    "ToolCallPendingResultConfirmationState",
    "ToolCallPostConfirmationFields",
    "ToolCallResponsePart",
    "ToolCallResult",
    "ToolCallRiskAssessment",
    "ToolCallRiskAssessmentBase",
    "ToolCallRiskAssessmentCompleteState",
    "ToolCallRiskAssessmentKind",
    "ToolCallRiskAssessmentLoadingState",
    "ToolCallRunningState",
    "ToolCallState",
    "ToolCallStatus",
    "ToolCallStreamingState",
    "ToolInput",
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
