"""The chat channel's reducer: turns, streamed text, tool calls, pending messages, questions.

Only the active turn is copied when its response grows, and streamed text sits in a rope until the turn ends, so a
delta costs the same however long the conversation and the part are. Times come with the actions: a turn says when it
began, and its end how long it took.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from ahpkit.protocol.chat import tool_calls
from ahpkit.protocol.chat.actions import (
    ChatBackgroundWorkRemovedAction,
    ChatBackgroundWorkSetAction,
    ChatDeltaAction,
    ChatErrorAction,
    ChatInputAnswerChangedAction,
    ChatInputCompletedAction,
    ChatInputRequestedAction,
    ChatPendingMessageRemovedAction,
    ChatPendingMessageSetAction,
    ChatQueuedMessagesReorderedAction,
    ChatReasoningAction,
    ChatResponsePartAction,
    ChatToolCallStartAction,
    ChatTruncatedAction,
    ChatTurnCancelledAction,
    ChatTurnCompleteAction,
    ChatTurnResumeAction,
    ChatTurnsLoadedAction,
    ChatTurnStartedAction,
    ChatUsageAction,
)
from ahpkit.protocol.chat.turns import STREAMING_ACTIONS, is_resumable, newest_part_index, tool_call_index
from ahpkit.protocol.common.reducing import (
    Handler,
    all_removed,
    apply,
    assign,
    assign_optional,
    directory_added,
    directory_removed,
    index_of,
    put,
    replaced,
    upserted,
    without,
)
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.common.status import (
    ERROR,
    IDLE,
    IN_PROGRESS,
    INPUT_NEEDED,
    IS_ARCHIVED,
    IS_READ,
    with_activity,
    with_flag,
)
from ahpkit.protocol.rope import Rope

__all__ = ["HANDLERS", "chat_reducer"]

_SHORT = 100
"""Responses with fewer parts are always searched for calls and questions that wait. This takes a few microseconds, and
a state that was made elsewhere may be inconsistent."""


def chat_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The chat after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


# Turns


def _turn_started(state: JsonObject, action: ChatTurnStartedAction) -> JsonObject:
    turn: JsonObject = {
        "id": action["turnId"],
        "startedAt": action["startedAt"],
        "message": action["message"],
        "responseParts": [],
    }
    after = _without_pending(state, action.get("queuedMessageId"))
    return _unread(_with_status({**after, "activeTurn": turn, "modifiedAt": action["startedAt"]}))


def _turn_ended(
    outcome: str, state: JsonObject, action: ChatTurnCompleteAction | ChatTurnCancelledAction
) -> JsonObject:
    turn = _active_turn(state, action["turnId"])
    return state if turn is None else _ended(state, turn, outcome, action["duration"], turn["responseParts"])


def _failed(state: JsonObject, action: ChatErrorAction) -> JsonObject:
    turn = _active_turn(state, action["turnId"])
    if turn is None:
        return state
    return _ended(state, turn, "error", action["duration"], [*turn["responseParts"], {**action["part"]}])


def _ended(state: JsonObject, turn: JsonObject, outcome: str, duration: float, parts: list[JsonObject]) -> JsonObject:
    duration = max(0, duration)
    ended = {**turn, "duration": duration, "responseParts": [_settled(part) for part in parts], "state": outcome}
    after = {**state, "turns": [*state["turns"], ended], "modifiedAt": _end_of(turn["startedAt"], duration)}
    return _with_activity(without(after, "activeTurn"), ERROR if outcome == "error" else IDLE)


def _end_of(started_at: str, duration: float) -> str:
    """The time at which a turn ended, from its start and its duration: in UTC, truncated to milliseconds."""
    began = datetime.fromisoformat(started_at)
    began = began.replace(tzinfo=UTC) if began.tzinfo is None else began.astimezone(UTC)
    ended = began + timedelta(milliseconds=int(duration))
    return ended.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _turn_resumed(state: JsonObject, action: ChatTurnResumeAction) -> JsonObject:
    """The last turn goes on if it failed, and its error says that it can."""
    turns: list[JsonObject] = state["turns"]
    last = turns[-1] if turns else None
    if state.get("activeTurn") is not None or last is None or last["id"] != action["turnId"] or not is_resumable(last):
        return state
    turn = without(last, "duration", "state", "error")
    turn = {**turn, "startedAt": last.get("startedAt") or state["modifiedAt"]}
    return _unread(_with_status({**state, "turns": turns[:-1], "activeTurn": turn}))


def _truncated(state: JsonObject, action: ChatTruncatedAction) -> JsonObject:
    """Turns that are not loaded are older than the loaded ones: they are kept when any loaded turn is kept, and dropped
    when all are dropped."""
    turn_id = action.get("turnId")
    if turn_id is None:
        return _with_activity(without({**state, "turns": []}, "activeTurn", "turnsNextCursor"), IDLE)
    index = index_of(state["turns"], "id", turn_id)
    if index < 0:
        return state
    return _with_activity(without({**state, "turns": state["turns"][: index + 1]}, "activeTurn"), IDLE)


def _turns_loaded(state: JsonObject, action: ChatTurnsLoadedAction) -> JsonObject:
    known = {turn["id"] for turn in state["turns"]}
    older = [turn for turn in action["turns"] if turn["id"] not in known]
    after = {**state, "turns": [*older, *state["turns"]]}
    return put(after, "turnsNextCursor", action.get("turnsNextCursor"))


def _active_turn(state: JsonObject, turn_id: str) -> JsonObject | None:
    """The active turn, if it is the turn that the action names."""
    turn = state.get("activeTurn")
    return turn if turn is not None and turn["id"] == turn_id else None


def _with_turn(state: JsonObject, changes: JsonObject) -> JsonObject:
    return {**state, "activeTurn": {**state["activeTurn"], **changes}}


def _usage(state: JsonObject, action: ChatUsageAction) -> JsonObject:
    return state if _active_turn(state, action["turnId"]) is None else _with_turn(state, {"usage": action["usage"]})


# Response parts


def _response_part(state: JsonObject, action: ChatResponsePartAction) -> JsonObject:
    """Append a part, but not an error part: errors come with `chat/error`, which ends the turn."""
    part = action["part"]
    return state if part.get("kind") == "error" else _with_part_added(state, action["turnId"], {**part})


def _tool_call_started(state: JsonObject, action: ChatToolCallStartAction) -> JsonObject:
    return _with_part_added(state, action["turnId"], {"kind": "toolCall", "toolCall": tool_calls.started(action)})


def _with_part_added(state: JsonObject, turn_id: str, part: JsonObject) -> JsonObject:
    turn = _active_turn(state, turn_id)
    return state if turn is None else _with_turn(state, {"responseParts": [*turn["responseParts"], part]})


def _text_appended(kind: str, state: JsonObject, action: ChatDeltaAction | ChatReasoningAction) -> JsonObject:
    turn = _active_turn(state, action["turnId"])
    if turn is None or not action["content"]:
        return state
    parts: list[JsonObject] = turn["responseParts"]
    index = newest_part_index(parts, action["partId"])
    if index < 0 or parts[index]["kind"] != kind:
        return state
    part = parts[index]
    grown = {**part, "content": Rope.of(part["content"]).add(action["content"])}
    return _with_turn(state, {"responseParts": replaced(parts, index, grown)})


def _tool_call_changed(state: JsonObject, action: tool_calls.ToolCallAction) -> JsonObject:
    """Every action that does more than make a call longer computes the activity anew, also when it does not apply.

    In a long response a call that did not wait and does not wait now changes no activity, and nothing is searched.
    """
    grows = action["type"] in STREAMING_ACTIONS
    turn = _active_turn(state, action["turnId"])
    index = tool_call_index(turn, action["toolCallId"])
    if turn is None or index < 0:
        return state if grows else _with_status(state)
    parts: list[JsonObject] = turn["responseParts"]
    call = parts[index]["toolCall"]
    after = tool_calls.advanced(call, action)
    if after is not call:
        state = _with_turn(state, {"responseParts": replaced(parts, index, {**parts[index], "toolCall": after})})
    if grows or (len(parts) > _SHORT and tool_calls.WAITING.isdisjoint((call["status"], after["status"]))):
        return state
    return _with_status(state)


def _settled(part: JsonObject) -> JsonObject:
    """A response part of an ended turn: text is a string again, open tool calls are cancelled."""
    if part.get("kind") == "toolCall":
        return {**part, "toolCall": tool_calls.skipped(part["toolCall"])}
    return {**part, "content": str(part["content"])} if isinstance(part.get("content"), Rope) else part


# Pending messages


def _pending_message_set(state: JsonObject, action: ChatPendingMessageSetAction) -> JsonObject:
    pending: JsonObject = {"id": action["id"], "message": action["message"]}
    if action["kind"] == "steering":
        return {**state, "steeringMessage": pending}
    return {**state, "queuedMessages": upserted(state.get("queuedMessages"), pending, key="id")}


def _pending_message_removed(state: JsonObject, action: ChatPendingMessageRemovedAction) -> JsonObject:
    steering = action["kind"] == "steering"
    return _without_steering(state, action["id"]) if steering else _without_queued(state, action["id"])


def _without_pending(state: JsonObject, message_id: str | None) -> JsonObject:
    """Remove the pending message with which a turn starts from the slot or the queue; an empty queue is left out."""
    if message_id is None:
        return state
    after = _without_steering(_without_queued(state, message_id), message_id)
    return after if after.get("queuedMessages") else without(after, "queuedMessages")


def _without_steering(state: JsonObject, message_id: str) -> JsonObject:
    steering = state.get("steeringMessage")
    return state if steering is None or steering["id"] != message_id else without(state, "steeringMessage")


def _without_queued(state: JsonObject, message_id: str) -> JsonObject:
    return _without_entry(state, "queuedMessages", message_id)


def _without_entry(state: JsonObject, key: str, entry_id: str) -> JsonObject:
    """`state` without the entry of that list; an empty list is left out."""
    entries: list[JsonObject] = state.get(key) or []
    kept = all_removed(entries, "id", entry_id)
    return state if kept is entries else put(state, key, kept or None)


def _queue_reordered(state: JsonObject, action: ChatQueuedMessagesReorderedAction) -> JsonObject:
    """Reorder the queue. Unknown ids are ignored; messages that are not named keep their order at the end."""
    queue: list[JsonObject] = state.get("queuedMessages") or []
    order = action["order"]
    ordered = sorted(queue, key=lambda pending: order.index(pending["id"]) if pending["id"] in order else len(order))
    return state if ordered == queue else {**state, "queuedMessages": ordered}


# Input requests


def _input_requested(state: JsonObject, action: ChatInputRequestedAction) -> JsonObject:
    """Add a request, or replace one that is open: its answers stay unless the new one brings its own."""
    turn = state.get("activeTurn")
    if turn is None:
        return state
    request: JsonObject = {**action["request"]}
    parts: list[JsonObject] = turn["responseParts"]
    index = _open_request(parts, request["id"])
    if index < 0:
        parts = [*parts, {"kind": "inputRequest", "request": request}]
    else:
        if request.get("answers") is None:
            request = put(request, "answers", parts[index]["request"].get("answers"))
        parts = replaced(parts, index, {**parts[index], "request": request})
    return _unread(_with_status(_with_turn(state, {"responseParts": parts})))


def _input_answer_changed(state: JsonObject, action: ChatInputAnswerChangedAction) -> JsonObject:
    turn = state.get("activeTurn")
    index = -1 if turn is None else _open_request(turn["responseParts"], action["requestId"])
    if turn is None or index < 0:
        return state
    part: JsonObject = turn["responseParts"][index]
    before: JsonObject = part["request"].get("answers") or {}
    answers = put(before, action["questionId"], action.get("answer"))
    if answers is before and answers:
        return state
    after = {**part, "request": put(part["request"], "answers", answers or None)}
    return _with_turn(state, {"responseParts": replaced(turn["responseParts"], index, after)})


def _input_completed(state: JsonObject, action: ChatInputCompletedAction) -> JsonObject:
    turn = state.get("activeTurn")
    index = -1 if turn is None else _open_request(turn["responseParts"], action["requestId"])
    if turn is None or index < 0:
        return state
    part: JsonObject = turn["responseParts"][index]
    before: JsonObject = part["request"].get("answers") or {}
    answers: JsonObject = {**before, **(action.get("answers") or {})}
    request = put(part["request"], "answers", answers or None)
    after = {**part, "request": request, "response": action["response"]}
    return _with_status(_with_turn(state, {"responseParts": replaced(turn["responseParts"], index, after)}))


def _open_request(parts: list[JsonObject], request_id: str) -> int:
    """Where the first request with that id waits for a response, or -1."""
    for index, part in enumerate(parts):
        if _is_open_request(part) and part["request"]["id"] == request_id:
            return index
    return -1


def _is_open_request(part: JsonObject) -> bool:
    return part.get("kind") == "inputRequest" and part.get("response") is None


# Background work


def _background_work_set(state: JsonObject, action: ChatBackgroundWorkSetAction) -> JsonObject:
    return {**state, "backgroundWork": upserted(state.get("backgroundWork"), {**action["work"]}, key="id")}


def _background_work_removed(state: JsonObject, action: ChatBackgroundWorkRemovedAction) -> JsonObject:
    return _without_entry(state, "backgroundWork", action["id"])


# Status


def _with_status(state: JsonObject) -> JsonObject:
    """`state` with the activity that follows from it: waiting for someone, in progress, or idle."""
    turn = state.get("activeTurn")
    if turn is None:
        return _with_activity(state, IDLE)
    return _with_activity(state, INPUT_NEEDED if _waits(turn["responseParts"]) else IN_PROGRESS)


def _with_activity(state: JsonObject, activity: int) -> JsonObject:
    status = with_activity(state["status"], activity)
    return state if status == state["status"] else {**state, "status": status}


def _waits(parts: Iterable[JsonObject]) -> bool:
    """Whether a call or a question waits for somebody."""
    waiting = tool_calls.WAITING
    for part in parts:
        kind = part.get("kind")
        if kind == "toolCall":
            if part["toolCall"]["status"] in waiting:
                return True
        elif kind == "inputRequest" and part.get("response") is None:
            return True
    return False


def _unread(state: JsonObject) -> JsonObject:
    """Mark the chat as unread, because a turn started or a question was asked."""
    return {**state, "status": with_flag(state["status"], IS_READ, False)}


def _flag_changed(flag: int, field: str, state: JsonObject, action: Mapping[str, Any]) -> JsonObject:
    status = with_flag(state["status"], flag, action[field])
    return state if status == state["status"] else {**state, "status": status}


HANDLERS: Final[Mapping[str, Handler]] = {
    "chat/turnStarted": _turn_started,
    "chat/delta": partial(_text_appended, "markdown"),
    "chat/reasoning": partial(_text_appended, "reasoning"),
    "chat/responsePart": _response_part,
    "chat/toolCallStart": _tool_call_started,
    **dict.fromkeys(tool_calls.ACTIONS, _tool_call_changed),
    "chat/turnComplete": partial(_turn_ended, "complete"),
    "chat/turnCancelled": partial(_turn_ended, "cancelled"),
    "chat/error": _failed,
    "chat/turnResume": _turn_resumed,
    "chat/turnsLoaded": _turns_loaded,
    "chat/usage": _usage,
    "chat/truncated": _truncated,
    "chat/pendingMessageSet": _pending_message_set,
    "chat/pendingMessageRemoved": _pending_message_removed,
    "chat/queuedMessagesReordered": _queue_reordered,
    "chat/inputRequested": _input_requested,
    "chat/inputAnswerChanged": _input_answer_changed,
    "chat/inputCompleted": _input_completed,
    "chat/activityChanged": assign_optional("activity"),
    "chat/draftChanged": assign_optional("draft"),
    "chat/workingDirectorySet": directory_added,
    "chat/workingDirectoryRemoved": directory_removed,
    "chat/isReadChanged": partial(_flag_changed, IS_READ, "isRead"),
    "chat/isArchivedChanged": partial(_flag_changed, IS_ARCHIVED, "isArchived"),
    "chat/movableChanged": assign("movable"),
    "chat/changesetsChanged": assign_optional("changesets"),
    "chat/canvasesChanged": assign_optional("canvases"),
    "chat/backgroundWorkSet": _background_work_set,
    "chat/backgroundWorkRemoved": _background_work_removed,
}
