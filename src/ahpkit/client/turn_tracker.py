"""Computes a turn's events from actions, or from a state when actions were missed. Pure.

The tracker remembers how much it has reported. Computing the events of an action costs as much as the action is long.
After a gap, `catch_up` compares a whole state with what was reported: no text is lost or reported twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ahpkit.client.answers import open_requests
from ahpkit.client.events import (
    TURN_OVER,
    AuthenticationNeeded,
    ConfirmationNeeded,
    InputNeeded,
    InputResolved,
    Notice,
    PartAdded,
    ReasoningDelta,
    TextDelta,
    ToolCallCancelled,
    ToolCallCompleted,
    ToolCallContent,
    ToolCallInputDelta,
    ToolCallRunning,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
    Usage,
)
from ahpkit.client.mirror import plain
from ahpkit.protocol.chat.turns import find_tool_call, find_turn, waits_for_person
from ahpkit.protocol.common.state import JsonObject

_TEXT: dict[str, Callable[[str, str], TurnEvent]] = {"markdown": TextDelta, "reasoning": ReasoningDelta}
"""The kinds of parts that are streamed, each with the event that reports new text."""

_REPORTED_ELSEWHERE = frozenset({"inputRequest", "error"})
"""Kinds of parts that are not reported as `PartAdded`: open questions and errors have their own events."""

_BY_STATUS: dict[str, Callable[[Any], TurnEvent]] = {
    "pending-confirmation": ConfirmationNeeded,
    "running": ToolCallRunning,
    "auth-required": AuthenticationNeeded,
    "pending-result-confirmation": lambda call: ConfirmationNeeded(call, of="result"),
    "completed": ToolCallCompleted,
    "cancelled": ToolCallCancelled,
}


@dataclass(slots=True)
class _Call:
    """What was reported about a tool call."""

    status: str = "streaming"
    input_length: int = 0
    content: Any = None


class TurnTracker:
    """Follows one turn from its start to its end."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.over = False
        self.accepted = False
        """Whether the turn began. If the state does not contain it afterwards, it was cut from the history."""
        self._started = False
        self._texts: dict[str, tuple[str, int]] = {}
        self._calls: dict[str, _Call] = {}
        self._others = 0
        self._questions: set[str] = set()
        self._usage: JsonObject | None = None

    def skip(self, state: JsonObject) -> None:
        """Treat everything that a resumed turn already contains as reported."""
        self.catch_up(state)
        self.over = False

    def act(self, action: JsonObject, state: JsonObject) -> list[TurnEvent]:
        """The events of one action; `state` is the chat right after it."""
        if action.get("turnId", self.turn_id) != self.turn_id:
            return []
        match action["type"]:
            case "chat/delta" | "chat/reasoning":
                return self._grow(action["partId"], action["content"])
            case "chat/responsePart":
                return self._part(action["part"])
            case "chat/toolCallDelta":
                return self._input(action)
            case "chat/usage":
                return self._use(action["usage"])
            case str(kind) if kind.startswith("chat/toolCall"):
                return self._of_call(action, state)
            case _:
                return self.catch_up(state)

    def catch_up(self, state: JsonObject) -> list[TurnEvent]:
        """Everything about the turn in `state` that was not reported yet."""
        turn = None if self.over else find_turn(state, self.turn_id)
        if turn is None:
            return self._finish(TurnCancelled(None)) if self.accepted and not self.over else []
        self.accepted = True
        events = self._start(turn)
        known = self._others
        self._others = 0
        for part in turn["responseParts"]:
            events += self._part(part, reported=known)
        events += self._use(turn.get("usage"))
        events += self._ask(open_requests(state) if turn is state.get("activeTurn") else ())
        return events + self._end(turn)

    # Beginning and end.

    def _start(self, turn: JsonObject) -> list[TurnEvent]:
        if self._started:
            return []
        self._started = True
        return [TurnStarted(self.turn_id, turn["message"])]

    def _end(self, turn: Any) -> list[TurnEvent]:
        match turn.get("state"):
            case "complete":
                return self._finish(TurnCompleted(plain(turn)))
            case "cancelled":
                return self._finish(TurnCancelled(plain(turn)))
            case "error":
                return self._finish(_failed(plain(turn)))
            case _:
                return []

    def _finish(self, event: TurnEvent) -> list[TurnEvent]:
        self.over = isinstance(event, TURN_OVER)
        return [event]

    # Parts.

    def _part(self, part: Any, *, reported: int = 0) -> list[TurnEvent]:
        """The events of a part of the response. `reported`: how many parts that are not streamed were reported."""
        kind = part["kind"]
        if kind in _TEXT:
            _, length = self._texts.setdefault(part["id"], (kind, 0))
            return self._grow(part["id"], str(part["content"])[length:] if len(part["content"]) > length else "")
        if kind == "toolCall":
            return self._call(part["toolCall"])
        if kind in _REPORTED_ELSEWHERE:
            return []
        self._others += 1
        if self._others <= reported:
            return []
        return [Notice(part["content"]) if kind == "systemNotification" else PartAdded(plain(part))]

    def _grow(self, part_id: str, text: str) -> list[TurnEvent]:
        if part_id not in self._texts or not text:
            return []
        kind, length = self._texts[part_id]
        self._texts[part_id] = kind, length + len(text)
        return [_TEXT[kind](part_id, text)]

    # Tool calls.

    def _input(self, action: JsonObject) -> list[TurnEvent]:
        call = self._calls.get(action["toolCallId"])
        if call is None or call.status != "streaming" or not action.get("content"):
            return []
        call.input_length += len(action["content"])
        return [ToolCallInputDelta(action["toolCallId"], action["content"])]

    def _of_call(self, action: JsonObject, state: JsonObject) -> list[TurnEvent]:
        """The events of an action about one call. Other calls are not compared, because a turn may have thousands."""
        turn = state.get("activeTurn") if self._started and not self.over else None
        call = None if turn is None or turn["id"] != self.turn_id else find_tool_call(turn, action["toolCallId"])
        return self.catch_up(state) if call is None else self._call(call)

    def _call(self, call: Any) -> list[TurnEvent]:
        """The events for everything about a tool call that was not reported yet."""
        known = self._calls.get(call["toolCallId"])
        events: list[TurnEvent] = []
        if known is None:
            known = self._calls[call["toolCallId"]] = _Call()
            events.append(ToolCallStarted(plain(call)))
        partial = call.get("partialInput", "")
        if len(partial) > known.input_length:
            events.append(ToolCallInputDelta(call["toolCallId"], str(partial)[known.input_length :]))
            known.input_length = len(partial)
        if call["status"] != known.status:
            known.status = call["status"]
            events += [_BY_STATUS[known.status](plain(call))] if _has_event(call) else []
        elif known.status == "running" and call.get("content") != known.content:
            events.append(ToolCallContent(plain(call)))
        known.content = call.get("content")
        return events

    # The rest.

    def _use(self, usage: Any) -> list[TurnEvent]:
        if usage is None or usage == self._usage:
            return []
        self._usage = usage
        return [Usage(usage)]

    def _ask(self, requests: Iterable[Any]) -> list[TurnEvent]:
        open_now = {request["id"]: request for request in requests}
        resolved = self._questions - open_now.keys()
        asked = open_now.keys() - self._questions
        self._questions = set(open_now)
        events: list[TurnEvent] = [InputResolved(id) for id in sorted(resolved)]
        return events + [InputNeeded(request) for id, request in open_now.items() if id in asked]


def _has_event(call: Any) -> bool:
    """Whether the status of a call is reported by an event. A pending call that is already decided is not."""
    return call["status"] in _BY_STATUS and (call["status"] != "pending-confirmation" or waits_for_person(call))


def _failed(turn: Any) -> TurnFailed:
    """The last error of a failed turn, if it has one."""
    errors = [part for part in turn["responseParts"] if part["kind"] == "error"]
    if not errors:
        return TurnFailed({"errorType": "unknown", "message": "the turn failed"}, turn)
    return TurnFailed(errors[-1]["error"], turn, errors[-1].get("resumable") is True)


__all__ = ["TurnTracker"]
