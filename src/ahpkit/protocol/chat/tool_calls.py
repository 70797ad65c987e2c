"""The life cycle of a tool call: which event leads from which status to which, and the fields of each status.

The two tables are the specification; tests and the diagram in the docs read them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ahpkit.protocol.chat.actions import (
    ChatToolCallAuthRequiredAction,
    ChatToolCallAuthResolvedAction,
    ChatToolCallCompleteAction,
    ChatToolCallConfirmedAction,
    ChatToolCallContentChangedAction,
    ChatToolCallDeltaAction,
    ChatToolCallReadyAction,
    ChatToolCallResultConfirmedAction,
)
from ahpkit.protocol.common.reducing import amend
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.rope import Rope

__all__ = [
    "ACTIONS",
    "FIELDS",
    "LIFE_CYCLE",
    "TERMINAL",
    "WAITING",
    "Event",
    "LifeCycle",
    "ToolCallAction",
    "advanced",
    "skipped",
    "started",
]

ToolCallAction = (
    ChatToolCallDeltaAction
    | ChatToolCallReadyAction
    | ChatToolCallConfirmedAction
    | ChatToolCallCompleteAction
    | ChatToolCallResultConfirmedAction
    | ChatToolCallContentChangedAction
    | ChatToolCallAuthRequiredAction
    | ChatToolCallAuthResolvedAction
)
"""Any action on a call that exists."""

LIFE_CYCLE: Final[Mapping[str, Mapping[str, str]]] = {
    "streaming": {
        "delta": "streaming",
        "ready": "pending-confirmation",
        "ready, confirmed": "running",
        "turn ended": "cancelled",
    },
    "pending-confirmation": {
        "ready": "pending-confirmation",  # what is shown before the approval changed
        "ready, confirmed": "running",
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
        "token wanted": "auth-required",
        "turn ended": "cancelled",
    },
    "auth-required": {
        "token given": "running",
        "gave up": "completed",  # a call for which nobody signed in can end only as a failure
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

WAITING: Final = frozenset({"pending-confirmation", "auth-required", "pending-result-confirmation"})
"""The statuses that wait for the user and so make a chat need input."""

_PARAMETERS = ("invocationMessage", "toolInput")
_CONFIRMATION = ("confirmationTitle", "riskAssessment", "edits", "editable", "options")
_CONFIRMED = ("confirmed", "selectedOption")
_RESULT = ("success", "pastTenseMessage", "content", "structuredContent", "error")

FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "streaming": frozenset({"partialInput", "invocationMessage"}),
    "pending-confirmation": frozenset({*_PARAMETERS, *_CONFIRMATION}),
    "running": frozenset({*_PARAMETERS, *_CONFIRMED, "content"}),
    "auth-required": frozenset({*_PARAMETERS, *_CONFIRMED, "content", "auth"}),
    "pending-result-confirmation": frozenset({*_PARAMETERS, *_CONFIRMED, *_RESULT}),
    "completed": frozenset({*_PARAMETERS, *_CONFIRMED, *_RESULT}),
    "cancelled": frozenset({*_PARAMETERS, "reason", "reasonMessage", "userSuggestion", "selectedOption"}),
}
"""The members that a call may have in each status, besides its identity, `_meta` and unknown ones."""

_IDENTITY = ("toolCallId", "toolName", "displayName", "intention", "contributor", "_meta")
_PASSING = frozenset[str]().union(*FIELDS.values())
_NOT_RESULT = frozenset({"status", *_IDENTITY, *_PASSING.difference(_RESULT)})


Event = tuple[str, JsonObject]
"""What an action does to a call: the name of the event, and the members that it sets (None: none)."""


class LifeCycle:
    """Takes tool calls from status to status, by the tables of one protocol version."""

    def __init__(
        self,
        statuses: Mapping[str, Mapping[str, str]],
        fields: Mapping[str, frozenset[str]],
        *,
        identity: Collection[str],
        actions: Mapping[str, Callable[[JsonObject, Any], Event]],
    ) -> None:
        self._statuses = statuses
        self._identity = identity
        self._actions = actions
        passing = frozenset[str]().union(*fields.values())
        self._left_behind = {status: passing - kept for status, kept in fields.items()}

    def started(self, action: Mapping[str, Any]) -> JsonObject:
        """The call that `chat/toolCallStart` begins."""
        identity = {key: value for key, value in action.items() if key in self._identity and value is not None}
        return {"status": "streaming", **identity}

    def advanced(self, call: JsonObject, action: Mapping[str, Any]) -> JsonObject:
        """`call` after a tool-call action; the same object when the action does not apply in its status."""
        event, changes = self._actions[action["type"]](call, action)
        meta = action.get("_meta")
        return self._entered(call, event, changes if meta is None else {**changes, "_meta": meta})

    def skipped(self, call: JsonObject) -> JsonObject:
        """`call` when its turn ends: an open call is cancelled; one that is over or has an unknown status stays."""
        message = call.get("invocationMessage")
        if message is None and call["status"] == "streaming":
            message = ""
        changes = {"reason": "skipped", "invocationMessage": message, "selectedOption": None}
        return self._entered(call, "turn ended", changes)

    def _entered(self, call: JsonObject, event: str, changes: JsonObject) -> JsonObject:
        """The call after `event`, with `changes` written and without the fields that the next status does not carry."""
        status = self._statuses.get(call["status"], {}).get(event)
        if status is None:
            return call
        gone = self._left_behind[status]
        kept = {key: value for key, value in call.items() if key not in gone}
        return {**amend(kept, changes), "status": status}


_NOTHING = ""
"""The event of an action that changes nothing in the life cycle."""


def _delta(call: JsonObject, action: ChatToolCallDeltaAction) -> Event:
    changes: JsonObject = {}
    if (text := action.get("content")) is not None:
        changes["partialInput"] = Rope.of(call.get("partialInput") or "").add(text)
    if (message := action.get("invocationMessage")) is not None:
        changes["invocationMessage"] = message
    return "delta", changes


def _ready(call: JsonObject, action: ChatToolCallReadyAction) -> Event:
    """For a repeated ready, fields that it does not carry keep their values; a running call waits for approval
    again."""
    given: JsonObject = {**action}
    changes: JsonObject = {**_refined(call, action), "invocationMessage": action["invocationMessage"]}
    if call["status"] == "streaming" or given.get("toolInput") is not None:
        changes["toolInput"] = given.get("toolInput")
    if action.get("confirmed") is not None:
        return "ready, confirmed", {
            **changes,
            "confirmed": action.get("confirmed"),
            "selectedOption": None,
            "content": None,
        }
    kept = call if call["status"] == "pending-confirmation" else {}
    return "ready", {**changes, **{key: _first(given.get(key), kept.get(key)) for key in _CONFIRMATION}}


def _first(new: Any, old: Any) -> Any:
    return old if new is None else new


def _refined(call: JsonObject, action: ChatToolCallReadyAction) -> JsonObject:
    """A more precise intention or contributor. The client that runs a call is fixed at its start."""
    changes: JsonObject = {}
    if (intention := action.get("intention")) is not None:
        changes["intention"] = intention
    contributor = action.get("contributor")
    if contributor is not None and _owner(contributor) == _owner(call.get("contributor")):
        changes["contributor"] = contributor
    return changes


def _owner(contributor: Mapping[str, Any] | None) -> str | None:
    """The client that runs the calls of a contributor; None when the host runs them."""
    return contributor.get("clientId") if contributor is not None and contributor["kind"] == "client" else None


def _confirmed(call: JsonObject, action: ChatToolCallConfirmedAction) -> Event:
    option = _option(call, action.get("selectedOptionId"))
    if not action["approved"]:
        why: JsonObject = {key: action.get(key) for key in ("reason", "reasonMessage", "userSuggestion")}
        return "denied", {**why, "selectedOption": option}
    tool_input, edited = call.get("toolInput"), action.get("editedToolInput")
    if edited is not None and isinstance(tool_input, str):  # the host rewrites what a reference leads to
        tool_input = edited
    return "approved", {"toolInput": tool_input, "confirmed": action.get("confirmed"), "selectedOption": option}


def _option(call: JsonObject, option_id: Any) -> JsonObject | None:
    options: list[JsonObject] = call.get("options") or []
    return next((option for option in options if option["id"] == option_id), None)


def _complete(call: JsonObject, action: ChatToolCallCompleteAction) -> Event:
    result = {key: value for key, value in action["result"].items() if key not in _NOT_RESULT}
    confirmed = "not-needed" if call["status"] == "pending-confirmation" else call.get("confirmed")
    changes = {**dict.fromkeys(_RESULT), **result, "confirmed": confirmed}
    if call["status"] == "auth-required":
        content = _first(result.get("content"), call.get("content"))
        return _NOTHING if result.get("success") else "gave up", {**changes, "content": content}
    return "complete, to review" if action.get("requiresResultConfirmation") else "complete", changes


def _result_confirmed(call: JsonObject, action: ChatToolCallResultConfirmedAction) -> Event:
    return ("result approved", {}) if action["approved"] else ("result denied", {"reason": "result-denied"})


def _content_changed(call: JsonObject, action: ChatToolCallContentChangedAction) -> Event:
    return "content", {"content": action["content"]}


def _auth_required(call: JsonObject, action: ChatToolCallAuthRequiredAction) -> Event:
    """Only the tools of MCP servers can want a token."""
    contributor: JsonObject = call.get("contributor") or {}
    return "token wanted" if contributor.get("kind") == "mcp" else _NOTHING, {"auth": action["auth"]}


def _auth_resolved(call: JsonObject, action: ChatToolCallAuthResolvedAction) -> Event:
    return "token given", {}


ACTIONS: Final[Mapping[str, Callable[[JsonObject, Any], Event]]] = {
    "chat/toolCallDelta": _delta,
    "chat/toolCallReady": _ready,
    "chat/toolCallConfirmed": _confirmed,
    "chat/toolCallComplete": _complete,
    "chat/toolCallResultConfirmed": _result_confirmed,
    "chat/toolCallContentChanged": _content_changed,
    "chat/toolCallAuthRequired": _auth_required,
    "chat/toolCallAuthResolved": _auth_resolved,
}

_CALLS = LifeCycle(LIFE_CYCLE, FIELDS, identity=_IDENTITY, actions=ACTIONS)
started, advanced, skipped = _CALLS.started, _CALLS.advanced, _CALLS.skipped
