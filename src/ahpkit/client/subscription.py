"""A subscription of the client SDK: the channel's states, and a bounded queue of its actions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast

from ahpkit.client.channels import Channel, Channels
from ahpkit.client.errors import LaggedError
from ahpkit.protocol.common.actions import ActionEnvelope
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError

T = TypeVar("T")

LIMIT = 10_000
"""The number of items in a queue: several minutes of fast streaming, a few megabytes."""


class Lagged(Exception):
    """Items were dropped. The state contains them; the next item follows that state."""


class BoundedQueue(Generic[T]):
    """A queue whose producer never waits. When it is full, its items are dropped and the consumer gets `Lagged`."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._items: deque[T] = deque()
        self._limit = limit
        self._lagged = False
        self._end: BaseException | None = None
        self._ready = asyncio.Event()

    def push(self, item: T) -> None:
        if self._lagged or self._end is not None:
            return
        if len(self._items) >= self._limit:
            self.lag()
        else:
            self._items.append(item)
            self._ready.set()

    def lag(self) -> None:
        """The consumer missed items: drop what is queued; the next `take` raises `Lagged`."""
        if self._end is None:
            self._items.clear()
            self._lagged = True
            self._ready.set()

    def end(self, reason: BaseException | None = None) -> None:
        """End the queue. The consumer still gets what is queued; then `take` raises `reason`."""
        if self._end is None:
            self._end = reason or StopAsyncIteration()
            self._ready.set()

    async def take(self) -> T:
        """The next item. Raises `Lagged` once after a gap. After the last item it raises the reason given to `end`."""
        while True:
            if self._lagged:
                self._lagged = False
                raise Lagged
            if self._items:
                return self._items.popleft()
            if self._end is not None:
                raise self._end
            self._ready.clear()
            await self._ready.wait()


class Subscription:
    """`async with client.subscribe(uri) as subscription`: read the states, iterate over the actions.

    Subscriptions of one channel share one subscription at the host and come back after a reconnect. A consumer that is
    more than `limit` actions behind gets a `LaggedError`, once; then it reads the state and goes on.
    """

    def __init__(self, channels: Channels, uri: str, *, limit: int = LIMIT) -> None:
        self.uri = uri
        self._channels = channels
        self._queue: BoundedQueue[JsonObject] = BoundedQueue(limit)
        self._last_seq = 0
        self._reads = False
        self._channel: Channel

    async def __aenter__(self) -> Self:
        self._channel = await self._channels.open(self.uri)
        self._channel.listeners.append(self)
        self._last_seq = self._channel.seq
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._channel.listeners.remove(self)
        self._channel.readers -= self._reads
        self._channels.release(self._channel)
        self._queue.end()

    @property
    def confirmed(self) -> Any:
        """The state as the host has it; None for a channel without state."""
        return self._channel.plain_confirmed()

    @property
    def optimistic(self) -> Any:
        """The confirmed state with this client's unanswered actions applied on top."""
        return self._channel.plain_optimistic()

    @property
    def state(self) -> Any:
        """What to show: the optimistic state."""
        return self._channel.plain_optimistic()

    async def wait_for(self, condition: Callable[[Any], bool]) -> Any:
        """Wait until the confirmed state fulfils `condition`; returns that state. Takes nothing from the iteration."""
        return await wait_for(self._channel, condition)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ActionEnvelope:
        if not self._reads:
            self._reads = True
            self._channel.readers += 1
        try:
            envelope = await self._queue.take()
        except Lagged:
            last, self._last_seq = self._last_seq, self._channel.seq
            raise LaggedError(self.uri, last, self._last_seq) from None
        self._last_seq = envelope["serverSeq"]
        return cast("ActionEnvelope", envelope)

    def on_action(self, envelope: JsonObject) -> None:
        self._queue.push(envelope)

    def on_reset(self) -> None:
        self._queue.lag()

    def on_gone(self, error: AhpError) -> None:
        self._queue.end(error)


class _Waiter:
    """Looks at a channel's confirmed state after every change until it fulfils a condition."""

    def __init__(self, channel: Channel, condition: Callable[[Any], bool]) -> None:
        self._channel = channel
        self._condition = condition
        self.found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def check(self) -> None:
        state = self._channel.plain_confirmed()
        try:
            if not self.found.done() and self._condition(state):
                self.found.set_result(state)
        except Exception as error:  # The user's condition failed: the caller of `wait_for` gets the error.
            self.found.set_exception(error)

    def on_action(self, envelope: JsonObject) -> None:
        self.check()

    def on_reset(self) -> None:
        self.check()

    def on_gone(self, error: AhpError) -> None:
        if not self.found.done():
            self.found.set_exception(error)


async def wait_for(channel: Channel, condition: Callable[[Any], bool]) -> Any:
    """Wait until a held channel's confirmed state fulfils `condition`; returns that state."""
    waiter = _Waiter(channel, condition)
    channel.listeners.append(waiter)
    try:
        waiter.check()
        if channel.ended is not None:
            waiter.on_gone(channel.ended)
        return await waiter.found
    finally:
        channel.listeners.remove(waiter)


__all__ = ["LIMIT", "BoundedQueue", "Lagged", "Subscription", "wait_for"]
