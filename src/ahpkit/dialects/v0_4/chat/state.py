"""State of a chat of 0.4.0: messages, questions for the user, tool calls, and the turns with their responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import (
    URI,
    AgentSelection,
    ContentRef,
    ErrorInfo,
    FileEdit,
    JsonObject,
    ModelSelection,
    StringOrMarkdown,
    TextSelection,
)
from ahpkit.protocol.chat.messages import (
    ChatInputAnswered,
    ChatInputAnswerState,
    ChatInputAnswerValue,
    ChatInputBooleanAnswerValue,
    ChatInputBooleanQuestion,
    ChatInputMultiSelectQuestion,
    ChatInputNumberAnswerValue,
    ChatInputNumberQuestion,
    ChatInputOption,
    ChatInputQuestion,
    ChatInputQuestionBase,
    ChatInputResponseKind,
    ChatInputSelectedAnswerValue,
    ChatInputSelectedManyAnswerValue,
    ChatInputSingleSelectQuestion,
    ChatInputSkipped,
    ChatInputTextAnswerValue,
    ChatInputTextQuestion,
    MessageAnnotationsAttachment,
    MessageAttachmentBase,
    MessageEmbeddedResourceAttachment,
    PendingMessageKind,
    SimpleMessageAttachment,
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
from ahpkit.protocol.chat.tool_call_state import (
    ToolCallCancellationReason,
    ToolCallClientContributor,
    ToolCallContributor,
    ToolCallError,
    ToolCallMcpContributor,
    ToolResultEmbeddedResourceContent,
    ToolResultSubagentContent,
    ToolResultTextContent,
)
from ahpkit.protocol.common.state import UsageInfo

MessageKind = Literal["user", "agent", "tool", "systemNotification"]

MessageAttachmentKind = Literal["simple", "embeddedResource", "resource", "annotations"]


class MessageOrigin(TypedDict):
    """Who produced a message."""

    kind: MessageKind


class MessageResourceAttachment(MessageAttachmentBase, ContentRef):
    """A resource by its URI."""

    type: Literal["resource"]
    selection: NotRequired[TextSelection]


MessageAttachment = (
    SimpleMessageAttachment
    | MessageEmbeddedResourceAttachment
    | MessageResourceAttachment
    | MessageAnnotationsAttachment
)


class Message(TypedDict):
    """What starts or steers a turn."""

    text: str
    origin: MessageOrigin
    attachments: NotRequired[list[MessageAttachment]]
    _meta: NotRequired[JsonObject]


class PendingMessage(TypedDict):
    """A message that waits: to steer the running turn, or to start the next."""

    id: str
    message: Message


ChatInputQuestionKind = Literal["text", "number", "integer", "boolean", "single-select", "multi-select"]


ChatInputAnswerValueKind = Literal["text", "number", "boolean", "selected", "selected-many"]


ANSWER_KINDS: Final[Mapping[str, ChatInputAnswerValueKind]] = {
    "text": "text",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "single-select": "selected",
    "multi-select": "selected-many",
}
"""Kind of question → kind of the value that answers it."""


ChatInputAnswer = ChatInputAnswered | ChatInputSkipped


class ChatInputRequest(TypedDict):
    """Questions that wait; `url` leads to a page to fill in instead."""

    id: str
    message: NotRequired[str]
    url: NotRequired[URI]
    questions: NotRequired[list[ChatInputQuestion]]
    answers: NotRequired[dict[str, ChatInputAnswer]]


ToolCallStatus = Literal[
    "streaming", "pending-confirmation", "running", "pending-result-confirmation", "completed", "cancelled"
]

ToolCallConfirmationReason = Literal["not-needed", "user-action", "setting"]


ConfirmationOptionKind = Literal["approve", "deny"]

ToolCallContributorKind = Literal["client", "mcp"]

ToolResultContentType = Literal["text", "embeddedResource", "resource", "fileEdit", "terminal", "subagent"]


class ToolResultResourceContent(ContentRef):
    """A resource by its URI."""

    type: Literal["resource"]


class ToolResultFileEditContent(FileEdit):
    """A file that the tool changed."""

    type: Literal["fileEdit"]


class ToolResultTerminalContent(TypedDict):
    """A terminal that the tool uses."""

    type: Literal["terminal"]
    resource: URI
    title: str


ToolResultContent = (
    ToolResultTextContent
    | ToolResultEmbeddedResourceContent
    | ToolResultResourceContent
    | ToolResultFileEditContent
    | ToolResultTerminalContent
    | ToolResultSubagentContent
)


class ToolCallResult(TypedDict):
    """What a tool returned."""

    success: bool
    pastTenseMessage: StringOrMarkdown
    content: NotRequired[list[ToolResultContent]]
    structuredContent: NotRequired[JsonObject]
    error: NotRequired[ToolCallError]


class ToolCallEdits(TypedDict):
    """What a tool is going to change, to look at before approving it."""

    items: list[FileEdit]


class ConfirmationOption(TypedDict):
    """A way to approve or to deny."""

    id: str
    label: str
    kind: ConfirmationOptionKind
    group: NotRequired[int]


class ToolCallBase(TypedDict):
    """What a tool call has from its start."""

    toolCallId: str
    toolName: str
    displayName: str
    contributor: NotRequired[ToolCallContributor]
    _meta: NotRequired[JsonObject]


class ToolCallParameterFields(TypedDict):
    """What a tool call has once its input is complete."""

    invocationMessage: StringOrMarkdown
    toolInput: NotRequired[str]


class ToolCallStreamingState(ToolCallBase):
    """The input arrives."""

    status: Literal["streaming"]
    partialInput: NotRequired[str]
    invocationMessage: NotRequired[StringOrMarkdown]


class ToolCallPendingConfirmationState(ToolCallBase, ToolCallParameterFields):
    """Somebody has to approve it."""

    status: Literal["pending-confirmation"]
    confirmationTitle: NotRequired[StringOrMarkdown]
    edits: NotRequired[ToolCallEdits]
    editable: NotRequired[bool]
    options: NotRequired[list[ConfirmationOption]]


class ToolCallRunningState(ToolCallBase, ToolCallParameterFields):
    """It runs; `content` shows what there is so far."""

    status: Literal["running"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]
    content: NotRequired[list[ToolResultContent]]


class ToolCallPendingResultConfirmationState(ToolCallBase, ToolCallParameterFields, ToolCallResult):
    """It ran; somebody has to approve the result before the model sees it."""

    status: Literal["pending-result-confirmation"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]


class ToolCallCompletedState(ToolCallBase, ToolCallParameterFields, ToolCallResult):
    """It ran."""

    status: Literal["completed"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]


class ToolCallCancelledState(ToolCallBase, ToolCallParameterFields):
    """It did not run, or its result was refused."""

    status: Literal["cancelled"]
    reason: ToolCallCancellationReason
    reasonMessage: NotRequired[StringOrMarkdown]
    userSuggestion: NotRequired[Message]
    selectedOption: NotRequired[ConfirmationOption]


ToolCallState = (
    ToolCallStreamingState
    | ToolCallPendingConfirmationState
    | ToolCallRunningState
    | ToolCallPendingResultConfirmationState
    | ToolCallCompletedState
    | ToolCallCancelledState
)


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
    """A message of the host between other parts."""

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
    "ANSWER_KINDS",
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
