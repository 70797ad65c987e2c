"""Actions and commands of chats of 0.4.0. The registry says which actions a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.chat.state import (
    ChatInputAnswer,
    ChatInputRequest,
    ChatInputResponseKind,
    ConfirmationOption,
    Message,
    MessageAttachment,
    PendingMessageKind,
    ResponsePart,
    ToolCallBase,
    ToolCallConfirmationReason,
    ToolCallEdits,
    ToolCallParameterFields,
    ToolCallResult,
    ToolResultContent,
    Turn,
)
from ahpkit.dialects.v0_4.common import (
    URI,
    AgentSelection,
    BaseParams,
    ErrorInfo,
    JsonObject,
    ModelSelection,
    StringOrMarkdown,
)
from ahpkit.protocol.chat.actions import (
    ChatDeltaAction,
    ChatPendingMessageRemovedAction,
    ChatQueuedMessagesReorderedAction,
    ChatReasoningAction,
    ChatToolCallResultConfirmedAction,
    ChatTruncatedAction,
    ChatUsageAction,
    ToolCallActionBase,
)


class ChatTurnStartedAction(TypedDict):
    """A turn begins, perhaps with a queued message."""

    type: Literal["chat/turnStarted"]
    turnId: str
    message: Message
    queuedMessageId: NotRequired[str]
    _meta: NotRequired[JsonObject]


class ChatResponsePartAction(TypedDict):
    """A new part of the response."""

    type: Literal["chat/responsePart"]
    turnId: str
    part: ResponsePart
    _meta: NotRequired[JsonObject]


class ChatToolCallStartAction(ToolCallBase, ToolCallActionBase):
    """The model calls a tool; its input follows."""

    type: Literal["chat/toolCallStart"]


class ChatToolCallDeltaAction(ToolCallActionBase):
    """More of a tool's input."""

    type: Literal["chat/toolCallDelta"]
    content: str
    invocationMessage: NotRequired[StringOrMarkdown]


class ChatToolCallReadyAction(ToolCallParameterFields, ToolCallActionBase):
    """The input is complete, or a running tool needs another approval."""

    type: Literal["chat/toolCallReady"]
    confirmationTitle: NotRequired[StringOrMarkdown]
    edits: NotRequired[ToolCallEdits]
    editable: NotRequired[bool]
    confirmed: NotRequired[ToolCallConfirmationReason]
    options: NotRequired[list[ConfirmationOption]]


class ChatToolCallApprovedAction(ToolCallActionBase):
    """The call may run."""

    type: Literal["chat/toolCallConfirmed"]
    approved: Literal[True]
    confirmed: ToolCallConfirmationReason
    editedToolInput: NotRequired[str]
    selectedOptionId: NotRequired[str]


class ChatToolCallDeniedAction(ToolCallActionBase):
    """The call must not run."""

    type: Literal["chat/toolCallConfirmed"]
    approved: Literal[False]
    reason: Literal["denied", "skipped"]
    userSuggestion: NotRequired[Message]
    reasonMessage: NotRequired[StringOrMarkdown]
    selectedOptionId: NotRequired[str]


class ChatToolCallCompleteAction(ToolCallActionBase):
    """The tool returned."""

    type: Literal["chat/toolCallComplete"]
    result: ToolCallResult
    requiresResultConfirmation: NotRequired[bool]


class ChatToolCallContentChangedAction(ToolCallActionBase):
    """The content that a running tool shows was replaced."""

    type: Literal["chat/toolCallContentChanged"]
    content: list[ToolResultContent]


class ChatTurnCompleteAction(TypedDict):
    """The turn ended well."""

    type: Literal["chat/turnComplete"]
    turnId: str
    _meta: NotRequired[JsonObject]


class ChatTurnCancelledAction(TypedDict):
    """The turn was cancelled."""

    type: Literal["chat/turnCancelled"]
    turnId: str
    _meta: NotRequired[JsonObject]


class ChatErrorAction(TypedDict):
    """The turn failed."""

    type: Literal["chat/error"]
    turnId: str
    error: ErrorInfo
    _meta: NotRequired[JsonObject]


class ChatPendingMessageSetAction(TypedDict):
    """A waiting message is new, or was changed."""

    type: Literal["chat/pendingMessageSet"]
    kind: PendingMessageKind
    id: str
    message: Message


class ChatInputRequestedAction(TypedDict):
    """The agent asks questions, or asks them again."""

    type: Literal["chat/inputRequested"]
    request: ChatInputRequest


class ChatInputAnswerChangedAction(TypedDict):
    """One answer changed; absent: removed."""

    type: Literal["chat/inputAnswerChanged"]
    requestId: str
    questionId: str
    answer: NotRequired[ChatInputAnswer]


class ChatInputCompletedAction(TypedDict):
    """The questions were answered, declined or cancelled."""

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


CompletionItemKind = Literal["userMessage"]


class ChatForkSource(TypedDict):
    """The chat to copy, up to and including the response of `turnId`."""

    chat: URI
    turnId: str


class CreateChatParams(BaseParams):
    """`createChat`: `channel` is the session, `chat` the URI that the client chooses. Answered with null."""

    chat: URI
    initialMessage: NotRequired[Message]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    source: NotRequired[ChatForkSource]


class DisposeChatParams(BaseParams):
    """`disposeChat`. Answered with null."""


class FetchTurnsParams(BaseParams):
    """`fetchTurns`: at most `limit` turns before the turn `before`, or the last ones."""

    before: NotRequired[str]
    limit: NotRequired[int]


class FetchTurnsResult(TypedDict):
    """The turns, oldest first."""

    turns: list[Turn]
    hasMore: bool


class CompletionsParams(BaseParams):
    """`completions` at `offset` of `text`, counted in UTF-16 code units."""

    kind: CompletionItemKind
    text: str
    offset: int


class CompletionItem(TypedDict):
    """One completion. Choosing it replaces the range by `insertText` and adds `attachment` to the message."""

    insertText: str
    rangeStart: NotRequired[int]
    rangeEnd: NotRequired[int]
    attachment: MessageAttachment


class CompletionsResult(TypedDict):
    """The items, in the order in which to show them."""

    items: list[CompletionItem]


__all__ = [
    "ChatAction",
    "ChatDeltaAction",
    "ChatErrorAction",
    "ChatForkSource",
    "ChatInputAnswerChangedAction",
    "ChatInputCompletedAction",
    "ChatInputRequestedAction",
    "ChatPendingMessageRemovedAction",
    "ChatPendingMessageSetAction",
    "ChatQueuedMessagesReorderedAction",
    "ChatReasoningAction",
    "ChatResponsePartAction",
    "ChatToolCallApprovedAction",
    "ChatToolCallCompleteAction",
    "ChatToolCallConfirmedAction",
    "ChatToolCallContentChangedAction",
    "ChatToolCallDeltaAction",
    "ChatToolCallDeniedAction",
    "ChatToolCallReadyAction",
    "ChatToolCallResultConfirmedAction",
    "ChatToolCallStartAction",
    "ChatTruncatedAction",
    "ChatTurnCancelledAction",
    "ChatTurnCompleteAction",
    "ChatTurnStartedAction",
    "ChatUsageAction",
    "CompletionItem",
    "CompletionItemKind",
    "CompletionsParams",
    "CompletionsResult",
    "CreateChatParams",
    "DisposeChatParams",
    "FetchTurnsParams",
    "FetchTurnsResult",
    "ToolCallActionBase",
]
