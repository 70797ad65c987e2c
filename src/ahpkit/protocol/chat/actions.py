"""Actions on `ahp-chat:/<id>`, each with its constructor. The registry says which of them a client may dispatch.

It is long because the protocol has that many actions of chats. An action and its constructor change together.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.canvas import CanvasReference
from ahpkit.protocol.changeset import Changeset
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
from ahpkit.protocol.chat.tool_call_state import ToolInput
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


def chat_turn_started(
    *,
    turn_id: str,
    started_at: str,
    message: Message,
    queued_message_id: str | None = None,
    meta: JsonObject | None = None,
) -> ChatTurnStartedAction:
    """A turn begins, perhaps with a queued message."""
    action: ChatTurnStartedAction = {
        "type": "chat/turnStarted",
        "turnId": turn_id,
        "startedAt": started_at,
        "message": message,
    }
    if queued_message_id is not None:
        action["queuedMessageId"] = queued_message_id
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatDeltaAction(TypedDict):
    """Text for a markdown part."""

    type: Literal["chat/delta"]
    turnId: str
    partId: str
    content: str
    _meta: NotRequired[JsonObject]


def chat_delta(*, turn_id: str, part_id: str, content: str, meta: JsonObject | None = None) -> ChatDeltaAction:
    """Text for a markdown part."""
    action: ChatDeltaAction = {"type": "chat/delta", "turnId": turn_id, "partId": part_id, "content": content}
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatResponsePartAction(TypedDict):
    """A new part of the response."""

    type: Literal["chat/responsePart"]
    turnId: str
    part: ResponsePart
    _meta: NotRequired[JsonObject]


def chat_response_part(*, turn_id: str, part: ResponsePart, meta: JsonObject | None = None) -> ChatResponsePartAction:
    """A new part of the response."""
    action: ChatResponsePartAction = {"type": "chat/responsePart", "turnId": turn_id, "part": part}
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallStartAction(ToolCallBase, ToolCallActionBase):
    """The model calls a tool; its input follows."""

    type: Literal["chat/toolCallStart"]


def chat_tool_call_start(
    *,
    turn_id: str,
    tool_call_id: str,
    tool_name: str,
    display_name: str,
    intention: str | None = None,
    contributor: ToolCallContributor | None = None,
    meta: JsonObject | None = None,
) -> ChatToolCallStartAction:
    """The model calls a tool; its input follows."""
    action: ChatToolCallStartAction = {
        "type": "chat/toolCallStart",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "toolName": tool_name,
        "displayName": display_name,
    }
    if intention is not None:
        action["intention"] = intention
    if contributor is not None:
        action["contributor"] = contributor
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallDeltaAction(ToolCallActionBase):
    """More of a tool's input."""

    type: Literal["chat/toolCallDelta"]
    content: NotRequired[str]
    invocationMessage: NotRequired[StringOrMarkdown]


def chat_tool_call_delta(
    *,
    turn_id: str,
    tool_call_id: str,
    content: str | None = None,
    invocation_message: StringOrMarkdown | None = None,
    meta: JsonObject | None = None,
) -> ChatToolCallDeltaAction:
    """More of a tool's input."""
    action: ChatToolCallDeltaAction = {"type": "chat/toolCallDelta", "turnId": turn_id, "toolCallId": tool_call_id}
    if content is not None:
        action["content"] = content
    if invocation_message is not None:
        action["invocationMessage"] = invocation_message
    if meta is not None:
        action["_meta"] = meta
    return action


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


def chat_tool_call_ready(
    *,
    turn_id: str,
    tool_call_id: str,
    invocation_message: StringOrMarkdown,
    tool_input: ToolInput | None = None,
    contributor: ToolCallContributor | None = None,
    intention: str | None = None,
    confirmation_title: StringOrMarkdown | None = None,
    risk_assessment: ToolCallRiskAssessment | None = None,
    edits: ToolCallEdits | None = None,
    editable: bool | None = None,
    confirmed: ToolCallConfirmationReason | None = None,
    options: list[ConfirmationOption] | None = None,
    meta: JsonObject | None = None,
) -> ChatToolCallReadyAction:
    """The input is complete, or a call needs another approval, or what is shown before the approval changed."""
    action: ChatToolCallReadyAction = {
        "type": "chat/toolCallReady",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "invocationMessage": invocation_message,
    }
    if tool_input is not None:
        action["toolInput"] = tool_input
    if contributor is not None:
        action["contributor"] = contributor
    if intention is not None:
        action["intention"] = intention
    if confirmation_title is not None:
        action["confirmationTitle"] = confirmation_title
    if risk_assessment is not None:
        action["riskAssessment"] = risk_assessment
    if edits is not None:
        action["edits"] = edits
    if editable is not None:
        action["editable"] = editable
    if confirmed is not None:
        action["confirmed"] = confirmed
    if options is not None:
        action["options"] = options
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallApprovedAction(ToolCallActionBase):
    """The call may run."""

    type: Literal["chat/toolCallConfirmed"]
    approved: Literal[True]
    confirmed: ToolCallConfirmationReason
    editedToolInput: NotRequired[str]
    selectedOptionId: NotRequired[str]


