"""A turn as a stream of events, whether this client or another one started it. `turn_tracker` computes the events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Self

from ahpkit.client.channels import Channels
from ahpkit.client.dispatch import Dispatch, Outcome, Rejected
from ahpkit.client.errors import UNREADABLE, ActionRejected, ClientClosed, TurnError
from ahpkit.client.events import TextDelta, TurnCancelled, TurnEvent, TurnFailed
from ahpkit.client.subscription import BoundedQueue, Lagged
from ahpkit.client.turn_tracker import TurnTracker
from ahpkit.protocol.chat.turns import find_turn
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError, RemoteProtocolError

_BEHIND = 1000
"""Actions that may wait for a slow consumer. With more it gets the difference of two states: fewer, longer deltas."""

_ACCEPTED: JsonObject = {"type": "accepted"}
"""Placeholder among the actions: the host accepted the turn."""


class TurnStream:
    """`async for event in chat.send("…")`. Ends with the turn; raises `ActionRejected` when the host refused it.

    Breaking out of the loop leaves the turn running. The connection may be lost in between: missed text is taken from
    the state, and none comes twice.
    """

    def __init__(
        self,
        channels: Channels,
        chat: str,
        turn_id: str,
        *,
        dispatch: Dispatch | None = None,
        resumed: bool = False,
    ) -> None:
        self.turn_id = turn_id
        self.dispatch = dispatch
        """The dispatched `chat/turnStarted` or `chat/turnResume`, when this client sent it."""
        self._channels = channels
        self._channel = channels.hold(chat, "chat")
        self._tracker = TurnTracker(turn_id)
        self._queue: BoundedQueue[tuple[JsonObject | None, JsonObject]] = BoundedQueue(_BEHIND)
        self._events: deque[TurnEvent] = deque()
        self._active = False
        self._over: list[Callable[[], None]] = []
        self._channel.listeners.append(self)
        self._resuming = resumed
        """Whether the turn failed and is being resumed. Then its old end is ignored."""
        if resumed:
            self._tracker.skip(self._channel.confirmed or {"turns": []})
        self.on_reset()
        if dispatch is not None:
            dispatch.then(self._settled)

    def when_over(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the turn is over, also when the stream is not iterated over."""
        self._over.append(callback)

    async def text(self) -> str:
        """Wait for the end and return the whole answer. Raises `TurnError` when the turn failed or was cancelled."""
        parts: list[str] = []
        async for event in self:
            check_answer(event)
            if isinstance(event, TextDelta):
                parts.append(event.text)
        return "".join(parts)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TurnEvent:
        while not self._events:
            self._events.extend(await self._take())
        return self._events.popleft()

    async def _take(self) -> list[TurnEvent]:
        try:
            action, state = await self._queue.take()
        except Lagged:
            action, state = (_ACCEPTED if self._active else None), self._channel.confirmed or {"turns": []}
        if action is _ACCEPTED:
            self._tracker.accepted = True
        try:
            return self._tracker.catch_up(state) if action is None else self._tracker.act(action, state)
        except UNREADABLE as error:
            unreadable = RemoteProtocolError(f"{self._channel.uri}: the host's turn cannot be read: {error!r}")
            self._end(unreadable)
            raise unreadable from error

    # Calls from the channel. Each action is queued with the state right after it, from which its events are computed.

    def on_action(self, envelope: JsonObject) -> None:
        self._push(envelope["action"])

    def on_reset(self) -> None:
        self._push(None)

    def on_gone(self, error: AhpError) -> None:
        self._end(error)

    def _push(self, action: JsonObject | None) -> None:
        state = self._channel.confirmed
        if state is None or self._waits(state):
            return
        self._queue.push((action, state))
        if self._is_over(state):
            self._end(None)

    def _waits(self, state: JsonObject) -> bool:
        """Whether the turn is still as it was before it was resumed."""
        self._resuming = self._resuming and state.get("activeTurn", {}).get("id") != self.turn_id
        return self._resuming

    def _is_over(self, state: JsonObject) -> bool:
        if state.get("activeTurn", {}).get("id") == self.turn_id:
            self._active = True
            return False
        return self._active or find_turn(state, self.turn_id) is not None

    def _settled(self, outcome: Outcome | None) -> None:
        if isinstance(outcome, Rejected) and self.dispatch is not None:
            self._end(ActionRejected(self.dispatch.channel, self.dispatch.action, outcome.reason))
        elif outcome is None:
            self._end(ClientClosed("the client was closed before the host answered"))
        elif self._resuming:  # The turn was resumed and ended while the client was offline.
            self._resuming = False
            self._push(None)
        elif not self._active:  # The turn began and was cut from the history while the client was offline.
            self._active = True
            self._push(_ACCEPTED)

    def _end(self, reason: BaseException | None) -> None:
        if self not in self._channel.listeners:
            return
        self._channel.listeners.remove(self)
        self._channels.release(self._channel)
        self._queue.end(reason)
        for callback in self._over:
            callback()


def check_answer(event: TurnEvent) -> None:
    """Raise `TurnError` when an event says that there will be no answer."""
    match event:
        case TurnFailed(error=error):
            raise TurnError(error["message"], error_type=error["errorType"], resumable=event.resumable)
        case TurnCancelled():
            raise TurnError("the turn was cancelled", error_type="cancelled")
        case _:
            pass


__all__ = ["TurnStream", "check_answer"]
