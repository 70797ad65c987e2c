"""The writing thread itself, without an event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ahpkit.log.entry import Batch, Entry
from ahpkit.log.errors import StorageError
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.retention import Retention
from ahpkit.log.writer import Refusals, Writer
from support import requirement
from support.records import entries, entry, opening, seqs
from support.waiting import BOUND


class Failing(MemoryStorage):
    """Fails until told otherwise, and counts how often."""

    def __init__(self) -> None:
        super().__init__()
        super().commit([opening()])
        self.tries = 0
        self.tried_twice = threading.Event()
        self.error: Exception | None = StorageError("the disk is full")

    def commit(self, batch: Batch) -> None:
        self.tries += 1
        if self.tries == 2:
            self.tried_twice.set()
        if self.error is not None:
            raise self.error
        super().commit(batch)


def ignore(_: object) -> None:
    pass


def make(
    storage: MemoryStorage,
    *,
    on_commit: Callable[[Batch], object] = ignore,
    on_refused: Callable[[Refusals], object] = ignore,
    on_error: Callable[[Exception], None] = ignore,
    retention: Retention | None = None,
    rest_s: float = BOUND,
) -> Writer:
    recovery = storage.load()

    def committed(batch: Batch, refused: Refusals) -> None:
        on_commit(batch)
        on_refused(refused)

    return Writer(
        storage,
        on_commit=committed,
        on_error=on_error,
        retention=retention or Retention(),
        head_seq=recovery.head_seq,
        oldest_seq=recovery.oldest_seq,
        rest_s=rest_s,
    )


def test_stopping_writes_everything_that_was_put() -> None:
    storage = MemoryStorage()
    storage.commit([opening()])
    committed: Batch = []
    writer = make(storage, on_commit=committed.extend)
    writer.start()
    for each in entries(1, 10_000):
        writer.put([each])
    writer.stop()

    assert committed == entries(1, 10_000) == storage.read(0)


def test_what_was_put_together_is_committed_together_and_a_backlog_in_parts() -> None:
    storage = MemoryStorage()
    storage.commit([opening()])
    sizes: list[int] = []
    writer = make(storage, on_commit=lambda batch: sizes.append(len(batch)))
    for first in range(1, 10_000, 1000):
        writer.put([*entries(first, first + 999)])
    writer.start()
    writer.stop()

    assert sizes == [3000, 3000, 3000, 1000]


def test_what_was_put_before_the_start_is_not_lost() -> None:
    storage = MemoryStorage()
    storage.commit([opening()])
    writer = make(storage)
    writer.put([entry(1)])
    writer.start()
    writer.stop()

    assert seqs(storage.read(0)) == [1]


def test_stopping_during_an_outage_tries_once_more_and_loses_nothing_if_that_works() -> None:
    storage = Failing()
    failed = threading.Event()
    committed: Batch = []

    def on_error(_: Exception) -> None:
        storage.error = None
        failed.set()

    writer = make(storage, on_commit=committed.extend, on_error=on_error)
    writer.start()
    writer.put([entry(1)])
    assert failed.wait(BOUND)
    writer.stop()

    assert committed == [entry(1)]
    assert storage.tries == 2


def test_stopping_during_an_outage_that_goes_on_ends_without_a_report() -> None:
    storage = Failing()
    committed: Batch = []
    writer = make(storage, on_commit=committed.extend)
    writer.start()
    writer.put([entry(1)])
    assert storage.tried_twice.wait(BOUND)
    writer.stop()

    assert committed == []
    assert writer.failing == "the disk is full"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError()], ids=["OSError", "a bug"])
def test_no_error_of_a_storage_ends_the_thread(error: Exception) -> None:
    storage = Failing()
    storage.error = error
    errors: list[Exception] = []
    writer = make(storage, on_error=errors.append)
    writer.start()
    writer.put([entry(1)])
    assert storage.tried_twice.wait(BOUND)
    storage.error = None
    writer.stop()

    assert len(errors) == 1
    assert str(error) in str(errors[0])
    assert seqs(storage.read(0)) == [1]


def test_large_entries_do_not_share_a_commit() -> None:
    storage = MemoryStorage()
    storage.commit([opening()])
    sizes: list[int] = []
    writer = make(storage, on_commit=lambda batch: sizes.append(len(batch)))
    large = b"x" * (5 << 20)
    for seq in (1, 2, 3):
        writer.put([entry(seq)._replace(payload=large)])
    writer.put([entry(4)])
    writer.put([entry(5)])
    writer.start()
    writer.stop()
    assert sizes == [1, 1, 1, 2]


def test_a_commit_has_a_mebibyte_of_entries_because_it_is_sent_to_all_subscribers_in_one_step() -> None:
    storage = MemoryStorage()
    storage.commit([opening()])
    sizes: list[int] = []
    writer = make(storage, on_commit=lambda batch: sizes.append(len(batch)))
    for seq in range(1, 13):
        writer.put([entry(seq)._replace(payload=b"x" * 200_000)])
    writer.start()
    writer.stop()
    assert sizes == [6, 6]


def test_the_storage_is_tidied_when_nothing_waits() -> None:
    class Tidy(MemoryStorage):
        times = 0

        def tidy(self, *, at_rest: bool = False) -> bool:
            self.times += 1
            raise StorageError("not now")

    storage = Tidy()
    storage.commit([opening()])
    writer = make(storage)
    writer.put([entry(1)])
    writer.start()
    writer.stop()
    assert storage.times == 1, "and a failure is logged, nothing else"
    assert seqs(storage.read(0)) == [1]


def test_a_storage_that_rests_may_take_its_time_once() -> None:
    class Tidy(MemoryStorage):
        def __init__(self) -> None:
            super().__init__()
            self.rested = threading.Event()
            self.calls: list[bool] = []

        def tidy(self, *, at_rest: bool = False) -> bool:
            self.calls.append(at_rest)
            if at_rest:
                self.rested.set()
            return len(self.calls) < 5

    storage = Tidy()
    storage.commit([opening()])
    writer = make(storage, rest_s=0.01)
    writer.start()
    writer.put([entry(1)])
    assert storage.rested.wait(BOUND)
    writer.put([entry(2)])
    writer.stop()
    assert storage.calls[:5] == [False] * 5, "not before all is done that can be done in pieces"
    assert storage.calls.count(True) in (1, 2), "once after a commit, and not again and again"
    assert seqs(storage.read(0)) == [1, 2]


def test_a_lowered_limit_is_reached_in_steps() -> None:
    class Counting(MemoryStorage):
        most = 0

        def trim(self, before_seq: int) -> int:
            before = self.load().oldest_seq
            oldest = super().trim(before_seq)
            self.most = max(self.most, oldest - before)
            return oldest

    storage = Counting()
    storage.commit([opening(), *entries(1, 25_000), opening("a", 25_000)])
    writer = make(storage, retention=Retention(max_entries=1))
    writer.start()
    for first in range(25_001, 35_001, 1000):
        writer.put([*entries(first, first + 999), opening("a", first + 999)])
    writer.stop()

    assert storage.most == 10_000
    assert writer.oldest_seq > 25_000


class Picky(MemoryStorage):
    """Refuses what SQLite refuses: numbers beyond 64 bits. Can be told to fail altogether."""

    def __init__(self) -> None:
        super().__init__()
        super().commit([opening()])
        self.broken = False
        self.tried = threading.Event()

    def commit(self, batch: Batch) -> None:
        if self.broken or any(type(step) is Entry and (step.client_seq or 0) > 1 << 63 for step in batch):
            self.tried.set()
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        super().commit(batch)


@requirement("core:hardening:a-bad-entry-costs-itself")
@pytest.mark.parametrize("bad", [(1,), (10,), (4, 7), (2, 3, 4)])
def test_a_batch_goes_in_without_the_entries_that_the_storage_cannot_hold(bad: tuple[int, ...]) -> None:
    storage = Picky()
    refused: Refusals = []
    errors: list[Exception] = []
    writer = make(storage, on_refused=refused.extend, on_error=errors.append)
    writer.put([entry(seq, client=("me", 1 << 64 if seq in bad else seq)) for seq in range(1, 11)])
    writer.put([entry(11)])
    writer.start()
    writer.stop()

    assert seqs(storage.read(0)) == [seq for seq in range(1, 12) if seq not in bad]
    assert [step.seq for step, _ in refused if isinstance(step, Entry)] == [*bad]
    assert storage.load().head_seq == 11
    assert errors == []


def test_a_storage_that_refuses_everything_is_failing_and_nothing_is_dropped() -> None:
    storage = Picky()
    storage.broken = True
    refused: Refusals = []
    writer = make(storage, on_refused=refused.extend)
    writer.start()
    writer.put([entry(1)])
    assert storage.tried.wait(BOUND)
    storage.broken = False
    writer.stop()

    assert seqs(storage.read(0)) == [1]
    assert refused == []