def chat_tool_call_approved(
    *,
    turn_id: str,
    tool_call_id: str,
    confirmed: ToolCallConfirmationReason,
    edited_tool_input: str | None = None,
    selected_option_id: str | None = None,
    meta: JsonObject | None = None,
) -> ChatToolCallApprovedAction:
    """The call may run."""
    action: ChatToolCallApprovedAction = {
        "type": "chat/toolCallConfirmed",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "approved": True,
        "confirmed": confirmed,
    }
    if edited_tool_input is not None:
        action["editedToolInput"] = edited_tool_input
    if selected_option_id is not None:
        action["selectedOptionId"] = selected_option_id
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallDeniedAction(ToolCallActionBase):
    """The call must not run."""

    type: Literal["chat/toolCallConfirmed"]
    approved: Literal[False]
    reason: Literal["denied", "skipped"]
    userSuggestion: NotRequired[Message]
    reasonMessage: NotRequired[StringOrMarkdown]
    selectedOptionId: NotRequired[str]


def chat_tool_call_denied(
    *,
    turn_id: str,
    tool_call_id: str,
    reason: Literal["denied", "skipped"],
    user_suggestion: Message | None = None,
    reason_message: StringOrMarkdown | None = None,
    selected_option_id: str | None = None,
    meta: JsonObject | None = None,
) -> ChatToolCallDeniedAction:
    """The call must not run."""
    action: ChatToolCallDeniedAction = {
        "type": "chat/toolCallConfirmed",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "approved": False,
        "reason": reason,
    }
    if user_suggestion is not None:
        action["userSuggestion"] = user_suggestion
    if reason_message is not None:
        action["reasonMessage"] = reason_message
    if selected_option_id is not None:
        action["selectedOptionId"] = selected_option_id
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallCompleteAction(ToolCallActionBase):
    """The tool returned."""

    type: Literal["chat/toolCallComplete"]
    result: ToolCallResult
    requiresResultConfirmation: NotRequired[bool]


def chat_tool_call_complete(
    *,
    turn_id: str,
    tool_call_id: str,
    result: ToolCallResult,
    requires_result_confirmation: bool | None = None,
    meta: JsonObject | None = None,
) -> ChatToolCallCompleteAction:
    """The tool returned."""
    action: ChatToolCallCompleteAction = {
        "type": "chat/toolCallComplete",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "result": result,
    }
    if requires_result_confirmation is not None:
        action["requiresResultConfirmation"] = requires_result_confirmation
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallResultConfirmedAction(ToolCallActionBase):
    """The model may see the result, or not."""

    type: Literal["chat/toolCallResultConfirmed"]
    approved: bool


def chat_tool_call_result_confirmed(
    *, turn_id: str, tool_call_id: str, approved: bool, meta: JsonObject | None = None
) -> ChatToolCallResultConfirmedAction:
    """The model may see the result, or not."""
    action: ChatToolCallResultConfirmedAction = {
        "type": "chat/toolCallResultConfirmed",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "approved": approved,
    }
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallContentChangedAction(ToolCallActionBase):
    """The content that a running tool shows was replaced."""

    type: Literal["chat/toolCallContentChanged"]
    content: list[ToolResultContent]


def chat_tool_call_content_changed(
    *, turn_id: str, tool_call_id: str, content: list[ToolResultContent], meta: JsonObject | None = None
) -> ChatToolCallContentChangedAction:
    """The content that a running tool shows was replaced."""
    action: ChatToolCallContentChangedAction = {
        "type": "chat/toolCallContentChanged",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "content": content,
    }
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallAuthRequiredAction(ToolCallActionBase):
    """The MCP server of a running call wants a token."""

    type: Literal["chat/toolCallAuthRequired"]
    auth: McpAuthRequirement


