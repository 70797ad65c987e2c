"""The ordered durable log, for the event loop.

Steps are committed in the order of the calls. Steps that are queued without an `await` in between are committed
together, so a crash keeps all of them or none. A step is reported only when it is durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from ahpkit.log.entry import (
    Batch,
    ChannelRemoval,
    ChannelSnapshot,
    Entry,
    Recovery,
    StatePart,
    Statistics,
    Step,
    Value,
    is_hole,
)
from ahpkit.log.errors import StorageError
from ahpkit.log.retention import Checkpoints, Retention
from ahpkit.log.storage import StepOrder, Storage
from ahpkit.log.writer import Refusals, Writer

_logger = logging.getLogger(__name__)

MOMENT = 0.01
"""Seconds that a step may wait for the next one: so short that nobody notices it."""


class Log:
    """One log, open inside its `async with`. All methods are called in the thread of the event loop.

    `on_commit` is called on the event loop after each commit with its entries, in order. The list is empty for a commit
    of states and values only. `on_error` is called once when the storage starts to fail; `failing` says why until it
    works again. Meanwhile everything is kept and tried again. `on_refused` is called, before `on_commit`, for a step
    that the storage cannot hold, with its place among all that were queued: it is not in the log, and its number is not
    used again.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        on_commit: Callable[[list[Entry]], None],
        on_error: Callable[[Exception], None],
        on_refused: Callable[[Step, int, str], None] | None = None,
        retention: Retention | None = None,
        checkpoints: Checkpoints | None = None,
        moment: float = MOMENT,
    ) -> None:
        self._storage = storage
        self._on_commit = on_commit
        self._on_error = on_error
        self._on_refused = on_refused or _say_refused
        self._retention = retention or Retention()
        self._checkpoints = checkpoints or Checkpoints()
        self._moment = moment
        self._gathered: Batch = []
        """Steps that were queued in this step of the event loop, after those that were allowed to wait. The writer gets
        them as one batch."""
        self._may_wait = False
        """Whether all gathered steps may wait after the end of this step of the event loop."""
        self._urgent = False
        """Whether somebody waits for one of the gathered steps: a client for its action, or a task."""
        self._waiting: asyncio.TimerHandle | None = None
        """The timer that ends the waiting; None while no steps wait."""
        self._wait_until: float | None = None
        """The time until which the first of the gathered steps may wait; None: no step has waited yet."""
        self.queued = 0
        """The number of all steps queued so far."""
        self.durable = 0
        """The number of steps that were committed so far, in the order in which they were queued."""
        self._flushes: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="ahpkit-log-read")
        try:
            recovery = await self._loop.run_in_executor(self._readers, self._storage.load)
        except BaseException:
            self._readers.submit(self._storage.close)
            self._readers.shutdown()
            raise
        self._recovery: Recovery | None = recovery
        self._order = StepOrder(recovery.head_seq, recovery.snapshots)
        self._clients = dict(recovery.clients)
        for snapshot in recovery.snapshots.values():
            self._checkpoints.snapshot(snapshot)
        for entry in recovery.tail:
            self._checkpoints.append(entry)
        self._writer = Writer(
            self._storage,
            on_commit=lambda batch, refused: self._call_soon(self._committed, batch, refused),
            on_error=lambda exc: self._call_soon(self._on_error, exc),
            retention=self._retention,
            head_seq=recovery.head_seq,
            oldest_seq=recovery.oldest_seq,
        )
        self._writer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Commit all queued steps. If the storage still fails, they are lost; they were never reported."""
        self._hand_over()
        await self._loop.run_in_executor(self._readers, self._close)
        self._readers.shutdown()
        for _seq, flush in self._flushes:
            if not flush.done():
                flush.set_exception(StorageError(f"the log was closed while it could not be written: {self.failing}"))

    def _close(self) -> None:
        self._writer.stop()
        self._storage.close()

    def take_recovery(self) -> Recovery:
        """What was stored when the log was opened. It can be taken once, because it may be large."""
        recovery, self._recovery = self._recovery, None
        if recovery is None:
            raise RuntimeError("the recovery was already taken")
        return recovery

    @property
    def head_seq(self) -> int:
        """The highest number that was given to an entry, durable or not."""
        return self._order.head_seq

    @property
    def oldest_seq(self) -> int:
        """A client that has everything before this number can get a replay."""
        return self._writer.oldest_seq

    @property
    def failing(self) -> str | None:
        """Why nothing can be made durable now, in words for a person; None: it can."""
        return self._writer.failing

    @property
    def pending(self) -> int:
        """How many steps are not durable yet."""
        return self.queued - self.durable

    def append(self, entry: Entry) -> None:
        """Queue an entry. Raises `OutOfOrder` if its number is not the next one, or its channel is not open."""
        self._order.append(entry)
        if not is_hole(entry):
            self._checkpoints.append(entry)
        client_id, client_seq = entry.client_id, entry.client_seq
        if client_id is not None and client_seq is not None and client_seq > self._clients.get(client_id, -1):
            self._clients[client_id] = client_seq
        self._put(entry)
        self._urgent = self._urgent or client_id is not None

    def snapshot(self, snapshot: ChannelSnapshot) -> None:
        """Queue a state. The first one of a channel opens the channel. After a later one, a restart has fewer entries
        to apply."""
        self._order.snapshot(snapshot)
        self._checkpoints.snapshot(snapshot)
        self._put(snapshot)

    def part(self, part: StatePart) -> None:
        """Queue a part of a large state; the snapshot that it belongs to follows."""
        self._order.part(part)
        self._put(part)

    def remove(self, channel: str) -> None:
        """Queue the end of a channel: its state and its entries are not found any more."""
        self._order.remove(channel)
        self._checkpoints.remove(channel)
        self._put(ChannelRemoval(channel))

    def set_value(self, key: str, data: bytes | None) -> None:
        """Queue a value to store beside the log; None removes the key."""
        self._put(Value(key, data))

    def snapshots_due(self) -> list[str]:
        """Channels that should get a `snapshot` of their present state soon; ask after each commit, it is cheap."""
        return self._checkpoints.due(self.head_seq)

    async def flush(self) -> None:
        """Wait until everything queued so far is durable and reported. While the storage fails, this keeps waiting."""
        self.hurry()
        if self.pending:
            done = self._loop.create_future()
            self._flushes.append((self.queued, done))
            await done

    async def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        """Durable entries after a number; raises `NotInLog` if the log no longer (or not yet) reaches that number."""

        def read() -> list[Entry]:
            return self._storage.read(after, channels=channels, limit=limit, max_bytes=max_bytes)

        return await self._loop.run_in_executor(self._readers, read)

    def is_new(self, client_id: str, client_seq: int) -> bool:
        """Whether a client has certainly not used this number before: it is higher than all it used. Costs no I/O."""
        return client_seq > self._clients.get(client_id, -1)

    async def seen(self, client_id: str, client_seq: int) -> int | None:
        """The number this action of a client got, 0 if that is trimmed, None if it is new. New ones cost no I/O."""
        if self.is_new(client_id, client_seq):
            return None
        # In this order, so that the second lookup finds an entry that is committed in between.
        for step in [*self._writer.pending(), *self._gathered]:
            if type(step) is Entry and step.client_id == client_id and step.client_seq == client_seq:
                return step.seq
        return await self._loop.run_in_executor(self._readers, self._storage.seen, client_id, client_seq)

    async def statistics(self) -> Statistics:
        """How large the log is."""
        return await self._loop.run_in_executor(self._readers, self._storage.statistics)

    def may_wait(self) -> None:
        """Let the steps that were queued so far wait a moment, so that they are committed together with later ones. A
        later step ends the waiting unless this is called again after it. The first step never waits longer than a
        moment. An action of a client, and what a task waits for, do not wait."""
        self._may_wait = bool(self._gathered) and not self._urgent

    def hurry(self) -> None:
        """Commit the steps so far as soon as possible, because a task waits until they are durable."""
        if self._waiting is not None:
            self._hand_over()
        self._may_wait, self._urgent = False, bool(self._gathered)

    def _put(self, step: Step) -> None:
        if not self._gathered or self._waiting is not None:
            self._wait_no_more()
            self._loop.call_soon(self._end_step)
        self._gathered.append(step)
        self._may_wait = False
        self.queued += 1

    def _end_step(self) -> None:
        left = self._wait_left() if self._may_wait else 0.0
        if left > 0:
            self._may_wait = False
            self._waiting = self._loop.call_later(left, self._hand_over)
        else:
            self._hand_over()

    def _wait_left(self) -> float:
        """Seconds that the gathered steps may still wait."""
        now = self._loop.time()
        if self._wait_until is None:
            self._wait_until = now + self._moment
        return self._wait_until - now

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _hand_over(self) -> None:
        self._wait_no_more()
        self._may_wait, self._urgent, self._wait_until = False, False, None
        if self._gathered:
            self._writer.put(self._gathered)
            self._gathered = []

    def _call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)

    def _committed(self, batch: Batch, refused: Refusals) -> None:
        before, self.durable = self.durable, self.durable + len(batch)
        try:
            if refused:
                batch = self._without(refused, batch, before)
            self._on_commit([step for step in batch if type(step) is Entry])
        finally:
            while self._flushes and self._flushes[0][0] <= self.durable:
                _seq, flush = self._flushes.popleft()
                if not flush.done():
                    flush.set_result(None)

    def _without(self, refused: Refusals, batch: Batch, before: int) -> Batch:
        """The rest of a batch after refused steps. Reports these steps; `before` is the number of steps before the
        batch."""
        reasons = {id(step): reason for step, reason in refused}
        for number, step in enumerate(batch, before + 1):
            if id(step) in reasons:
                self._on_refused(step, number, reasons[id(step)])
        return [step for step in batch if id(step) not in reasons]


def _say_refused(step: Step, _number: int, reason: str) -> None:
    _logger.error("a %s could not be stored and is dropped: %s", type(step).__name__, reason)


__all__ = ["MOMENT", "Log"]
