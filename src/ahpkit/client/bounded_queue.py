"""A bounded queue to one consumer. When it overflows, the consumer is told that it lagged."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

LIMIT = 10_000
"""Items: several minutes of fast streaming, a few megabytes."""


class Lagged(Exception):
    """Items were dropped since the last one taken. Look at the state; the next item is what comes after it."""


class BoundedQueue(Generic[T]):
    """One side pushes without waiting, the other takes."""

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
        """The consumer missed something: drop what waits, and tell the consumer at its next `take`."""
        if self._end is None:
            self._items.clear()
            self._lagged = True
            self._ready.set()

    def end(self, reason: BaseException | None = None) -> None:
        """Nothing more will come. The consumer still gets what waits, then `reason`, or a plain end."""
        if self._end is None:
            self._end = reason or StopAsyncIteration()
            self._ready.set()

    async def take(self) -> T:
        """The next item. Raises `Lagged` once after a gap, and what `end` was given when all is taken."""
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


__all__ = ["LIMIT", "BoundedQueue", "Lagged"]
