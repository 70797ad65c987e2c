from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import (
    URI,
    AgentSelection,
    ErrorInfo,
    JsonObject,
    ModelSelection,
    StringOrMarkdown,
    TextRange,
    TextSelection,
)

PendingMessageKind = Literal["steering", "queued"]


ChatOriginKind = Literal["user", "fork", "tool"]


ChatInteractivity = Literal["full", "read-only", "hidden"]


ChatInputAnswerState = Literal["draft", "submitted", "skipped"]


ChatInputAnswerValueKind = Literal["text", "number", "boolean", "selected", "selected-many"]


ChatInputQuestionKind = Literal["text", "number", "integer", "boolean", "single-select", "multi-select"]


ChatInputResponseKind = Literal["accept", "decline", "cancel"]


TurnState = Literal["complete", "cancelled", "error"]


MessageAttachmentKind = Literal["simple", "embeddedResource", "resource", "annotations"]


ResponsePartKind = Literal["markdown", "contentRef", "toolCall", "reasoning", "systemNotification"]


ToolCallStatus = Literal[
    "streaming", "pending-confirmation", "running", "pending-result-confirmation", "completed", "cancelled"
]


ToolCallConfirmationReason = Literal["not-needed", "user-action", "setting"]


ToolCallCancellationReason = Literal["denied", "skipped", "result-denied"]


ConfirmationOptionKind = Literal["approve", "deny"]


ToolCallContributorKind = Literal["client", "mcp"]


ToolResultContentType = Literal["text", "embeddedResource", "resource", "fileEdit", "terminal", "subagent"]


MessageKind = Literal["user", "agent", "tool", "systemNotification"]


class UsageInfo(TypedDict):
    inputTokens: NotRequired[int | float]
    outputTokens: NotRequired[int | float]
    model: NotRequired[str]
    cacheReadTokens: NotRequired[int | float]
    _meta: NotRequired[JsonObject]


class ChatState(TypedDict):
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
    turns: list[Turn]
    activeTurn: NotRequired[ActiveTurn]
    steeringMessage: NotRequired[PendingMessage]
    queuedMessages: NotRequired[list[PendingMessage]]
    inputRequests: NotRequired[list[ChatInputRequest]]
    _meta: NotRequired[JsonObject]


class ChatSummary(TypedDict):
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


class PendingMessage(TypedDict):
    id: str
    message: Message


class ChatInputOption(TypedDict):
    id: str
    label: str
    description: NotRequired[str]
    recommended: NotRequired[bool]


class ChatInputQuestionBase(TypedDict):
    id: str
    title: NotRequired[str]
    message: str
    required: NotRequired[bool]


class ChatInputTextQuestion(ChatInputQuestionBase):
    kind: Literal["text"]
    format: NotRequired[str]
    min: NotRequired[int | float]
    max: NotRequired[int | float]
    defaultValue: NotRequired[str]


class ChatInputNumberQuestion(ChatInputQuestionBase):
    kind: Literal["number"] | Literal["integer"]
    min: NotRequired[int | float]
    max: NotRequired[int | float]
    defaultValue: NotRequired[int | float]


class ChatInputBooleanQuestion(ChatInputQuestionBase):
    kind: Literal["boolean"]
    defaultValue: NotRequired[bool]


class ChatInputSingleSelectQuestion(ChatInputQuestionBase):
    kind: Literal["single-select"]
    options: list[ChatInputOption]
    allowFreeformInput: NotRequired[bool]


class ChatInputMultiSelectQuestion(ChatInputQuestionBase):
    kind: Literal["multi-select"]
    options: list[ChatInputOption]
    allowFreeformInput: NotRequired[bool]
    min: NotRequired[int | float]
    max: NotRequired[int | float]


class ChatInputRequest(TypedDict):
    id: str
    message: NotRequired[str]
    url: NotRequired[URI]
    questions: NotRequired[list[ChatInputQuestion]]
    answers: NotRequired[dict[str, ChatInputAnswer]]


class ChatInputTextAnswerValue(TypedDict):
    kind: Literal["text"]
    value: str


class ChatInputNumberAnswerValue(TypedDict):
    kind: Literal["number"]
    value: int | float


