from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.chat.state import (
    ChatInputAnswer,
    ChatInputRequest,
    ChatInputResponseKind,
    ConfirmationOption,
    Message,
    PendingMessageKind,
    ResponsePart,
    ToolCallBase,
    ToolCallConfirmationReason,
    ToolCallParameterFields,
    ToolCallResult,
    ToolResultContent,
    UsageInfo,
)
from ahpkit.protocol.common.state import ErrorInfo, JsonObject, JsonValue, StringOrMarkdown


class ToolCallActionBase(TypedDict):
    turnId: str
    toolCallId: str
    _meta: NotRequired[JsonObject]


class ChatTurnStartedAction(TypedDict):
    type: Literal["chat/turnStarted"]
    turnId: str
    message: Message
    queuedMessageId: NotRequired[str]
    _meta: NotRequired[JsonObject]


class ChatDeltaAction(TypedDict):
    type: Literal["chat/delta"]
    turnId: str
    partId: str
    content: str
    _meta: NotRequired[JsonObject]


class ChatResponsePartAction(TypedDict):
    type: Literal["chat/responsePart"]
    turnId: str
    part: ResponsePart
    _meta: NotRequired[JsonObject]


class ChatToolCallStartAction(ToolCallBase, ToolCallActionBase):
    type: Literal["chat/toolCallStart"]


class ChatToolCallDeltaAction(ToolCallActionBase):
    type: Literal["chat/toolCallDelta"]
    content: str
    invocationMessage: NotRequired[StringOrMarkdown]


class ChatToolCallReadyAction(ToolCallParameterFields, ToolCallActionBase):
    type: Literal["chat/toolCallReady"]
    confirmationTitle: NotRequired[StringOrMarkdown]
    edits: NotRequired[JsonObject]  # INLINE {"items": ["str", true]}
    editable: NotRequired[bool]
    confirmed: NotRequired[ToolCallConfirmationReason]
    options: NotRequired[list[ConfirmationOption]]


class ChatToolCallApprovedAction(ToolCallActionBase):
    type: Literal["chat/toolCallConfirmed"]
    approved: JsonValue
    confirmed: ToolCallConfirmationReason
    editedToolInput: NotRequired[str]
    selectedOptionId: NotRequired[str]


class ChatToolCallDeniedAction(ToolCallActionBase):
    type: Literal["chat/toolCallConfirmed"]
    approved: JsonValue
    reason: Literal["denied"] | Literal["skipped"]
    userSuggestion: NotRequired[Message]
    reasonMessage: NotRequired[StringOrMarkdown]
    selectedOptionId: NotRequired[str]


class ChatToolCallCompleteAction(ToolCallActionBase):
    type: Literal["chat/toolCallComplete"]
    result: ToolCallResult
    requiresResultConfirmation: NotRequired[bool]


class ChatToolCallResultConfirmedAction(ToolCallActionBase):
    type: Literal["chat/toolCallResultConfirmed"]
    approved: bool


class ChatToolCallContentChangedAction(ToolCallActionBase):
    type: Literal["chat/toolCallContentChanged"]
    content: list[ToolResultContent]


class ChatTurnCompleteAction(TypedDict):
    type: Literal["chat/turnComplete"]
    turnId: str
    _meta: NotRequired[JsonObject]


class ChatTurnCancelledAction(TypedDict):
    type: Literal["chat/turnCancelled"]
    turnId: str
    _meta: NotRequired[JsonObject]


class ChatErrorAction(TypedDict):
    type: Literal["chat/error"]
    turnId: str
    error: ErrorInfo
    _meta: NotRequired[JsonObject]


class ChatUsageAction(TypedDict):
    type: Literal["chat/usage"]
    turnId: str
    usage: UsageInfo
    _meta: NotRequired[JsonObject]


class ChatReasoningAction(TypedDict):
    type: Literal["chat/reasoning"]
    turnId: str
    partId: str
    content: str
    _meta: NotRequired[JsonObject]


class ChatTruncatedAction(TypedDict):
    type: Literal["chat/truncated"]
    turnId: NotRequired[str]


class ChatPendingMessageSetAction(TypedDict):
    type: Literal["chat/pendingMessageSet"]
    kind: PendingMessageKind
    id: str
    message: Message


class ChatPendingMessageRemovedAction(TypedDict):
    type: Literal["chat/pendingMessageRemoved"]
    kind: PendingMessageKind
    id: str


class ChatQueuedMessagesReorderedAction(TypedDict):
    type: Literal["chat/queuedMessagesReordered"]
    order: list[str]


class ChatInputRequestedAction(TypedDict):
    type: Literal["chat/inputRequested"]
    request: ChatInputRequest


class ChatInputAnswerChangedAction(TypedDict):
    type: Literal["chat/inputAnswerChanged"]
    requestId: str
    questionId: str
    answer: NotRequired[ChatInputAnswer]


class ChatInputCompletedAction(TypedDict):
    type: Literal["chat/inputCompleted"]
    requestId: str
    response: ChatInputResponseKind
    answers: NotRequired[dict[str, ChatInputAnswer]]


ChatToolCallConfirmedAction = ChatToolCallApprovedAction | ChatToolCallDeniedAction


ChatAction = (
    ChatTurnStartedAction
    | ChatDeltaAction
    | ChatResponsePartAction
    | ChatToolCallStartAction
    | ChatToolCallDeltaAction
    | ChatToolCallReadyAction
    | ChatToolCallConfirmedAction
    | ChatToolCallCompleteAction
    | ChatToolCallResultConfirmedAction
    | ChatToolCallContentChangedAction
    | ChatTurnCompleteAction
    | ChatTurnCancelledAction
    | ChatErrorAction
    | ChatUsageAction
    | ChatReasoningAction
    | ChatTruncatedAction
    | ChatPendingMessageSetAction
    | ChatPendingMessageRemovedAction
    | ChatQueuedMessagesReorderedAction
    | ChatInputRequestedAction
    | ChatInputAnswerChangedAction
    | ChatInputCompletedAction
)
