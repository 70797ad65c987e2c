"""Actions on `ahp-chat:/<id>`. `ahpkit.protocol.registry` says which of them a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.canvas.state import CanvasReference
from ahpkit.protocol.changeset.state import Changeset
from ahpkit.protocol.chat.state import (
    BackgroundWork,
    ChatInputAnswer,
    ChatInputRequest,
    ChatInputResponseKind,
    ConfirmationOption,
    ErrorResponsePart,
    Message,
    PendingMessageKind,
    ResponsePart,
    ToolCallBase,
    ToolCallConfirmationReason,
    ToolCallContributor,
    ToolCallEdits,
    ToolCallParameterFields,
    ToolCallResult,
    ToolCallRiskAssessment,
    ToolResultContent,
    Turn,
)
from ahpkit.protocol.common.state import URI, JsonObject, StringOrMarkdown, UsageInfo
from ahpkit.protocol.session.mcp import McpAuthRequirement


class ToolCallActionBase(TypedDict):
    """What all actions on a tool call have."""

    turnId: str
    toolCallId: str
    _meta: NotRequired[JsonObject]


class ChatTurnStartedAction(TypedDict):
    """A turn begins, perhaps with a queued message."""

    type: Literal["chat/turnStarted"]
    turnId: str
    startedAt: str
    message: Message
    queuedMessageId: NotRequired[str]
    _meta: NotRequired[JsonObject]


class ChatDeltaAction(TypedDict):
    """Text for a markdown part."""

    type: Literal["chat/delta"]
    turnId: str
    partId: str
    content: str
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
    content: NotRequired[str]
    invocationMessage: NotRequired[StringOrMarkdown]


class ChatToolCallReadyAction(ToolCallParameterFields, ToolCallActionBase):
    """The input is complete, or a call needs another approval, or what is shown before the approval changed."""

    type: Literal["chat/toolCallReady"]
    contributor: NotRequired[ToolCallContributor]
    intention: NotRequired[str]
    confirmationTitle: NotRequired[StringOrMarkdown]
    riskAssessment: NotRequired[ToolCallRiskAssessment]
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


class ChatToolCallResultConfirmedAction(ToolCallActionBase):
    """The model may see the result, or not."""

    type: Literal["chat/toolCallResultConfirmed"]
    approved: bool


class ChatToolCallContentChangedAction(ToolCallActionBase):
    """What a running tool has to show was replaced."""

    type: Literal["chat/toolCallContentChanged"]
    content: list[ToolResultContent]


class ChatToolCallAuthRequiredAction(ToolCallActionBase):
    """The MCP server of a running call wants a token."""

    type: Literal["chat/toolCallAuthRequired"]
    auth: McpAuthRequirement


class ChatToolCallAuthResolvedAction(ToolCallActionBase):
    """The MCP server has its token; the call goes on."""

    type: Literal["chat/toolCallAuthResolved"]


class ChatTurnCompleteAction(TypedDict):
    """The turn ended well, `duration` milliseconds after it began."""

    type: Literal["chat/turnComplete"]
    turnId: str
    duration: int | float
    _meta: NotRequired[JsonObject]


class ChatTurnCancelledAction(TypedDict):
    """The turn was cancelled."""

    type: Literal["chat/turnCancelled"]
    turnId: str
    duration: int | float
    _meta: NotRequired[JsonObject]


class ChatErrorAction(TypedDict):
    """The turn failed."""

    type: Literal["chat/error"]
    turnId: str
    duration: int | float
    part: ErrorResponsePart
    _meta: NotRequired[JsonObject]


class ChatTurnResumeAction(TypedDict):
    """The last turn, which failed, goes on."""

    type: Literal["chat/turnResume"]
    turnId: str


class ChatTurnsLoadedAction(TypedDict):
    """Older turns, oldest first; without `turnsNextCursor` there are no older ones."""

    type: Literal["chat/turnsLoaded"]
    turns: list[Turn]
    turnsNextCursor: NotRequired[str]


class ChatActivityChangedAction(TypedDict):
    """What the chat is doing, in words; absent: nothing to say."""

    type: Literal["chat/activityChanged"]
    activity: NotRequired[str]


class ChatDraftChangedAction(TypedDict):
    """The message that somebody is writing; absent: none."""

    type: Literal["chat/draftChanged"]
    draft: NotRequired[Message]


class ChatWorkingDirectorySetAction(TypedDict):
    """The chat works in one more directory of the session."""

    type: Literal["chat/workingDirectorySet"]
    directory: URI


class ChatWorkingDirectoryRemovedAction(TypedDict):
    """The chat works in a directory no longer."""

    type: Literal["chat/workingDirectoryRemoved"]
    directory: URI


class ChatIsReadChangedAction(TypedDict):
    """The chat was read, or marked unread."""

    type: Literal["chat/isReadChanged"]
    isRead: bool


class ChatIsArchivedChangedAction(TypedDict):
    """The chat went to the archive, or came back."""

    type: Literal["chat/isArchivedChanged"]
    isArchived: bool


class ChatMovableChangedAction(TypedDict):
    """Whether `moveChat` may take the chat elsewhere."""

    type: Literal["chat/movableChanged"]
    movable: bool


class ChatChangesetsChangedAction(TypedDict):
    """The chat's catalogue of changesets was replaced; absent: there is none."""

    type: Literal["chat/changesetsChanged"]
    changesets: NotRequired[list[Changeset]]


