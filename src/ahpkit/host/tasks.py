"""Owns background tasks: they end with their owner, and every failure is logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Self

_log = logging.getLogger(__name__)


class Tasks:
    """Runs tasks inside its `async with`. Leaving it cancels what still runs and waits until it has ended."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cancel(self) -> None:
        """Ask all of them to end; leaving the `async with` waits for it."""
        for task in self._tasks:
            task.cancel()

    def __len__(self) -> int:
        """How many still run."""
        return len(self._tasks)

    async def wait_for_one(self) -> None:
        """Wait until one of them has ended."""
        if self._tasks:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the task %r failed", task.get_name(), exc_info=error)


__all__ = ["Tasks"]
