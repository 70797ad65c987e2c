"""Records when the tool calls of a turn began, waited for a person and ended, and serves it as `x-ahpkit/turns/times`.

The protocol's states have no times of calls. This module notes the times as the calls change. When a turn ends, its
times are stored beside the log; only those of the newest turns are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NotRequired, TypedDict, cast

from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.registration import ChatApplied, Command, Registration
from ahpkit.protocol.chat.actions import ChatToolCallStartAction
from ahpkit.protocol.chat.turns import find_tool_call

_KEYS: Final = "turn-times/"

MAX_TURNS: Final = 2000
"""Turns whose times are kept. The oldest are forgotten first."""

_CALL: Final = frozenset(
    {
        *("chat/toolCallStart", "chat/toolCallReady", "chat/toolCallConfirmed", "chat/toolCallComplete"),
        *("chat/toolCallResultConfirmed", "chat/toolCallAuthRequired", "chat/toolCallAuthResolved"),
    }
)
_END: Final = frozenset({"chat/turnComplete", "chat/turnCancelled", "chat/error"})
_WAITING: Final = frozenset({"pending-confirmation", "pending-result-confirmation", "auth-required"})
_OVER: Final = frozenset({"completed", "cancelled"})


class _Times(TypedDict):
    """When a call began and ended, and the periods in which it waited for a person (end null: it still waits).
    Milliseconds."""

    startedAt: int
    endedAt: NotRequired[int]
    waited: NotRequired[list[list[int | None]]]


class _Answer(TypedDict):
    calls: dict[str, _Times]


class TurnTimes(Feature):
    """The times of the calls of all turns. `kept` is how many turns that ended are remembered."""

    name = "turn-times"

    def __init__(self, kept: int = MAX_TURNS) -> None:
        self._kept = kept
        self._running: dict[tuple[str, str], dict[str, _Times]] = {}

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.actions.listen(self._on_applied, "chat/")
        host.sessions.disposed.add(self._forget)
        host.commands.add(Command("_ahpkit/turns/times", self._serve))

    def _on_applied(self, applied: ChatApplied) -> None:
        kind = applied.action["type"]
        if kind in _CALL:
            self._note(applied, cast("ChatToolCallStartAction", applied.action))  # All name turn and call.
        elif kind in _END and applied.after is not applied.before:
            self._keep(applied.channel, applied.action.get("turnId", ""))

    def _note(self, applied: ChatApplied, action: ChatToolCallStartAction) -> None:
        call = find_tool_call(applied.after.get("activeTurn"), action["toolCallId"])
        if call is None:
            return
        now = self._services.now()
        times = self._running.setdefault((applied.channel, action["turnId"]), {})
        entry = times.setdefault(action["toolCallId"], {"startedAt": now})
        status = call["status"]
        if (status in _WAITING) != _waits(entry):
            _turn_wait(entry, now)
        if status in _OVER:
            entry.setdefault("endedAt", now)

    def _keep(self, chat: str, turn: str) -> None:
        times = self._running.pop((chat, turn), None)
        if not times:
            return
        now = self._services.now()
        for entry in times.values():
            if _waits(entry):
                _turn_wait(entry, now)
            entry.setdefault("endedAt", now)
        values = self._services.values
        before: dict[str, _Times] = values.get(self._key(chat, turn)) or {}  # A turn that was resumed after it failed.
        values.set(self._key(chat, turn), {**before, **times})
        keys = values.keys(_KEYS)
        for old in list(keys)[: len(keys) - self._kept] if len(keys) > self._kept else ():
            values.set(old, None)

    def _key(self, chat: str, turn: str) -> str:
        return f"{_KEYS}{self._services.session_of(chat)} {chat} {turn}"

    def _forget(self, session_uri: str) -> None:
        for key in list(self._services.values.keys(_KEYS)):
            if key.startswith(f"{_KEYS}{session_uri} "):
                self._services.values.set(key, None)

    async def _serve(self, client: ConnectedClient, params: Mapping[str, object]) -> _Answer:
        chat, turn = str(params.get("channel")), str(params.get("turnId"))
        kept: dict[str, _Times] = self._services.values.get(self._key(chat, turn)) or {}
        return {"calls": {**kept, **self._running.get((chat, turn), {})}}


def _waits(entry: _Times) -> bool:
    waited = entry.get("waited")
    return bool(waited) and waited[-1][1] is None


def _turn_wait(entry: _Times, now: int) -> None:
    """Note that the call begins or stops waiting."""
    waited = entry.setdefault("waited", [])
    if _waits(entry):
        waited[-1][1] = now
    else:
        waited.append([now, None])


__all__ = ["MAX_TURNS", "TurnTimes"]