def chat_tool_call_auth_required(
    *, turn_id: str, tool_call_id: str, auth: McpAuthRequirement, meta: JsonObject | None = None
) -> ChatToolCallAuthRequiredAction:
    """The MCP server of a running call wants a token."""
    action: ChatToolCallAuthRequiredAction = {
        "type": "chat/toolCallAuthRequired",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
        "auth": auth,
    }
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatToolCallAuthResolvedAction(ToolCallActionBase):
    """The MCP server has its token; the call goes on."""

    type: Literal["chat/toolCallAuthResolved"]


def chat_tool_call_auth_resolved(
    *, turn_id: str, tool_call_id: str, meta: JsonObject | None = None
) -> ChatToolCallAuthResolvedAction:
    """The MCP server has its token; the call goes on."""
    action: ChatToolCallAuthResolvedAction = {
        "type": "chat/toolCallAuthResolved",
        "turnId": turn_id,
        "toolCallId": tool_call_id,
    }
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatTurnCompleteAction(TypedDict):
    """The turn ended well, `duration` milliseconds after it began."""

    type: Literal["chat/turnComplete"]
    turnId: str
    duration: int | float
    _meta: NotRequired[JsonObject]


def chat_turn_complete(
    *, turn_id: str, duration: int | float, meta: JsonObject | None = None
) -> ChatTurnCompleteAction:
    """The turn ended well, `duration` milliseconds after it began."""
    action: ChatTurnCompleteAction = {"type": "chat/turnComplete", "turnId": turn_id, "duration": duration}
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatTurnCancelledAction(TypedDict):
    """The turn was cancelled."""

    type: Literal["chat/turnCancelled"]
    turnId: str
    duration: int | float
    _meta: NotRequired[JsonObject]


def chat_turn_cancelled(
    *, turn_id: str, duration: int | float, meta: JsonObject | None = None
) -> ChatTurnCancelledAction:
    """The turn was cancelled."""
    action: ChatTurnCancelledAction = {"type": "chat/turnCancelled", "turnId": turn_id, "duration": duration}
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatErrorAction(TypedDict):
    """The turn failed."""

    type: Literal["chat/error"]
    turnId: str
    duration: int | float
    part: ErrorResponsePart
    _meta: NotRequired[JsonObject]


def chat_error(
    *, turn_id: str, duration: int | float, part: ErrorResponsePart, meta: JsonObject | None = None
) -> ChatErrorAction:
    """The turn failed."""
    action: ChatErrorAction = {"type": "chat/error", "turnId": turn_id, "duration": duration, "part": part}
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatTurnResumeAction(TypedDict):
    """The last turn, which failed, goes on."""

    type: Literal["chat/turnResume"]
    turnId: str


def chat_turn_resume(*, turn_id: str) -> ChatTurnResumeAction:
    """The last turn, which failed, goes on."""
    return {"type": "chat/turnResume", "turnId": turn_id}


class ChatTurnsLoadedAction(TypedDict):
    """Older turns, oldest first; without `turnsNextCursor` there are no older ones."""

    type: Literal["chat/turnsLoaded"]
    turns: list[Turn]
    turnsNextCursor: NotRequired[str]


def chat_turns_loaded(*, turns: list[Turn], turns_next_cursor: str | None = None) -> ChatTurnsLoadedAction:
    """Older turns, oldest first; without `turnsNextCursor` there are no older ones."""
    action: ChatTurnsLoadedAction = {"type": "chat/turnsLoaded", "turns": turns}
    if turns_next_cursor is not None:
        action["turnsNextCursor"] = turns_next_cursor
    return action


class ChatActivityChangedAction(TypedDict):
    """What the chat is doing, in words; absent: nothing to report."""

    type: Literal["chat/activityChanged"]
    activity: NotRequired[str]


def chat_activity_changed(*, activity: str | None = None) -> ChatActivityChangedAction:
    """What the chat is doing, in words; absent: nothing to report."""
    action: ChatActivityChangedAction = {"type": "chat/activityChanged"}
    if activity is not None:
        action["activity"] = activity
    return action


class ChatDraftChangedAction(TypedDict):
    """The message that somebody is writing; absent: none."""

    type: Literal["chat/draftChanged"]
    draft: NotRequired[Message]


def chat_draft_changed(*, draft: Message | None = None) -> ChatDraftChangedAction:
    """The message that somebody is writing; absent: none."""
    action: ChatDraftChangedAction = {"type": "chat/draftChanged"}
    if draft is not None:
        action["draft"] = draft
    return action


class ChatWorkingDirectorySetAction(TypedDict):
    """The chat works in one more directory of the session."""

    type: Literal["chat/workingDirectorySet"]
    directory: URI


def chat_working_directory_set(*, directory: URI) -> ChatWorkingDirectorySetAction:
    """The chat works in one more directory of the session."""
    return {"type": "chat/workingDirectorySet", "directory": directory}


