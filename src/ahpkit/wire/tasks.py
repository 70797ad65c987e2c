"""Owns background tasks: each one is ended with its owner, and a failure is logged, never lost.

`Tasks` owns any number of tasks, and `running` owns one. `wait_first` runs several and uses the first one that ends.
`unless` needs no task: it ends work of the present task early.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Tasks:
    """Runs tasks inside its `async with`. Leaving it cancels what still runs and waits until it has ended.

    A task that fails does not affect the others.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._running:  # A task that ends may have spawned another.
            self.cancel()
            await asyncio.wait(tuple(self._running))

    def cancel(self) -> None:
        """Ask all of them to end; leaving the `async with` waits for it."""
        for task in tuple(self._running):
            task.cancel()

    def __len__(self) -> int:
        """The number of tasks that still run."""
        return len(self._running)

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def call(self, callback: Callable[..., Awaitable[None] | None], *args: Any) -> None:
        """Call a user's function, and await its result in a separate task. The function cannot break the caller."""
        try:
            result = callback(*args)
        except Exception:  # A callback is the user's code.
            _log.exception("%r failed", callback)
            return
        if inspect.isawaitable(result):
            work = result if inspect.iscoroutine(result) else _finish(result)
            self.spawn(work, name=f"callback {callback!r}")

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the task %r failed", task.get_name(), exc_info=error)


async def _finish(result: Awaitable[None]) -> None:
    await result


@asynccontextmanager
async def running(work: Awaitable[T]) -> AsyncGenerator[asyncio.Future[T]]:
    """Run work while the `async with` lasts. Leaving cancels what still runs and waits until it has ended.

    The block may await the task, for its result or its failure. A failure that nobody looks at is logged by asyncio.
    """
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def wait_first(**runners: Coroutine[Any, Any, Any]) -> tuple[str, Any]:
    """The name and the result of the first work that ends; the others are cancelled. If several end together, the one
    that is named first counts."""
    tasks = {asyncio.create_task(runner): name for name, runner in runners.items()}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    winner = next(task for task in tasks if task in done)
    return tasks[winner], winner.result()


async def unless(over: asyncio.Future[Any], work: Awaitable[T]) -> T | None:
    """The result of some work, or None: if `over` is done first, the work is cancelled.

    The work runs in the calling task. This is cheaper than two tasks and a wait for the first.
    """
    clock = asyncio.timeout(None)
    working = True

    def end(_: object) -> None:
        if working:
            clock.reschedule(0)

    over.add_done_callback(end)
    try:
        async with clock:
            try:
                return await work
            finally:
                working = False
    except TimeoutError:
        if not clock.expired():
            raise
        return None
    finally:
        over.remove_done_callback(end)


__all__ = ["Tasks", "running", "unless", "wait_first"]
