"""Runs work that may block on a file system in threads, with a deadline for each piece of work.

A thread that hangs in the operating system (a dead network disk, a device that never answers) cannot be ended. After
the deadline it is abandoned, and a new thread replaces it, up to a limit. An abandoned thread does not prevent the
process from ending.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar, cast

from ahpkit.protocol.errors import Conflict

T = TypeVar("T")

WORKERS = 4
"""Threads: files that are read or written at the same time."""

DEADLINE = 10.0
"""Work that makes no progress for this many seconds is stuck. A local disk answers in milliseconds."""

MAX_STUCK = 32
"""Abandoned threads. If there are more, new work is refused because the file system does not answer."""

_running = threading.local()


class RunInThread(Protocol):
    """`Workers.run`: runs work in a thread and returns its result."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Stopped(Exception):
    """Raised in work whose caller no longer waits for the result."""


class _Job(Generic[T]):
    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.done: asyncio.Future[T] = loop.create_future()
        self.began: float | None = None
        self.given_up = False

    def run(self) -> None:
        _running.job = self
        self.began = time.monotonic()
        result: T | None = None
        failure: BaseException | None = None
        try:
            if not self.given_up:
                result = self.work()
        except BaseException as error:  # The caller of `run` gets this exception.
            failure = error
        _running.job = None
        if not self.given_up and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._finish, cast("T", result), failure)

    def _finish(self, result: T, failure: BaseException | None) -> None:
        if self.done.done() or self.given_up:
            return
        if failure is not None:
            self.done.set_exception(failure)
        else:
            self.done.set_result(result)


def progress() -> None:
    """Long work calls this between two steps, to show that it is not stuck. Raises `Stopped` if the caller no longer
    waits."""
    job: _Job[object] | None = getattr(_running, "job", None)
    if job is not None:
        job.began = time.monotonic()
        if job.given_up:
            raise Stopped


_AnyJob = _Job[Any]


class Workers:
    """`await workers.run(work)`. Threads start with the first work."""

    def __init__(self, name: str, *, count: int = WORKERS, deadline: float = DEADLINE) -> None:
        self._name = name
        self._count = count
        self._deadline = deadline
        self._jobs: queue.SimpleQueue[_AnyJob | None] = queue.SimpleQueue()
        self._threads = 0
        self._stuck = 0
        self._open: set[_AnyJob] = set()
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in one of the threads and return its result. Raises `Conflict` if the file system does not answer
        in time."""
        if self._closed:
            raise Conflict("the host is stopping")
        if self._stuck >= MAX_STUCK:
            raise Conflict(f"the file system does not answer: {self._stuck} requests are stuck in it")
        job = _Job(work, asyncio.get_running_loop())
        self._open.add(job)
        self._start()
        self._jobs.put(job)
        try:
            return await self._finished(job)
        finally:
            job.given_up = True
            if job.done.done() and not job.done.cancelled():
                job.done.exception()  # If the caller was cancelled, nobody else retrieves the exception.
            self._open.discard(job)

    async def _finished(self, job: _Job[T]) -> T:
        while True:
            began = job.began
            left = self._deadline if began is None else began + self._deadline - time.monotonic()
            if began is not None and left <= 0:
                self._leave_behind(job)
                raise Conflict(f"the file system did not answer within {self._deadline:g} s")
            await asyncio.wait([job.done], timeout=max(left, 0.01))
            if job.done.done():
                return job.done.result()

    def _start(self) -> None:
        if self._threads < self._count:
            self._threads += 1
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def _leave_behind(self, job: _AnyJob) -> None:
        """Abandon the thread until the operating system answers, and start another one."""
        self._threads -= 1
        self._stuck += 1
        job.done.cancel()
        self._start()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
            if job.done.cancelled():  # This thread was abandoned, and another one has replaced it.
                self._stuck -= 1
                return

    def close(self) -> None:
        """End the idle threads, and let the working ones stop at their next step.

        Does not wait for them.
        """
        self._closed = True
        for job in self._open:
            job.given_up = True
            if not job.done.done():
                job.done.set_exception(Conflict("the host is stopping"))
        for _ in range(self._threads):
            self._jobs.put(None)


__all__ = ["DEADLINE", "Stopped", "Workers", "progress"]