class ChatWorkingDirectoryRemovedAction(TypedDict):
    """The chat no longer works in a directory."""

    type: Literal["chat/workingDirectoryRemoved"]
    directory: URI


def chat_working_directory_removed(*, directory: URI) -> ChatWorkingDirectoryRemovedAction:
    """The chat no longer works in a directory."""
    return {"type": "chat/workingDirectoryRemoved", "directory": directory}


class ChatIsReadChangedAction(TypedDict):
    """The chat was read, or marked unread."""

    type: Literal["chat/isReadChanged"]
    isRead: bool


def chat_is_read_changed(*, is_read: bool) -> ChatIsReadChangedAction:
    """The chat was read, or marked unread."""
    return {"type": "chat/isReadChanged", "isRead": is_read}


class ChatIsArchivedChangedAction(TypedDict):
    """The chat went to the archive, or came back."""

    type: Literal["chat/isArchivedChanged"]
    isArchived: bool


def chat_is_archived_changed(*, is_archived: bool) -> ChatIsArchivedChangedAction:
    """The chat went to the archive, or came back."""
    return {"type": "chat/isArchivedChanged", "isArchived": is_archived}


class ChatMovableChangedAction(TypedDict):
    """Whether `moveChat` may take the chat elsewhere."""

    type: Literal["chat/movableChanged"]
    movable: bool


def chat_movable_changed(*, movable: bool) -> ChatMovableChangedAction:
    """Whether `moveChat` may take the chat elsewhere."""
    return {"type": "chat/movableChanged", "movable": movable}


class ChatChangesetsChangedAction(TypedDict):
    """The chat's catalogue of changesets was replaced; absent: there is none."""

    type: Literal["chat/changesetsChanged"]
    changesets: NotRequired[list[Changeset]]


def chat_changesets_changed(*, changesets: list[Changeset] | None = None) -> ChatChangesetsChangedAction:
    """The chat's catalogue of changesets was replaced; absent: there is none."""
    action: ChatChangesetsChangedAction = {"type": "chat/changesetsChanged"}
    if changesets is not None:
        action["changesets"] = changesets
    return action


class ChatCanvasesChangedAction(TypedDict):
    """The chat's canvases were replaced; absent: there are none."""

    type: Literal["chat/canvasesChanged"]
    canvases: NotRequired[list[CanvasReference]]


def chat_canvases_changed(*, canvases: list[CanvasReference] | None = None) -> ChatCanvasesChangedAction:
    """The chat's canvases were replaced; absent: there are none."""
    action: ChatCanvasesChangedAction = {"type": "chat/canvasesChanged"}
    if canvases is not None:
        action["canvases"] = canvases
    return action


class ChatBackgroundWorkSetAction(TypedDict):
    """Work beside the turns is new, or replaced as a whole."""

    type: Literal["chat/backgroundWorkSet"]
    work: BackgroundWork


def chat_background_work_set(*, work: BackgroundWork) -> ChatBackgroundWorkSetAction:
    """Work beside the turns is new, or replaced as a whole."""
    return {"type": "chat/backgroundWorkSet", "work": work}


class ChatBackgroundWorkRemovedAction(TypedDict):
    """Work beside the turns is over."""

    type: Literal["chat/backgroundWorkRemoved"]
    id: str


def chat_background_work_removed(*, id: str) -> ChatBackgroundWorkRemovedAction:
    """Work beside the turns is over."""
    return {"type": "chat/backgroundWorkRemoved", "id": id}


class ChatUsageAction(TypedDict):
    """Tokens used so far."""

    type: Literal["chat/usage"]
    turnId: str
    usage: UsageInfo
    _meta: NotRequired[JsonObject]


def chat_usage(*, turn_id: str, usage: UsageInfo, meta: JsonObject | None = None) -> ChatUsageAction:
    """Tokens used so far."""
    action: ChatUsageAction = {"type": "chat/usage", "turnId": turn_id, "usage": usage}
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatReasoningAction(TypedDict):
    """Text for a reasoning part."""

    type: Literal["chat/reasoning"]
    turnId: str
    partId: str
    content: str
    _meta: NotRequired[JsonObject]


def chat_reasoning(*, turn_id: str, part_id: str, content: str, meta: JsonObject | None = None) -> ChatReasoningAction:
    """Text for a reasoning part."""
    action: ChatReasoningAction = {"type": "chat/reasoning", "turnId": turn_id, "partId": part_id, "content": content}
    if meta is not None:
        action["_meta"] = meta
    return action


