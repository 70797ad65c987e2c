"""The life cycle of a tool call: which event leads from which status to which, and what each status carries.

The two tables define it; tests read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.protocol.common.reducing import amend
from ahpkit.protocol.rope import Rope

__all__ = ["ACTIONS", "FIELDS", "LIFE_CYCLE", "TERMINAL", "WAITING", "advanced", "skipped", "started"]

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
        # The host may finish a call while its confirmation is still on show; nobody's approval is claimed then.
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
"""What a call may carry in each status, besides its identity, `_meta` and fields we do not know."""

_IDENTITY = ("toolCallId", "toolName", "displayName", "contributor", "_meta")
_PASSING = frozenset[str]().union(*FIELDS.values())
_NOT_RESULT = frozenset({"status", *_IDENTITY, *_PASSING.difference(_RESULT)})


def started(action: JsonObject) -> JsonObject:
    """The call that `chat/toolCallStart` begins."""
    identity = {key: action[key] for key in _IDENTITY if action.get(key) is not None}
    return {"status": "streaming", **identity}


def advanced(call: JsonObject, action: JsonObject) -> JsonObject:
    """`call` after a tool-call action; the same object when the action does not apply in its status."""
    event, changes = ACTIONS[action["type"]](call, action)
    meta = action.get("_meta")
    return _entered(call, event, changes if meta is None else {**changes, "_meta": meta})


def skipped(call: JsonObject) -> JsonObject:
    """`call` when its turn ends: what is still open is cancelled, what is over or unknown stays."""
    return _entered(call, "turn ended", {"reason": "skipped", "invocationMessage": call.get("invocationMessage", "")})


def _entered(call: JsonObject, event: str, changes: JsonObject) -> JsonObject:
    """Take `event`: write `changes`, and leave behind what the next status does not carry."""
    status = LIFE_CYCLE.get(call["status"], {}).get(event)
    if status is None:
        return call
    gone = _PASSING - FIELDS[status]
    kept = {key: value for key, value in call.items() if key not in gone}
    return {**amend(kept, changes), "status": status}


_Event = tuple[str, JsonObject]
"""What an action means for a call: the event's name and the fields it writes (None: none)."""


def _delta(call: JsonObject, action: JsonObject) -> _Event:
    changes: JsonObject = {"partialInput": Rope.of(call.get("partialInput") or "").add(action["content"])}
    if (message := action.get("invocationMessage")) is not None:
        changes["invocationMessage"] = message
    return "delta", changes


def _ready(call: JsonObject, action: JsonObject) -> _Event:
    confirmed = action.get("confirmed")
    if confirmed is None:
        return "ready", {key: action.get(key) for key in (*_PARAMETERS, *_CONFIRMATION)}
    return "ready, confirmed", {key: action.get(key) for key in (*_PARAMETERS, "confirmed")}


def _confirmed(call: JsonObject, action: JsonObject) -> _Event:
    option = _option(call, action.get("selectedOptionId"))
    if not action["approved"]:
        why = {key: action.get(key) for key in ("reason", "reasonMessage", "userSuggestion")}
        return "denied", {**why, "selectedOption": option}
    edited = action.get("editedToolInput")
    tool_input = call.get("toolInput") if edited is None else edited
    return "approved", {"toolInput": tool_input, "confirmed": action["confirmed"], "selectedOption": option}


def _option(call: JsonObject, option_id: Any) -> JsonObject | None:
    options: list[JsonObject] = call.get("options") or []
    return next((option for option in options if option["id"] == option_id), None)


def _complete(call: JsonObject, action: JsonObject) -> _Event:
    result = {key: value for key, value in action["result"].items() if key not in _NOT_RESULT}
    changes = {**dict.fromkeys(_RESULT), **result, "confirmed": call.get("confirmed", "not-needed")}
    return "complete, to review" if action.get("requiresResultConfirmation") else "complete", changes


def _result_confirmed(call: JsonObject, action: JsonObject) -> _Event:
    return ("result approved", {}) if action["approved"] else ("result denied", {"reason": "result-denied"})


def _content_changed(call: JsonObject, action: JsonObject) -> _Event:
    return "content", {"content": action["content"]}


ACTIONS: Final[Mapping[str, Callable[[JsonObject, JsonObject], _Event]]] = {
    "chat/toolCallDelta": _delta,
    "chat/toolCallReady": _ready,
    "chat/toolCallConfirmed": _confirmed,
    "chat/toolCallComplete": _complete,
    "chat/toolCallResultConfirmed": _result_confirmed,
    "chat/toolCallContentChanged": _content_changed,
}
