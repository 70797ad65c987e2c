"""The chat channel's reducer: turns, streamed text, tool calls, pending messages, questions.

Only the active turn is copied when its response grows, and streamed text sits in a rope until the turn ends, so a delta
costs the same however long the conversation and the part are.

The life cycle of a tool call is two tables, which tests read: which event leads from which status to which, and what
each status carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.protocol.chat.tool_calls import Event, LifeCycle
from ahpkit.protocol.chat.turns import STREAMING_ACTIONS, newest_part_index, tool_call_index
from ahpkit.protocol.common.reducing import (
    Handler,
    all_removed,
    apply,
    index_of,
    iso_time,
    put,
    removed,
    replaced,
    upserted,
    without,
)
from ahpkit.protocol.common.status import ERROR, IDLE, IN_PROGRESS, INPUT_NEEDED, IS_READ, with_activity, with_flag
from ahpkit.protocol.rope import Rope

LIFE_CYCLE: Final[Mapping[str, Mapping[str, str]]] = {
    "streaming": {
        "delta": "streaming",
        "ready": "pending-confirmation",
        "ready, confirmed": "running",
        "turn ended": "cancelled",
    },
    "pending-confirmation": {
        "approved": "running",
        "denied": "cancelled",
        # The host may finish a call while it still waits for confirmation; no approval is recorded then.
        "complete": "completed",
        "complete, to review": "pending-result-confirmation",
        "turn ended": "cancelled",
    },
    "running": {
        "content": "running",
        "ready": "pending-confirmation",  # a running tool needs another approval
        "ready, confirmed": "running",
        "complete": "completed",
        "complete, to review": "pending-result-confirmation",
        "turn ended": "cancelled",
    },
    "pending-result-confirmation": {
        "result approved": "completed",
        "result denied": "cancelled",
        "turn ended": "cancelled",
    },
    "completed": {},
    "cancelled": {},
}
"""Status → event → next status. An event that is not listed changes nothing."""

TERMINAL: Final = frozenset(status for status, events in LIFE_CYCLE.items() if not events)

WAITING: Final = frozenset({"pending-confirmation", "pending-result-confirmation"})
"""The statuses that wait for the user and so make a chat need input."""

_PARAMETERS = ("invocationMessage", "toolInput")
_CONFIRMATION = ("confirmationTitle", "edits", "editable", "options")
_CONFIRMED = ("confirmed", "selectedOption")
_RESULT = ("success", "pastTenseMessage", "content", "structuredContent", "error")

FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "streaming": frozenset({"partialInput", "invocationMessage"}),
    "pending-confirmation": frozenset({*_PARAMETERS, *_CONFIRMATION}),
    "running": frozenset({*_PARAMETERS, *_CONFIRMED, "content"}),
    "pending-result-confirmation": frozenset({*_PARAMETERS, *_CONFIRMED, *_RESULT}),
    "completed": frozenset({*_PARAMETERS, *_CONFIRMED, *_RESULT}),
    "cancelled": frozenset({*_PARAMETERS, "reason", "reasonMessage", "userSuggestion", "selectedOption"}),
}
"""The members that a call may have in each status, besides its identity, `_meta` and unknown ones."""

_IDENTITY = ("toolCallId", "toolName", "displayName", "contributor", "_meta")
_PASSING = frozenset[str]().union(*FIELDS.values())
_NOT_RESULT = frozenset({"status", *_IDENTITY, *_PASSING.difference(_RESULT)})


def _delta(call: JsonObject, action: JsonObject) -> Event:
    changes: JsonObject = {"partialInput": Rope.of(call.get("partialInput") or "").add(action["content"])}
    if (message := action.get("invocationMessage")) is not None:
        changes["invocationMessage"] = message
    return "delta", changes


def _ready(call: JsonObject, action: JsonObject) -> Event:
    confirmed = action.get("confirmed")
    if confirmed is None:
        return "ready", {key: action.get(key) for key in (*_PARAMETERS, *_CONFIRMATION)}
    changes = {key: action.get(key) for key in (*_PARAMETERS, "confirmed")}
    return "ready, confirmed", {**changes, "selectedOption": None, "content": None}


def _confirmed(call: JsonObject, action: JsonObject) -> Event:
    option = _option(call, action.get("selectedOptionId"))
    if not action["approved"]:
        why = {key: action.get(key) for key in ("reason", "reasonMessage", "userSuggestion")}
        return "denied", {**why, "selectedOption": option}
    edited = action.get("editedToolInput")
    tool_input = call.get("toolInput") if edited is None else edited
    return "approved", {"toolInput": tool_input, "confirmed": action.get("confirmed"), "selectedOption": option}


def _option(call: JsonObject, option_id: Any) -> JsonObject | None:
    options: list[JsonObject] = call.get("options") or []
    return next((option for option in options if option["id"] == option_id), None)


def _complete(call: JsonObject, action: JsonObject) -> Event:
    result = {key: value for key, value in action["result"].items() if key not in _NOT_RESULT}
    confirmed = "not-needed" if call["status"] == "pending-confirmation" else call.get("confirmed")
    changes = {**dict.fromkeys(_RESULT), **result, "confirmed": confirmed}
    return "complete, to review" if action.get("requiresResultConfirmation") else "complete", changes


def _result_confirmed(call: JsonObject, action: JsonObject) -> Event:
    return ("result approved", {}) if action["approved"] else ("result denied", {"reason": "result-denied"})


def _content_changed(call: JsonObject, action: JsonObject) -> Event:
    return "content", {"content": action["content"]}


ACTIONS: Final[Mapping[str, Callable[[JsonObject, JsonObject], Event]]] = {
    "chat/toolCallDelta": _delta,
    "chat/toolCallReady": _ready,
    "chat/toolCallConfirmed": _confirmed,
    "chat/toolCallComplete": _complete,
    "chat/toolCallResultConfirmed": _result_confirmed,
    "chat/toolCallContentChanged": _content_changed,
}

_CALLS = LifeCycle(LIFE_CYCLE, FIELDS, identity=_IDENTITY, actions=ACTIONS)
started, advanced, skipped = _CALLS.started, _CALLS.advanced, _CALLS.skipped


__all__ = [
    "ACTIONS",
    "FIELDS",
    "HANDLERS",
    "LIFE_CYCLE",
    "STAMPED",
    "TERMINAL",
    "WAITING",
    "advanced",
    "chat_reducer",
    "skipped",
    "started",
]

STAMPED: Final = frozenset(
    {
        "chat/turnStarted",
        "chat/turnComplete",
        "chat/turnCancelled",
        "chat/error",
        "chat/truncated",
        "chat/inputRequested",
        "chat/inputAnswerChanged",
        "chat/inputCompleted",
    }
)
"""The actions that set `modifiedAt`. Streaming does not set it, because a summary would change with every word."""


def chat_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The chat after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action, stamped=STAMPED, stamp=lambda after: {**after, "modifiedAt": iso_time(now)})


# Turns


def _turn_started(state: JsonObject, action: JsonObject) -> JsonObject:
    turn: JsonObject = {"id": action["turnId"], "message": action["message"], "responseParts": []}
    after = {**_without_pending(state, action.get("queuedMessageId")), "activeTurn": turn}
    return _unread(_with_status(after))


def _turn_ended(outcome: str, state: JsonObject, action: JsonObject) -> JsonObject:
    turn = _active_turn(state, action)
    if turn is None:
        return state
    ended = {**turn, "responseParts": [_settled(part) for part in turn["responseParts"]], "state": outcome}
    if outcome == "error":
        ended["error"] = action["error"]
    after = without({**state, "turns": [*state["turns"], ended]}, "activeTurn", "inputRequests")
    return _with_activity(after, ERROR if outcome == "error" else IDLE)


def _truncated(state: JsonObject, action: JsonObject) -> JsonObject:
    turns: list[JsonObject] = []
    if (turn_id := action.get("turnId")) is not None:
        index = index_of(state["turns"], "id", turn_id)
        if index < 0:
            return state
        turns = state["turns"][: index + 1]
    return _with_activity(without({**state, "turns": turns}, "activeTurn", "inputRequests"), IDLE)


def _active_turn(state: JsonObject, action: JsonObject) -> JsonObject | None:
    """The active turn if the action is about it."""
    turn = state.get("activeTurn")
    return turn if turn is not None and turn["id"] == action["turnId"] else None


def _with_turn(state: JsonObject, changes: JsonObject) -> JsonObject:
    return {**state, "activeTurn": {**state["activeTurn"], **changes}}


def _usage(state: JsonObject, action: JsonObject) -> JsonObject:
    return state if _active_turn(state, action) is None else _with_turn(state, {"usage": action["usage"]})


# Response parts


def _response_part(state: JsonObject, action: JsonObject) -> JsonObject:
    return _with_part_added(state, action, action["part"])


def _tool_call_started(state: JsonObject, action: JsonObject) -> JsonObject:
    return _with_part_added(state, action, {"kind": "toolCall", "toolCall": started(action)})


def _with_part_added(state: JsonObject, action: JsonObject, part: JsonObject) -> JsonObject:
    turn = _active_turn(state, action)
    return state if turn is None else _with_turn(state, {"responseParts": [*turn["responseParts"], part]})


def _text_appended(kind: str, state: JsonObject, action: JsonObject) -> JsonObject:
    turn = _active_turn(state, action)
    if turn is None or not action["content"]:
        return state
    parts: list[JsonObject] = turn["responseParts"]
    index = newest_part_index(parts, action["partId"])
    if index < 0 or parts[index]["kind"] != kind:
        return state
    part = parts[index]
    grown = {**part, "content": Rope.of(part["content"]).add(action["content"])}
    return _with_turn(state, {"responseParts": replaced(parts, index, grown)})


def _tool_call_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    """Every action that does more than make a call longer computes the activity anew, also when it does not apply."""
    turn = _active_turn(state, action)
    index = tool_call_index(turn, action["toolCallId"])
    if turn is not None and index >= 0:
        parts: list[JsonObject] = turn["responseParts"]
        call = parts[index]["toolCall"]
        after = advanced(call, action)
        if after is not call:
            state = _with_turn(state, {"responseParts": replaced(parts, index, {**parts[index], "toolCall": after})})
    return state if action["type"] in STREAMING_ACTIONS else _with_status(state)


def _settled(part: JsonObject) -> JsonObject:
    """A response part of an ended turn: text is a string again, open tool calls are cancelled."""
    if part.get("kind") == "toolCall":
        return {**part, "toolCall": skipped(part["toolCall"])}
    return {**part, "content": str(part["content"])} if isinstance(part.get("content"), Rope) else part


# Pending messages


def _pending_message_set(state: JsonObject, action: JsonObject) -> JsonObject:
    pending = {"id": action["id"], "message": action["message"]}
    if action["kind"] == "steering":
        return {**state, "steeringMessage": pending}
    return {**state, "queuedMessages": upserted(state.get("queuedMessages"), pending, key="id")}


def _pending_message_removed(state: JsonObject, action: JsonObject) -> JsonObject:
    steering = action["kind"] == "steering"
    return _without_steering(state, action["id"]) if steering else _without_queued(state, action["id"])


def _without_pending(state: JsonObject, message_id: Any) -> JsonObject:
    """Remove the pending message with which a turn starts from the slot or the queue; an empty queue is left out."""
    if message_id is None:
        return state
    after = _without_steering(_without_queued(state, message_id), message_id)
    return after if after.get("queuedMessages") else without(after, "queuedMessages")


def _without_steering(state: JsonObject, message_id: Any) -> JsonObject:
    steering = state.get("steeringMessage")
    return state if steering is None or steering["id"] != message_id else without(state, "steeringMessage")


def _without_queued(state: JsonObject, message_id: Any) -> JsonObject:
    return _with_list(state, "queuedMessages", all_removed(state.get("queuedMessages") or [], "id", message_id))


def _queue_reordered(state: JsonObject, action: JsonObject) -> JsonObject:
    """Reorder the queue. Unknown ids are ignored; messages that are not named keep their order at the end."""
    queue: list[JsonObject] = state.get("queuedMessages") or []
    order: list[str] = action["order"]
    ordered = sorted(queue, key=lambda pending: order.index(pending["id"]) if pending["id"] in order else len(order))
    return state if ordered == queue else {**state, "queuedMessages": ordered}


# Input requests


def _input_requested(state: JsonObject, action: JsonObject) -> JsonObject:
    request: JsonObject = action["request"]
    requests: list[JsonObject] = state.get("inputRequests") or []
    index = index_of(requests, "id", request["id"])
    if index >= 0 and request.get("answers") is None:
        request = put(request, "answers", requests[index].get("answers"))
    return _unread(_with_status({**state, "inputRequests": upserted(requests, request, key="id")}))


def _input_answer_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    requests: list[JsonObject] = state.get("inputRequests") or []
    index = index_of(requests, "id", action["requestId"])
    if index < 0:
        return state
    before: JsonObject = requests[index].get("answers") or {}
    answers = put(before, action["questionId"], action.get("answer"))
    return {**state, "inputRequests": replaced(requests, index, put(requests[index], "answers", answers or None))}


def _input_completed(state: JsonObject, action: JsonObject) -> JsonObject:
    requests: list[JsonObject] = state.get("inputRequests") or []
    after = _with_list(state, "inputRequests", removed(requests, "id", action["requestId"]))
    return state if after is state else _with_status(after)


# Status


def _with_status(state: JsonObject) -> JsonObject:
    """`state` with the activity that follows from it: waiting for someone, in progress, or idle."""
    turn = state.get("activeTurn")
    if state.get("inputRequests") or (turn is not None and any(map(_is_waiting, turn["responseParts"]))):
        return _with_activity(state, INPUT_NEEDED)
    return _with_activity(state, IDLE if turn is None else IN_PROGRESS)


def _with_activity(state: JsonObject, activity: int) -> JsonObject:
    status = with_activity(state["status"], activity)
    return state if status == state["status"] else {**state, "status": status}


def _is_waiting(part: JsonObject) -> bool:
    return part.get("kind") == "toolCall" and part["toolCall"]["status"] in WAITING


def _unread(state: JsonObject) -> JsonObject:
    """Mark the chat as unread, because a turn started or a question was asked."""
    return {**state, "status": with_flag(state["status"], IS_READ, False)}


def _with_list(state: JsonObject, key: str, items: list[JsonObject]) -> JsonObject:
    """`state` with a shorter list; an empty one is left out."""
    return state if len(items) == len(state.get(key) or []) else put(state, key, items or None)


HANDLERS: Final[Mapping[str, Handler]] = {
    "chat/turnStarted": _turn_started,
    "chat/delta": partial(_text_appended, "markdown"),
    "chat/reasoning": partial(_text_appended, "reasoning"),
    "chat/responsePart": _response_part,
    "chat/toolCallStart": _tool_call_started,
    **dict.fromkeys(ACTIONS, _tool_call_changed),
    "chat/turnComplete": partial(_turn_ended, "complete"),
    "chat/turnCancelled": partial(_turn_ended, "cancelled"),
    "chat/error": partial(_turn_ended, "error"),
    "chat/usage": _usage,
    "chat/truncated": _truncated,
    "chat/pendingMessageSet": _pending_message_set,
    "chat/pendingMessageRemoved": _pending_message_removed,
    "chat/queuedMessagesReordered": _queue_reordered,
    "chat/inputRequested": _input_requested,
    "chat/inputAnswerChanged": _input_answer_changed,
    "chat/inputCompleted": _input_completed,
}