class ChatInputBooleanAnswerValue(TypedDict):
    kind: Literal["boolean"]
    value: bool


class ChatInputSelectedAnswerValue(TypedDict):
    kind: Literal["selected"]
    value: str
    freeformValues: NotRequired[list[str]]


class ChatInputSelectedManyAnswerValue(TypedDict):
    kind: Literal["selected-many"]
    value: list[str]
    freeformValues: NotRequired[list[str]]


class ChatInputAnswered(TypedDict):
    state: Literal["draft"] | Literal["submitted"]
    value: ChatInputAnswerValue


class ChatInputSkipped(TypedDict):
    state: Literal["skipped"]
    freeformValues: NotRequired[list[str]]


class Turn(TypedDict):
    id: str
    message: Message
    responseParts: list[ResponsePart]
    usage: UsageInfo
    state: TurnState
    error: NotRequired[ErrorInfo]


class ActiveTurn(TypedDict):
    id: str
    message: Message
    responseParts: list[ResponsePart]
    usage: UsageInfo


class MessageOrigin(TypedDict):
    kind: MessageKind


class Message(TypedDict):
    text: str
    origin: MessageOrigin
    attachments: NotRequired[list[MessageAttachment]]
    _meta: NotRequired[JsonObject]


class MessageAttachmentBase(TypedDict):
    label: str
    range: NotRequired[TextRange]
    displayKind: NotRequired[str]
    _meta: NotRequired[JsonObject]


class SimpleMessageAttachment(MessageAttachmentBase):
    type: Literal["simple"]
    modelRepresentation: NotRequired[str]


class MessageEmbeddedResourceAttachment(MessageAttachmentBase):
    type: Literal["embeddedResource"]
    data: str
    contentType: str
    selection: NotRequired[TextSelection]


class MessageResourceAttachment(MessageAttachmentBase):
    uri: URI
    sizeHint: NotRequired[int | float]
    contentType: NotRequired[str]
    type: Literal["resource"]
    selection: NotRequired[TextSelection]


class MessageAnnotationsAttachment(MessageAttachmentBase):
    type: Literal["annotations"]
    resource: URI
    annotationIds: NotRequired[list[str]]


class MarkdownResponsePart(TypedDict):
    kind: Literal["markdown"]
    id: str
    content: str


class ResourceReponsePart(TypedDict):
    uri: URI
    sizeHint: NotRequired[int | float]
    contentType: NotRequired[str]
    kind: Literal["contentRef"]


class ToolCallResponsePart(TypedDict):
    kind: Literal["toolCall"]
    toolCall: ToolCallState


class ReasoningResponsePart(TypedDict):
    kind: Literal["reasoning"]
    id: str
    content: str


class SystemNotificationResponsePart(TypedDict):
    kind: Literal["systemNotification"]
    content: StringOrMarkdown


class ConfirmationOption(TypedDict):
    id: str
    label: str
    kind: ConfirmationOptionKind
    group: NotRequired[int | float]


class ToolCallClientContributor(TypedDict):
    kind: Literal["client"]
    clientId: str


class ToolCallMcpContributor(TypedDict):
    kind: Literal["mcp"]
    customizationId: str


class ToolCallBase(TypedDict):
    toolCallId: str
    toolName: str
    displayName: str
    contributor: NotRequired[ToolCallContributor]
    _meta: NotRequired[JsonObject]


class ToolCallParameterFields(TypedDict):
    invocationMessage: StringOrMarkdown
    toolInput: NotRequired[str]


class ToolCallResult(TypedDict):
    success: bool
    pastTenseMessage: StringOrMarkdown
    content: NotRequired[list[ToolResultContent]]
    structuredContent: NotRequired[JsonObject]
    error: NotRequired[JsonObject]  # INLINE {"message": ["str", true], "code": ["str", false]}


class ToolCallStreamingState(ToolCallBase):
    status: Literal["streaming"]
    partialInput: NotRequired[str]
    invocationMessage: NotRequired[StringOrMarkdown]


class ToolCallPendingConfirmationState(ToolCallBase, ToolCallParameterFields):
    status: Literal["pending-confirmation"]
    confirmationTitle: NotRequired[StringOrMarkdown]
    edits: NotRequired[JsonObject]  # INLINE {"items": ["str", true]}
    editable: NotRequired[bool]
    options: NotRequired[list[ConfirmationOption]]


