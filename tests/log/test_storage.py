"""What every storage does: the public checks, and what takes longer. Run over all of them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import pytest

from ahpkit.log.entry import Batch, ChannelRemoval, Entry, Value
from ahpkit.log.errors import LogError, OutOfOrder
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.log.storage import StepOrder, Storage
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.testing.storage import STORAGE_CHECKS, check_storage
from support import requirement
from support.records import StorageHolder, entries, entry, opening, seqs
from support.waiting import BOUND


@pytest.mark.parametrize("name", STORAGE_CHECKS)
def test_a_storage_does_what_everyone_can_check(holder: StorageHolder, name: str) -> None:
    assert STORAGE_CHECKS[name](holder) is None, "a check raises what is wrong"


def test_a_storage_that_forgets_fails_the_checks(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check_storage(lambda directory: MemoryStorage(), tmp_path)


def test_all_checks_pass_for_the_default_storage(tmp_path: Path) -> None:
    check_storage(lambda directory: SqliteStorage(directory / "log.db", durability="normal"), tmp_path)


@requirement("core:hardening:a-bad-entry-costs-itself")
def test_names_with_every_kind_of_character_are_found_again(holder: StorageHolder) -> None:
    names = ["a\0b", "a\0c", "\u2028", "\U0010ffff", "x" * 5000]
    holder.storage.commit([*map(opening, names), *(entry(seq, name) for seq, name in enumerate(names, 1))])
    for seq, name in enumerate(names, 1):
        assert seqs(holder.storage.read(0, channels=[name])) == [seq]
    assert [each.channel for each in holder.restart().tail] == names


@requirement("core:hardening:a-bad-entry-costs-itself")
def test_a_number_is_checked_as_it_is_stored(holder: StorageHolder) -> None:
    spelt = cast("int", 7.0)
    holder.storage.commit([opening(), Entry(1, "a", b"{}", "me", spelt, cast("int", 5.0)), entry(2)])
    assert seqs(holder.storage.read(0)) == [1, 2]
    recovery = holder.restart()
    assert (seqs(recovery.tail), recovery.problems) == ([1, 2], [])


def test_reading_ten_thousand_channels_works(storage: Storage) -> None:
    channels = [f"ahp-chat:/{number}" for number in range(10_000)]
    storage.commit([*map(opening, channels), *(entry(seq, channels[-seq]) for seq in range(1, 21))])

    assert seqs(storage.read(0, channels=channels)) == list(range(1, 21))


@requirement("core:connection:server-seq-monotonic")
@pytest.mark.parametrize("wrong", [2, 3, 5, 9], ids=["step back", "again", "gap", "large gap"])
def test_numbers_only_grow_by_one(storage: Storage, wrong: int) -> None:
    storage.commit([opening(), *entries(1, 3)])

    with pytest.raises(OutOfOrder, match=f"entry {wrong} of a cannot follow 3"):
        storage.commit([Value("key", b"1"), entry(wrong)])

    assert seqs(storage.read(0)) == [1, 2, 3]


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "a batch each"])
def test_a_channel_opened_again_has_nothing_of_the_old_one(holder: StorageHolder, together: bool) -> None:
    steps: Batch = [opening("a"), entry(1, "a"), ChannelRemoval("a"), opening("a", 1, b"new"), entry(2, "a")]
    for batch in [steps] if together else [[step] for step in steps]:
        holder.storage.commit(batch)

    assert seqs(holder.storage.read(0, channels=["a"])) == [2]
    recovery = holder.restart()
    assert recovery.snapshots == {"a": opening("a", 1, b"new")}
    assert seqs(recovery.tail) == [2]


@requirement("core:hardening:server-seq-survives-restart")
def test_the_head_survives_a_restart_even_with_every_entry_trimmed(holder: StorageHolder) -> None:
    holder.storage.commit([opening(), *entries(1, 5), opening("a", 5)])
    assert holder.storage.trim(1000) == 6

    recovery = holder.restart()

    assert (recovery.head_seq, recovery.oldest_seq, recovery.tail) == (5, 6, [])
    assert holder.storage.read(5) == []
    with pytest.raises(OutOfOrder):
        holder.storage.commit([entry(5)])
    holder.storage.commit([entry(6)])


def test_a_reader_in_another_thread_sees_whole_batches_only(storage: Storage) -> None:
    storage.commit([opening()])
    counts: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            counts.append(len(storage.read(0)))

    reader = threading.Thread(target=read)
    reader.start()
    for first in range(1, 500, 10):
        storage.commit([*entries(first, first + 9)])
    done.set()
    reader.join(BOUND)

    assert counts == sorted(counts)
    assert {count % 10 for count in counts} == {0}


@requirement("core:connection:server-seq-monotonic")
def test_numbers_go_on_over_all_channels() -> None:
    order = StepOrder(5, {"a": opening("a"), "b": opening("b")})

    order.append(entry(6, "a"))
    order.append(entry(7, "b"))

    for wrong in (6, 7, 9):
        with pytest.raises(OutOfOrder, match=f"entry {wrong} of a cannot follow 7"):
            order.append(entry(wrong, "a"))
    assert order.head_seq == 7


def test_a_channel_is_open_from_its_snapshot_to_its_removal() -> None:
    order = StepOrder(0, {})
    with pytest.raises(OutOfOrder, match="entry 1 is for a, which no snapshot has opened"):
        order.append(entry(1, "a"))

    order.snapshot(opening("a"))
    order.append(entry(1, "a"))
    order.remove("a")

    with pytest.raises(OutOfOrder, match="entry 2 is for a"):
        order.append(entry(2, "a"))


@pytest.mark.parametrize("seq", [3, 8], ids=["older than the one before", "ahead of the log"])
def test_a_snapshot_lies_between_the_one_before_and_the_head(seq: int) -> None:
    order = StepOrder(7, {"a": opening("a", 4)})

    with pytest.raises(OutOfOrder, match=f"a snapshot of a at {seq} does not fit a log at 7"):
        order.snapshot(opening("a", seq))

    order.snapshot(opening("a", 7))


def test_a_break_of_the_order_is_our_own_fault_and_an_error_of_the_log() -> None:
    assert issubclass(OutOfOrder, LogError)
    assert issubclass(OutOfOrder, LocalProtocolError)