class ChatTruncatedAction(TypedDict):
    """Only the turns up to and including `turnId` stay; without it none."""

    type: Literal["chat/truncated"]
    turnId: NotRequired[str]


def chat_truncated(*, turn_id: str | None = None) -> ChatTruncatedAction:
    """Only the turns up to and including `turnId` stay; without it none."""
    action: ChatTruncatedAction = {"type": "chat/truncated"}
    if turn_id is not None:
        action["turnId"] = turn_id
    return action


class ChatPendingMessageSetAction(TypedDict):
    """A waiting message is new, or was changed."""

    type: Literal["chat/pendingMessageSet"]
    kind: PendingMessageKind
    id: str
    message: Message


def chat_pending_message_set(*, kind: PendingMessageKind, id: str, message: Message) -> ChatPendingMessageSetAction:
    """A waiting message is new, or was changed."""
    return {"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message}


class ChatPendingMessageRemovedAction(TypedDict):
    """A waiting message was removed."""

    type: Literal["chat/pendingMessageRemoved"]
    kind: PendingMessageKind
    id: str


def chat_pending_message_removed(*, kind: PendingMessageKind, id: str) -> ChatPendingMessageRemovedAction:
    """A waiting message was removed."""
    return {"type": "chat/pendingMessageRemoved", "kind": kind, "id": id}


class ChatQueuedMessagesReorderedAction(TypedDict):
    """The queued messages were reordered."""

    type: Literal["chat/queuedMessagesReordered"]
    order: list[str]


def chat_queued_messages_reordered(*, order: list[str]) -> ChatQueuedMessagesReorderedAction:
    """The queued messages were reordered."""
    return {"type": "chat/queuedMessagesReordered", "order": order}


class ChatInputRequestedAction(TypedDict):
    """The agent asks questions, or asks them again."""

    type: Literal["chat/inputRequested"]
    request: ChatInputRequest


def chat_input_requested(*, request: ChatInputRequest) -> ChatInputRequestedAction:
    """The agent asks questions, or asks them again."""
    return {"type": "chat/inputRequested", "request": request}


class ChatInputAnswerChangedAction(TypedDict):
    """One answer changed; absent: removed."""

    type: Literal["chat/inputAnswerChanged"]
    requestId: str
    questionId: str
    answer: NotRequired[ChatInputAnswer]


def chat_input_answer_changed(
    *, request_id: str, question_id: str, answer: ChatInputAnswer | None = None
) -> ChatInputAnswerChangedAction:
    """One answer changed; absent: removed."""
    action: ChatInputAnswerChangedAction = {
        "type": "chat/inputAnswerChanged",
        "requestId": request_id,
        "questionId": question_id,
    }
    if answer is not None:
        action["answer"] = answer
    return action


class ChatInputCompletedAction(TypedDict):
    """The questions were answered, declined or cancelled."""

    type: Literal["chat/inputCompleted"]
    requestId: str
    response: ChatInputResponseKind
    answers: NotRequired[dict[str, ChatInputAnswer]]


def chat_input_completed(
    *, request_id: str, response: ChatInputResponseKind, answers: dict[str, ChatInputAnswer] | None = None
) -> ChatInputCompletedAction:
    """The questions were answered, declined or cancelled."""
    action: ChatInputCompletedAction = {"type": "chat/inputCompleted", "requestId": request_id, "response": response}
    if answers is not None:
        action["answers"] = answers
    return action


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
    "chat_activity_changed",
    "chat_background_work_removed",
    "chat_background_work_set",
    "chat_canvases_changed",
    "chat_changesets_changed",
    "chat_delta",
    "chat_draft_changed",
    "chat_error",
    "chat_input_answer_changed",
    "chat_input_completed",
    "chat_input_requested",
    "chat_is_archived_changed",
    "chat_is_read_changed",
    "chat_movable_changed",
    "chat_pending_message_removed",
    "chat_pending_message_set",
    "chat_queued_messages_reordered",
    "chat_reasoning",
    "chat_response_part",
    "chat_tool_call_approved",
    "chat_tool_call_auth_required",
    "chat_tool_call_auth_resolved",
    "chat_tool_call_complete",
    "chat_tool_call_content_changed",
    "chat_tool_call_delta",
    "chat_tool_call_denied",
    "chat_tool_call_ready",
    "chat_tool_call_result_confirmed",
    "chat_tool_call_start",
    "chat_truncated",
    "chat_turn_cancelled",
    "chat_turn_complete",
    "chat_turn_resume",
    "chat_turn_started",
    "chat_turns_loaded",
    "chat_usage",
    "chat_working_directory_removed",
    "chat_working_directory_set",
]