class ChatCanvasesChangedAction(TypedDict):
    """The chat's canvases were replaced; absent: there are none."""

    type: Literal["chat/canvasesChanged"]
    canvases: NotRequired[list[CanvasReference]]


class ChatBackgroundWorkSetAction(TypedDict):
    """Work beside the turns is new, or replaced as a whole."""

    type: Literal["chat/backgroundWorkSet"]
    work: BackgroundWork


class ChatBackgroundWorkRemovedAction(TypedDict):
    """Work beside the turns is over."""

    type: Literal["chat/backgroundWorkRemoved"]
    id: str


class ChatUsageAction(TypedDict):
    """Tokens used so far."""

    type: Literal["chat/usage"]
    turnId: str
    usage: UsageInfo
    _meta: NotRequired[JsonObject]


class ChatReasoningAction(TypedDict):
    """Text for a reasoning part."""

    type: Literal["chat/reasoning"]
    turnId: str
    partId: str
    content: str
    _meta: NotRequired[JsonObject]


class ChatTruncatedAction(TypedDict):
    """Only the turns up to and including `turnId` stay; without it none."""

    type: Literal["chat/truncated"]
    turnId: NotRequired[str]


class ChatPendingMessageSetAction(TypedDict):
    """A message waits, new or changed."""

    type: Literal["chat/pendingMessageSet"]
    kind: PendingMessageKind
    id: str
    message: Message


class ChatPendingMessageRemovedAction(TypedDict):
    """A message waits no longer."""

    type: Literal["chat/pendingMessageRemoved"]
    kind: PendingMessageKind
    id: str


class ChatQueuedMessagesReorderedAction(TypedDict):
    """The queue has another order."""

    type: Literal["chat/queuedMessagesReordered"]
    order: list[str]


class ChatInputRequestedAction(TypedDict):
    """The agent asks, again or for the first time."""

    type: Literal["chat/inputRequested"]
    request: ChatInputRequest


class ChatInputAnswerChangedAction(TypedDict):
    """One answer changed; absent: removed."""

    type: Literal["chat/inputAnswerChanged"]
    requestId: str
    questionId: str
    answer: NotRequired[ChatInputAnswer]


class ChatInputCompletedAction(TypedDict):
    """The questions are dealt with."""

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
    | ChatToolCallAuthRequiredAction
    | ChatToolCallAuthResolvedAction
    | ChatTurnCompleteAction
    | ChatTurnCancelledAction
    | ChatErrorAction
    | ChatTurnResumeAction
    | ChatTurnsLoadedAction
    | ChatActivityChangedAction
    | ChatDraftChangedAction
    | ChatWorkingDirectorySetAction
    | ChatWorkingDirectoryRemovedAction
    | ChatIsReadChangedAction
    | ChatIsArchivedChangedAction
    | ChatMovableChangedAction
    | ChatChangesetsChangedAction
    | ChatCanvasesChangedAction
    | ChatBackgroundWorkSetAction
    | ChatBackgroundWorkRemovedAction
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


__all__ = [
    "ChatAction",
    "ChatActivityChangedAction",
    "ChatBackgroundWorkRemovedAction",
    "ChatBackgroundWorkSetAction",
    "ChatCanvasesChangedAction",
    "ChatChangesetsChangedAction",
    "ChatDeltaAction",
    "ChatDraftChangedAction",
    "ChatErrorAction",
    "ChatInputAnswerChangedAction",
    "ChatInputCompletedAction",
    "ChatInputRequestedAction",
    "ChatIsArchivedChangedAction",
    "ChatIsReadChangedAction",
    "ChatMovableChangedAction",
    "ChatPendingMessageRemovedAction",
    "ChatPendingMessageSetAction",
    "ChatQueuedMessagesReorderedAction",
    "ChatReasoningAction",
    "ChatResponsePartAction",
    "ChatToolCallApprovedAction",
    "ChatToolCallAuthRequiredAction",
    "ChatToolCallAuthResolvedAction",
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
    "ChatTurnResumeAction",
    "ChatTurnStartedAction",
    "ChatTurnsLoadedAction",
    "ChatUsageAction",
    "ChatWorkingDirectoryRemovedAction",
    "ChatWorkingDirectorySetAction",
    "ToolCallActionBase",
]