class ToolCallRunningState(ToolCallBase, ToolCallParameterFields):
    status: Literal["running"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]
    content: NotRequired[list[ToolResultContent]]


class ToolCallPendingResultConfirmationState(ToolCallBase, ToolCallParameterFields):
    success: bool
    pastTenseMessage: StringOrMarkdown
    content: NotRequired[list[ToolResultContent]]
    structuredContent: NotRequired[JsonObject]
    error: NotRequired[JsonObject]  # INLINE {"message": ["str", true], "code": ["str", false]}
    status: Literal["pending-result-confirmation"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]


class ToolCallCompletedState(ToolCallBase, ToolCallParameterFields):
    success: bool
    pastTenseMessage: StringOrMarkdown
    content: NotRequired[list[ToolResultContent]]
    structuredContent: NotRequired[JsonObject]
    error: NotRequired[JsonObject]  # INLINE {"message": ["str", true], "code": ["str", false]}
    status: Literal["completed"]
    confirmed: ToolCallConfirmationReason
    selectedOption: NotRequired[ConfirmationOption]


class ToolCallCancelledState(ToolCallBase, ToolCallParameterFields):
    status: Literal["cancelled"]
    reason: ToolCallCancellationReason
    reasonMessage: NotRequired[StringOrMarkdown]
    userSuggestion: NotRequired[Message]
    selectedOption: NotRequired[ConfirmationOption]


class ToolResultTextContent(TypedDict):
    type: Literal["text"]
    text: str


class ToolResultEmbeddedResourceContent(TypedDict):
    type: Literal["embeddedResource"]
    data: str
    contentType: str


class ToolResultResourceContent(TypedDict):
    uri: URI
    sizeHint: NotRequired[int | float]
    contentType: NotRequired[str]
    type: Literal["resource"]


class ToolResultFileEditContent(TypedDict):
    before: NotRequired[JsonObject]  # INLINE {"uri": ["str", true], "content": ["str", true]}
    after: NotRequired[JsonObject]  # INLINE {"uri": ["str", true], "content": ["str", true]}
    diff: NotRequired[JsonObject]  # INLINE {"added": ["int | float", false], "removed": ["int | float", false]}
    type: Literal["fileEdit"]


class ToolResultTerminalContent(TypedDict):
    type: Literal["terminal"]
    resource: URI
    title: str


class ToolResultSubagentContent(TypedDict):
    type: Literal["subagent"]
    resource: URI
    title: str
    agentName: NotRequired[str]
    description: NotRequired[str]


ChatOrigin = JsonObject


ChatInputQuestion = (
    ChatInputTextQuestion
    | ChatInputNumberQuestion
    | ChatInputBooleanQuestion
    | ChatInputSingleSelectQuestion
    | ChatInputMultiSelectQuestion
)


ChatInputAnswerValue = (
    ChatInputTextAnswerValue
    | ChatInputNumberAnswerValue
    | ChatInputBooleanAnswerValue
    | ChatInputSelectedAnswerValue
    | ChatInputSelectedManyAnswerValue
)


ChatInputAnswer = ChatInputAnswered | ChatInputSkipped


MessageAttachment = (
    SimpleMessageAttachment
    | MessageEmbeddedResourceAttachment
    | MessageResourceAttachment
    | MessageAnnotationsAttachment
)


ResponsePart = (
    MarkdownResponsePart
    | ResourceReponsePart
    | ToolCallResponsePart
    | ReasoningResponsePart
    | SystemNotificationResponsePart
)


ToolCallContributor = ToolCallClientContributor | ToolCallMcpContributor


ToolCallState = (
    ToolCallStreamingState
    | ToolCallPendingConfirmationState
    | ToolCallRunningState
    | ToolCallPendingResultConfirmationState
    | ToolCallCompletedState
    | ToolCallCancelledState
)


ToolResultContent = (
    ToolResultTextContent
    | ToolResultEmbeddedResourceContent
    | ToolResultResourceContent
    | ToolResultFileEditContent
    | ToolResultTerminalContent
    | ToolResultSubagentContent
)
