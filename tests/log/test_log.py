"""The log on an event loop: order, durability before report, outages. Storages are doubles or in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.log.datadir import open_storage
from ahpkit.log.entry import Batch, Entry, Recovery, Value
from ahpkit.log.errors import NotInLog, OutOfOrder, StorageError
from ahpkit.log.log import Log
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.retention import Checkpoints, Retention
from ahpkit.log.storage import Storage
from support import requirement
from support.records import entries, entry, opening, seqs
from support.waiting import BOUND, until


class Watched(MemoryStorage):
    """A storage whose commits can be held up or made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self.allowed = threading.Event()
        self.allowed.set()
        self.entered = threading.Event()
        self.full = False
        self.failures = 0

    def commit(self, batch: Batch) -> None:
        self.entered.set()
        assert self.allowed.wait(BOUND)
        if self.full or self.failures:
            self.failures = max(0, self.failures - 1)
            raise StorageError("the disk is full")
        super().commit(batch)
        self.batches.append(batch)


class Reports:
    """What a log told its owner."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.calls = 0
        self.errors: list[Exception] = []
        self.failed = asyncio.Event()

    def on_commit(self, entries: list[Entry]) -> None:
        self.calls += 1
        self.entries.extend(entries)

    def on_error(self, exc: Exception) -> None:
        self.errors.append(exc)
        self.failed.set()


@pytest.fixture
def reports() -> Reports:
    return Reports()


@asynccontextmanager
async def opened(storage: Storage, reports: Reports, **options: Any) -> AsyncGenerator[Log]:
    """A log with the channel `a` open."""
    async with asyncio.timeout(BOUND):
        async with Log(storage, on_commit=reports.on_commit, on_error=reports.on_error, **options) as log:
            if "a" not in log.take_recovery().snapshots:
                log.snapshot(opening())
                await log.flush()
            yield log


async def test_entries_are_reported_in_order_once_they_are_durable(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        for each in entries(1, 100):
            log.append(each)
        await log.flush()

        assert reports.entries == entries(1, 100) == storage.read(0)
        assert log.head_seq == 100
        assert log.pending == 0


async def test_nothing_is_reported_before_it_is_durable(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        storage.allowed.clear()
        log.append(entry(1))
        flushed = asyncio.ensure_future(log.flush())
        await asyncio.sleep(0)

        assert (reports.entries, flushed.done(), log.pending, log.head_seq) == ([], False, 1, 1)
        storage.allowed.set()
        await flushed
        assert seqs(reports.entries) == [1]


async def test_what_gathers_during_a_commit_is_committed_and_reported_together(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        storage.batches.clear()
        reports.calls = 0
        storage.allowed.clear()
        storage.entered.clear()
        log.append(entry(1))
        assert await asyncio.to_thread(storage.entered.wait, BOUND)
        for each in entries(2, 500):
            log.append(each)
        storage.allowed.set()
        await log.flush()

        assert [len(batch) for batch in storage.batches] == [1, 499]
        assert reports.calls == 2


async def test_what_is_queued_in_one_go_is_committed_together(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        storage.batches.clear()
        log.append(entry(1))
        log.snapshot(opening("b", 1))
        log.set_value("key", b"value")
        for each in entries(2, 3000):
            log.append(each)
        await log.flush()

        assert [len(batch) for batch in storage.batches] == [3002]


async def test_what_may_wait_is_committed_with_what_follows(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports, moment=60.0) as log:
        storage.batches.clear()
        log.append(entry(1))
        log.may_wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert log.pending == 1
        log.append(entry(2))
        await log.flush()
        log.may_wait()  # Nothing waits now: it is not about what comes later.
        await asyncio.sleep(0)
        log.append(entry(3))
        await log.flush()
        log.append(entry(4))
        log.may_wait()
        await asyncio.sleep(0)
    assert [[step.seq for step in batch if isinstance(step, Entry)] for batch in storage.batches] == [[1, 2], [3], [4]]
    assert seqs(reports.entries) == [1, 2, 3, 4]


async def test_what_is_queued_later_in_the_same_step_may_not_wait(reports: Reports) -> None:
    async with opened(Watched(), reports, moment=60.0) as log:
        log.append(entry(1))
        log.may_wait()
        log.append(entry(2))
        await until(lambda: reports.entries)
        assert seqs(reports.entries) == [1, 2]


async def test_what_a_client_sent_does_not_wait_for_what_follows(reports: Reports) -> None:
    async with opened(Watched(), reports, moment=2 * BOUND) as log:
        log.append(entry(1, client=("c", 1)))
        log.append(entry(2))
        log.may_wait()
        await until(lambda: reports.entries)
        assert seqs(reports.entries) == [1, 2]


async def test_what_a_task_waits_for_does_not_wait_for_what_follows(reports: Reports) -> None:
    async with opened(Watched(), reports, moment=2 * BOUND) as log:

        async def store() -> None:
            log.append(entry(1))
            await log.flush()

        stored = asyncio.create_task(store())
        asyncio.get_running_loop().call_soon(log.may_wait)  # In the same step, after the task has begun to wait.
        await stored
        assert seqs(reports.entries) == [1]


async def test_what_may_wait_waits_only_a_moment(reports: Reports) -> None:
    async with opened(Watched(), reports) as log:
        log.append(entry(1))
        log.may_wait()
        await until(lambda: reports.entries)
        assert seqs(reports.entries) == [1]


async def test_what_may_wait_waits_no_longer_when_a_task_waits_for_it(reports: Reports) -> None:
    async with opened(Watched(), reports, moment=60.0) as log:
        log.append(entry(1))
        log.may_wait()
        await asyncio.sleep(0)
        await log.flush()
        log.append(entry(2))
        log.may_wait()
        await log.flush()  # In the step in which it was queued.
        assert seqs(reports.entries) == [1, 2]


async def test_what_may_wait_waits_no_longer_when_more_follows_that_may_wait(reports: Reports) -> None:
    """Else an agent that calls one tool after the other could keep all its calls from being stored."""
    async with opened(Watched(), reports) as log:
        while not reports.entries:
            log.append(entry(log.head_seq + 1))
            log.may_wait()
            await asyncio.sleep(0)
        assert seqs(reports.entries)[0] == 1


async def test_steps_that_may_wait_share_one_commit_in_which_the_first_has_waited_a_moment(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports, moment=60.0) as log:
        storage.batches.clear()
        for each in entries(1, 5):
            log.append(each)
            log.may_wait()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert log.pending == 5
        log.append(entry(6))
        await log.flush()
    assert [[step.seq for step in batch if isinstance(step, Entry)] for batch in storage.batches] == [
        [1, 2, 3, 4, 5, 6]
    ]


async def test_a_commit_without_entries_is_reported_too(reports: Reports) -> None:
    async with opened(Watched(), reports) as log:
        reports.calls = 0
        log.snapshot(opening("b"))
        await log.flush()
        assert (reports.calls, reports.entries) == (1, [])


async def test_a_large_backlog_is_committed_in_parts(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        storage.batches.clear()
        storage.allowed.clear()
        for each in entries(1, 5000):
            log.append(each)
            await asyncio.sleep(0)
        storage.allowed.set()
        await log.flush()

        assert max(len(batch) for batch in storage.batches) <= 2048
        assert seqs(reports.entries) == list(range(1, 5001))


async def test_steps_of_every_kind_are_committed_in_the_order_of_the_calls(reports: Reports) -> None:
    storage = MemoryStorage()
    async with opened(storage, reports) as log:
        log.append(entry(1))
        log.remove("a")
        log.snapshot(opening("a", 1, b"second"))
        log.append(entry(2))
        log.set_value("key", b"old")
        log.set_value("key", b"new")
        await log.flush()

    recovery = storage.load()
    assert recovery.snapshots == {"a": opening("a", 1, b"second")}
    assert (seqs(recovery.tail), recovery.values) == ([2], {"key": b"new"})


@requirement("core:connection:server-seq-monotonic")
async def test_a_wrong_number_is_refused_where_it_is_given_and_harms_nothing(reports: Reports) -> None:
    async with opened(MemoryStorage(), reports) as log:
        log.append(entry(1))
        for wrong in (0, 1, 3):
            with pytest.raises(OutOfOrder):
                log.append(entry(wrong))
        with pytest.raises(OutOfOrder, match="no snapshot has opened"):
            log.append(entry(2, "b"))
        log.append(entry(2))
        await log.flush()

        assert seqs(reports.entries) == [1, 2]


@requirement("core:hardening:server-seq-survives-restart")
@pytest.mark.parametrize("durability", ["memory", "full"])
async def test_the_numbers_go_on_after_a_restart(durability: str, tmp_path: Path, reports: Reports) -> None:
    storage = MemoryStorage() if durability == "memory" else open_storage(tmp_path, "full")
    async with opened(storage, reports) as log:
        for each in entries(1, 7):
            log.append(each)
        log.snapshot(opening("a", 7))
    assert storage_trimmed(storage) == 8

    async with opened(storage, reports) as log:
        assert (log.head_seq, log.oldest_seq) == (7, 8)
        with pytest.raises(OutOfOrder):
            log.append(entry(7))
        log.append(entry(8))


def storage_trimmed(storage: Storage) -> int:
    storage.load()
    try:
        return storage.trim(1000)
    finally:
        storage.close()


async def test_leaving_commits_and_reports_what_is_queued(reports: Reports) -> None:
    storage = MemoryStorage()
    async with opened(storage, reports) as log:
        for each in entries(1, 10):
            log.append(each)

    assert seqs(reports.entries) == list(range(1, 11))
    assert storage.load().head_seq == 10


def unexpected(exc: Exception) -> None:
    raise exc


async def test_a_callback_that_fails_does_not_stop_the_log() -> None:
    reported: list[int] = []
    unhandled: list[dict[str, object]] = []

    def on_commit(entries: list[Entry]) -> None:
        reported.extend(seqs(entries))
        raise ZeroDivisionError

    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
    async with asyncio.timeout(BOUND), Log(MemoryStorage(), on_commit=on_commit, on_error=unexpected) as log:
        log.snapshot(opening())
        for each in entries(1, 2):
            log.append(each)
            await log.flush()

    assert reported == [1, 2]
    assert [type(context["exception"]) for context in unhandled] == [ZeroDivisionError] * 2


async def test_an_outage_is_reported_once_and_passes_by_itself(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        storage.failures = 3
        for each in entries(1, 3):
            log.append(each)
        await reports.failed.wait()
        assert log.failing == "the disk is full"
        log.append(entry(4))
        await log.flush()

        assert log.failing is None
        assert seqs(reports.entries) == [1, 2, 3, 4] == seqs(storage.read(0))
        assert [str(error) for error in reports.errors] == ["the disk is full"]

        storage.failures = 1
        log.append(entry(5))
        await log.flush()
        assert len(reports.errors) == 2


async def test_reading_goes_on_during_an_outage(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        log.append(entry(1))
        await log.flush()
        storage.full = True
        log.append(entry(2, client=("me", 1)))
        await reports.failed.wait()

        assert seqs(await log.read(0)) == [1]
        assert await log.seen("me", 1) == 2
        storage.full = False


async def test_what_could_not_be_written_until_the_end_is_never_reported(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        storage.full = True
        log.append(entry(1))
        flushed = asyncio.ensure_future(log.flush())
        await reports.failed.wait()

    with pytest.raises(StorageError, match="the log was closed while it could not be written: the disk is full"):
        await flushed
    assert reports.entries == []
    assert storage.load().head_seq == 0


async def test_reading_is_by_number_channel_and_limit(reports: Reports) -> None:
    async with opened(MemoryStorage(), reports) as log:
        log.snapshot(opening("b"))
        for seq in range(1, 7):
            log.append(entry(seq, "ab"[seq % 2]))
        await log.flush()

        assert seqs(await log.read(2)) == [3, 4, 5, 6]
        assert seqs(await log.read(2, channels=["b"], limit=1)) == [3]
        with pytest.raises(NotInLog):
            await log.read(7)


async def test_an_action_is_seen_from_the_moment_it_is_queued(reports: Reports) -> None:
    storage = Watched()
    async with opened(storage, reports) as log:
        storage.allowed.clear()
        assert await log.seen("me", 5) is None
        log.append(entry(1, client=("me", 5)))
        assert await log.seen("me", 5) == 1
        assert await log.seen("me", 4) is None
        assert await log.seen("me", 6) is None
        storage.allowed.set()
        await log.flush()
        assert await log.seen("me", 5) == 1


async def test_actions_of_before_the_restart_are_seen(reports: Reports) -> None:
    storage = MemoryStorage()
    async with opened(storage, reports) as log:
        log.append(entry(1, client=("me", 5)))
    async with opened(storage, reports) as log:
        assert await log.seen("me", 5) == 1


async def test_a_new_action_costs_no_look_into_the_storage(reports: Reports) -> None:
    class Blind(MemoryStorage):
        def seen(self, client_id: str, client_seq: int) -> int | None:
            raise AssertionError

    async with opened(Blind(), reports) as log:
        for seq in range(1, 5):
            assert await log.seen("me", seq) is None
            log.append(entry(seq, client=("me", seq)))


async def test_the_log_forgets_what_its_retention_does_not_keep(reports: Reports) -> None:
    storage = MemoryStorage()
    async with opened(storage, reports, retention=Retention(max_entries=100)) as log:
        for seq in range(1, 5001):
            log.append(entry(seq))
            if seq % 500 == 0:
                log.snapshot(opening("a", seq))
                await log.flush()
        await log.flush()

        assert 5000 - 100 - 1500 < log.oldest_seq <= 4901
        assert (await log.statistics()).oldest_seq == log.oldest_seq
        with pytest.raises(NotInLog):
            await log.read(log.oldest_seq - 2)


async def test_a_trim_that_fails_is_tried_again_later(reports: Reports, caplog: pytest.LogCaptureFixture) -> None:
    class Sticky(MemoryStorage):
        failures = 1

        def trim(self, before_seq: int) -> int:
            if self.failures:
                self.failures -= 1
                raise StorageError("the disk is full")
            return super().trim(before_seq)

    async with opened(Sticky(), reports, retention=Retention(max_entries=10)) as log:
        for seq in range(1, 2001):
            log.append(entry(seq))
            if seq % 1000 == 0:
                log.snapshot(opening("a", seq))
                await log.flush()

    assert log.oldest_seq > 1000
    assert [record.getMessage() for record in caplog.records] == ["the log was not trimmed: the disk is full"]


async def test_channels_are_due_for_a_snapshot_also_for_what_was_logged_before_the_restart(reports: Reports) -> None:
    storage = MemoryStorage()
    for first in (1, 4):
        async with Log(
            storage,
            on_commit=reports.on_commit,
            on_error=reports.on_error,
            checkpoints=Checkpoints(min_bytes=10),
        ) as log:
            if first == 1:
                log.snapshot(opening())
            for seq in range(first, first + 3):
                log.append(entry(seq, payload=b"22"))
            due = log.snapshots_due()
            assert due == ([] if first == 1 else ["a"])
            for channel in due:
                log.snapshot(opening(channel, log.head_seq))
            assert log.snapshots_due() == []


async def test_the_recovery_is_handed_over_once(reports: Reports) -> None:
    storage = MemoryStorage()
    storage.commit([Value("key", b"1")])
    async with Log(storage, on_commit=reports.on_commit, on_error=reports.on_error) as log:
        assert log.take_recovery() == Recovery(values={"key": b"1"})
        with pytest.raises(RuntimeError, match="already taken"):
            log.take_recovery()


async def test_a_storage_that_cannot_be_loaded_is_closed_and_says_why(reports: Reports) -> None:
    class Unreadable(MemoryStorage):
        closed = False

        def load(self) -> Recovery:
            raise StorageError("no")

        def close(self) -> None:
            self.closed = True

    storage = Unreadable()
    with pytest.raises(StorageError, match=r"^no$"):
        async with Log(storage, on_commit=reports.on_commit, on_error=reports.on_error):
            pass
    assert storage.closed
    assert "ahpkit-log" not in {thread.name for thread in threading.enumerate()}
