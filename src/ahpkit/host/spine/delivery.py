"""Follows the log: shows what was committed, sends it to subscribers, and wakes tasks that waited for it.

Nothing is shown before it is durable.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from ahpkit.host.spine.fanout import Fanout
from ahpkit.host.spine.store import ChannelChanges, Store
from ahpkit.log.engine import Commit, LogEngine
from ahpkit.log.entry import Entry, is_hole
from ahpkit.protocol.errors import InternalError

_log = logging.getLogger(__name__)

CommitListener = Callable[[ChannelChanges, set[str]], None]
"""Called for each commit, with the channels that were opened and closed, and those that have new actions."""


class Delivery:
    """Follows one log inside its `async with`."""

    def __init__(
        self,
        log: LogEngine,
        store: Store,
        fanout: Fanout,
        *,
        listener: CommitListener,
        on_refused: Callable[[Entry], None],
        before_checkpoint: Callable[[str], None],
        max_backlog: int,
    ) -> None:
        self._log = log
        self._store = store
        self._fanout = fanout
        self._listener = listener
        self._on_refused = on_refused
        """Called for each action that could not be stored. Before the call, the channel's state is reset to the state
        without that action."""
        self._before_checkpoint = before_checkpoint
        """Called with a channel before its state is stored. After that, a restart does not see the actions before."""
        self._max_backlog = max_backlog
        self.commits = 0
        """Commits of the log since the start."""
        self._delivered = 0
        """The last step of the log that was delivered."""
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        """A heap of tasks that wait for a step: the step, the order of arrival, and the future to resolve."""
        self._private: deque[Callable[[int], None]] = deque()
        """Messages to one subscriber only, in the order of their numbers."""
        self._tickets = itertools.count()
        self._due: dict[str, None] = {}
        """Channels whose states have to be stored."""
        self._some_due = asyncio.Event()
        self._running: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._running = [
            asyncio.create_task(self._log.follow(self._store.committed_head, self._take), name="follow the log"),
            asyncio.create_task(self._store_states(), name="store states"),
        ]
        await asyncio.sleep(0)  # Let both tasks begin.
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._running:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for _, _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(InternalError("the host stopped before this was stored"))

    def _take(self, commit: Commit) -> None:
        try:
            self._deliver(commit)
        except Exception:  # One bad batch must not stop all later ones.
            _log.exception("a commit could not be delivered")
        self._free_waiting(commit.step)

    def _deliver(self, commit: Commit) -> None:
        self.commits += 1
        changes = self._store.commit(commit)
        for refused in commit.refused:
            self._on_refused(refused.entry)
        self._fan_out(commit.entries)
        for uri in changes.gone:
            self._fanout.close(uri)
        self._listener(changes, {entry.channel for entry in commit.entries})
        if due := self._log.checkpoints_due():
            self._due.update(dict.fromkeys(due))
            self._some_due.set()

    async def _store_states(self) -> None:
        """Store the states that are due, one after the other, because each may be large."""
        while True:
            await self._some_due.wait()
            self._some_due.clear()
            while self._due:
                uri = next(iter(self._due))
                try:
                    self._before_checkpoint(uri)
                    await self._store.checkpoint(uri)
                except Exception:  # It is due again after the next commit.
                    _log.exception("the state of %s could not be stored", uri)
                del self._due[uri]
                await asyncio.sleep(0)

    def tell_one(self, uri: str, tell: Callable[[int], None]) -> None:
        """Send a message to one subscriber only: call `tell(serverSeq)` when everything before the message was
        delivered.

        The message gets its own number. The log stores only the number, so the message is never replayed.
        """
        self._store.skip(uri)
        self._private.append(tell)

    def _fan_out(self, entries: Sequence[Entry]) -> None:
        start = 0
        for at, entry in enumerate(entries) if self._private else ():
            if is_hole(entry):
                self._fanout.deliver(entries[start:at])
                self._private.popleft()(entry.seq)
                start = at + 1
        self._fanout.deliver(entries[start:])

    @property
    def deliveries(self) -> int:
        """Batches that were written to connections since the start."""
        return self._fanout.deliveries

    def _free_waiting(self, step: int) -> None:
        self._delivered = max(self._delivered, step)
        while self._waiting and self._waiting[0][0] <= self._delivered:
            waiting = heapq.heappop(self._waiting)[2]
            if not waiting.done():
                waiting.set_result(None)

    @property
    def committed_head(self) -> int:
        """Everything up to this serverSeq was delivered."""
        return self._store.committed_head

    # -- waiting for the disk --------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until everything that was dispatched so far is durable and delivered. While the disk fails, this keeps
        waiting."""
        await self._delivered_up_to(self._log.steps)

    async def _delivered_up_to(self, step: int) -> None:
        if step > self._delivered:
            self._log.hurry()
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (step, next(self._tickets), done))
            await done

    async def durable(self) -> None:
        """Like `flush`, but raises when the disk cannot be written."""
        if not await self._unless_failing(self._log.steps):
            raise InternalError(f"this is not stored yet and may be lost: {self._log.failing}")

    def check_writable(self) -> None:
        """Raise while nothing can be stored."""
        if (reason := self._log.failing) is not None:
            raise InternalError(reason)

    @property
    def is_full(self) -> bool:
        """Whether too many changes wait for the disk."""
        return self._store.backlog > self._max_backlog

    async def wait_room(self) -> None:
        """Wait while too many changes wait for the disk. While the disk fails this returns at once, because then
        actions are refused."""
        while (excess := self._store.backlog - self._max_backlog) > 0:
            if not await self._unless_failing(self._delivered + excess):
                return

    async def _unless_failing(self, step: int) -> bool:
        """Wait until a step is delivered; returns False if the log fails first."""
        if step <= self._delivered:
            return True
        delivered = asyncio.ensure_future(self._delivered_up_to(step))
        failing = asyncio.ensure_future(self._log.wait_failing())
        try:
            await asyncio.wait({delivered, failing}, return_when=asyncio.FIRST_COMPLETED)
            return delivered.done()
        finally:
            delivered.cancel()
            failing.cancel()


__all__ = ["CommitListener", "Delivery"]
