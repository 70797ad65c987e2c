"""The thread that writes a log: it takes all queued steps, commits them together, and reports the commit.

While one batch is written to the disk, the next one gathers. So a single entry does not wait, and a thousand share one
sync.

If the storage fails, the batch is tried again until it works. A batch that is refused because of its content is written
in parts, without the faulty step.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import chain

from ahpkit.log.entry import Batch, Entry, Step, Value, hole
from ahpkit.log.errors import StorageError
from ahpkit.log.retention import Retention
from ahpkit.log.storage import Storage

_MAX_BATCH = 2048
"""Steps of one commit. More steps would not be faster per entry, and the first would wait for the last."""
_MAX_BATCH_BYTES = 1 << 20
"""Bytes of the entries of one commit, because one step of the event loop sends them to all subscribers."""
_RETRY_FIRST_S, _RETRY_MAX_S = 0.05, 2.0
"""A full disk is tried again this soon, so free space is noticed within two seconds."""
_REST_S = 2.0
"""Seconds without a commit after which the storage may do work that would delay commits."""
_BREAK_S = 0.001
"""Seconds between two pieces of work that can wait, so that a commit can begin in between."""
_HOUSEKEEPING_EVERY = 1000
"""Entries between two checks of the retention. A check takes some twenty lookups, little compared with a thousand
inserts."""
_TRIM_AT_MOST = 10_000
"""Entries that are forgotten at once, so that a lowered limit does not delay commits for long. This is several times
the number that arrives between two checks, so trimming always catches up."""

_HARMLESS = Value("", None)
"""A step that changes nothing. If a storage refuses even this step, it refuses everything."""

Refusals = list[tuple[Step, str]]
"""Steps of a batch that are not in the log, each with the reason."""

_logger = logging.getLogger(__name__)


class Writer:
    """Owns the writing side of a storage from `start` to `stop`."""

    def __init__(
        self,
        storage: Storage,
        *,
        on_commit: Callable[[Batch, Refusals], None],
        on_error: Callable[[Exception], None],
        retention: Retention,
        head_seq: int,
        oldest_seq: int,
        rest_s: float = _REST_S,
    ) -> None:
        self._storage = storage
        self._on_commit = on_commit
        self._on_error = on_error
        self._retention = retention
        self._rest_s = rest_s
        self._head_seq = head_seq
        self.oldest_seq = oldest_seq
        self.failing: str | None = None
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._idle = False
        self._stopping = False
        self._queue: deque[Batch] = deque()
        self._writing: Batch = []
        self._since_housekeeping = _HOUSEKEEPING_EVERY  # Check early: a host may not run that long.
        self._thread = threading.Thread(target=self._run, name="ahpkit-log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, steps: Batch) -> None:
        """Queue steps that are committed together."""
        with self._lock:
            self._queue.append(steps)
            if self._idle:
                self._idle = False
                self._changed.notify()

    def stop(self) -> None:
        """Write all queued steps and end; blocks. Steps that a failing storage refuses once more are dropped and never
        reported."""
        with self._lock:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def pending(self) -> Batch:
        """The steps that are not durable yet."""
        with self._lock:
            return [*self._writing, *chain.from_iterable(self._queue)]

    def _run(self) -> None:
        timeout, more = None, False
        while (batch := self._take(timeout)) != []:
            if batch is None:
                rested = not more
                more = self._tidy(at_rest=rested)
                timeout = _BREAK_S if more else None if rested else self._rest_s
                continue
            self._refused: Refusals = []
            if not self._commit(batch):
                return
            self._on_commit(batch, self._refused)
            self._housekeep(batch)
            more = not self._queue and self._tidy()
            timeout = _BREAK_S if more else self._rest_s

    def _take(self, timeout: float | None) -> Batch | None:
        """The queued steps, as soon as there are any. Empty if the log is closed, None after the timeout."""
        with self._lock:
            self._writing = []
            while not self._queue and not self._stopping:
                self._idle = True
                if not self._changed.wait(timeout) and not self._queue and not self._stopping:
                    self._idle = False
                    return None
            size = 0
            while self._queue and len(self._writing) < _MAX_BATCH and size < _MAX_BATCH_BYTES:
                steps = self._queue.popleft()
                self._writing += steps
                size += sum(len(step.payload) for step in steps if type(step) is Entry)
            return self._writing

    def _commit(self, batch: Batch) -> bool:
        """Commit a batch, and try again until it works; False if the log is closed before."""
        rest, delay = batch, _RETRY_FIRST_S
        while True:
            try:
                while rest:
                    rest = rest[self._store(rest) :]
            except Exception as exc:  # The thread must not die: it reports and tries again.
                self._report(exc)
                if self._wait_to_retry(delay):
                    return False
                delay = min(2 * delay, _RETRY_MAX_S)
            else:
                self.failing = None
                return True

    def _store(self, steps: Batch) -> int:
        """Commit as many of these steps together as possible; returns how many. These are all, unless one of them
        cannot be stored."""
        try:
            self._storage.commit(steps)
        except (StorageError, OSError):
            raise
        except Exception as exc:  # The storage refuses a value: find out which step has it.
            if len(steps) > 1:
                return self._store(steps[: len(steps) // 2])
            self._leave_out(steps[0], exc)
        return len(steps)

    def _leave_out(self, step: Step, reason: Exception) -> None:
        """Continue without a step that cannot be written. If nothing else can be written either, the storage fails."""
        try:
            self._storage.commit([hole(step.seq, step.at) if type(step) is Entry else _HARMLESS])
        except (StorageError, OSError):
            raise
        except Exception as exc:  # Even the replacement is refused.
            raise StorageError(f"the log cannot be written: {exc}") from exc
        self._refused.append((step, str(reason) or repr(reason)))

    def _report(self, exc: Exception) -> None:
        reported, self.failing = self.failing, str(exc) or repr(exc)
        if reported is None:
            self._on_error(exc)

    def _wait_to_retry(self, delay: float) -> bool:
        """Wait before the next try; returns whether to give up. A stop during the wait allows one more try."""
        with self._lock:
            if self._stopping:
                return True
            self._changed.wait_for(lambda: self._stopping, delay)
            return False

    def _housekeep(self, batch: Batch) -> None:
        last = next((step for step in reversed(batch) if type(step) is Entry), None)
        if last is None:
            return
        self._since_housekeeping += last.seq - self._head_seq
        self._head_seq = last.seq
        if self._since_housekeeping >= _HOUSEKEEPING_EVERY:
            self._since_housekeeping = 0
            self._trim()

    def _tidy(self, *, at_rest: bool = False) -> bool:
        """Do some of the work that can wait; returns whether there is more."""
        try:
            return self._storage.tidy(at_rest=at_rest)
        except StorageError as exc:
            _logger.warning("the log was not tidied: %s", exc)
            return False

    def _trim(self) -> None:
        try:
            keep = self._retention.keep_from(self.oldest_seq, self._head_seq, self._storage.mark)
            if keep > self.oldest_seq:
                self.oldest_seq = self._storage.trim(min(keep, self.oldest_seq + _TRIM_AT_MOST))
        except StorageError as exc:
            _logger.warning("the log was not trimmed: %s", exc)


__all__ = ["Refusals", "Writer"]
