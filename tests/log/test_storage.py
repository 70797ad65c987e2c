"""What every storage does. One suite, run over all of them."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from ahpkit.log.entry import Batch, Entry, Mark, Recovery, Removal, Value
from ahpkit.log.errors import NotInLog, OutOfOrder
from ahpkit.log.storage import Storage
from support import requirement
from support.records import Shelf, entries, entry, opening, seqs
from support.waiting import BOUND


def test_a_new_storage_is_empty(shelf: Shelf) -> None:
    assert shelf.recovery == Recovery(head_seq=0, oldest_seq=1)
    assert shelf.storage.read(0) == []


def test_entries_come_back_as_they_were_written(shelf: Shelf) -> None:
    written = [
        Entry(1, "ahp-chat:/ü\U0001f600", b'{"text":"\\u0000"}\x00\xff', "client'; DROP TABLE", 7, 1_700_000_000_123),
        Entry(2, "ahp-chat:/ü\U0001f600", b"", None, None, 0),
    ]
    shelf.storage.commit([opening(written[0].channel), *written])

    assert shelf.storage.read(0) == written
    assert shelf.restart().tail == written


@requirement("core:hardening:a-bad-entry-costs-itself")
def test_names_with_every_kind_of_character_are_found_again(shelf: Shelf) -> None:
    names = ["a\0b", "a\0c", "\u2028", "\U0010ffff", "x" * 5000]
    shelf.storage.commit([*map(opening, names), *(entry(seq, name) for seq, name in enumerate(names, 1))])
    for seq, name in enumerate(names, 1):
        assert seqs(shelf.storage.read(0, channels=[name])) == [seq]
    assert [each.channel for each in shelf.restart().tail] == names


@requirement("core:hardening:a-bad-entry-costs-itself")
def test_a_number_is_checked_as_it_is_stored(shelf: Shelf) -> None:
    spelt = cast("int", 7.0)
    shelf.storage.commit([opening(), Entry(1, "a", b"{}", "me", spelt, cast("int", 5.0)), entry(2)])
    assert seqs(shelf.storage.read(0)) == [1, 2]
    recovery = shelf.restart()
    assert (seqs(recovery.tail), recovery.problems) == ([1, 2], [])


def test_reading_starts_after_a_number_and_stops_at_the_limit(storage: Storage) -> None:
    storage.commit([opening(), *entries(1, 10)])

    assert seqs(storage.read(7)) == [8, 9, 10]
    assert seqs(storage.read(7, limit=2)) == [8, 9]
    assert storage.read(10) == []


def test_reading_some_channels_keeps_the_order_of_the_whole(storage: Storage) -> None:
    storage.commit([*map(opening, "abc"), *(entry(seq, "abc"[seq % 3]) for seq in range(1, 10))])

    assert [(each.seq, each.channel) for each in storage.read(2, channels=["b", "a", "b"])] == [
        (3, "a"),
        (4, "b"),
        (6, "a"),
        (7, "b"),
        (9, "a"),
    ]
    assert seqs(storage.read(2, channels={"a", "b"}, limit=2)) == [3, 4]
    assert storage.read(0, channels=["never opened"]) == []
    assert storage.read(0, channels=[]) == []


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


def test_a_refused_batch_leaves_nothing_behind(shelf: Shelf) -> None:
    shelf.storage.commit([opening(), entry(1)])

    with pytest.raises(OutOfOrder):
        shelf.storage.commit([Value("key", b"1"), opening("b", 1), entry(2, "b"), Removal("a"), entry(4)])

    recovery = shelf.restart()
    assert (recovery.head_seq, list(recovery.snapshots), recovery.values) == (1, ["a"], {})
    shelf.storage.commit([entry(2)])


def test_recovery_is_the_snapshots_and_the_entries_after_them(shelf: Shelf) -> None:
    shelf.storage.commit([opening("a"), opening("b"), *entries(1, 3, "a"), *entries(4, 6, "b"), entry(7, "a")])
    shelf.storage.commit([opening("a", 3, b"three"), entry(8, "b")])

    recovery = shelf.restart()

    assert recovery.snapshots == {"a": opening("a", 3, b"three"), "b": opening("b")}
    assert seqs(recovery.tail) == [4, 5, 6, 7, 8]
    assert (recovery.head_seq, recovery.oldest_seq, recovery.problems) == (8, 1, [])


def test_a_removed_channel_is_gone_with_its_entries(shelf: Shelf) -> None:
    shelf.storage.commit([opening("a"), opening("b"), entry(1, "a"), entry(2, "b"), Removal("a"), Removal("unknown")])

    assert seqs(shelf.storage.read(0)) == [2]
    assert shelf.storage.read(0, channels=["a"]) == []
    recovery = shelf.restart()
    assert list(recovery.snapshots) == ["b"]
    assert seqs(recovery.tail) == [2]
    assert recovery.head_seq == 2


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "a batch each"])
def test_a_channel_opened_again_has_nothing_of_the_old_one(shelf: Shelf, together: bool) -> None:
    steps: Batch = [opening("a"), entry(1, "a"), Removal("a"), opening("a", 1, b"new"), entry(2, "a")]
    for batch in [steps] if together else [[step] for step in steps]:
        shelf.storage.commit(batch)

    assert seqs(shelf.storage.read(0, channels=["a"])) == [2]
    recovery = shelf.restart()
    assert recovery.snapshots == {"a": opening("a", 1, b"new")}
    assert seqs(recovery.tail) == [2]


def test_an_entry_without_an_open_channel_only_takes_its_number(shelf: Shelf) -> None:
    shelf.storage.commit([entry(1, "nowhere"), opening("a", 1), entry(2, "a")])

    assert seqs(shelf.storage.read(0)) == [2]
    assert shelf.restart().head_seq == 2


def test_reading_from_before_the_oldest_entry_is_refused(storage: Storage) -> None:
    storage.commit([opening(), *entries(1, 10), opening("a", 10)])
    assert storage.trim(5) == 5

    assert seqs(storage.read(4)) == [5, 6, 7, 8, 9, 10]
    with pytest.raises(NotInLog) as caught:
        storage.read(3)
    assert (caught.value.after, caught.value.oldest_seq, caught.value.head_seq) == (3, 5, 10)


def test_reading_from_a_number_never_given_out_is_refused(storage: Storage) -> None:
    storage.commit([opening(), entry(1)])

    with pytest.raises(NotInLog, match="the log holds 1 to 1, so it cannot replay what came after 2"):
        storage.read(2)


@requirement("core:hardening:server-seq-survives-restart")
def test_the_head_survives_a_restart_even_with_every_entry_trimmed(shelf: Shelf) -> None:
    shelf.storage.commit([opening(), *entries(1, 5), opening("a", 5)])
    assert shelf.storage.trim(1000) == 6

    recovery = shelf.restart()

    assert (recovery.head_seq, recovery.oldest_seq, recovery.tail) == (5, 6, [])
    assert shelf.storage.read(5) == []
    with pytest.raises(OutOfOrder):
        shelf.storage.commit([entry(5)])
    shelf.storage.commit([entry(6)])


def test_trimming_stops_at_the_first_entry_a_state_needs(shelf: Shelf) -> None:
    shelf.storage.commit([opening("a"), opening("b"), *entries(1, 4, "a"), entry(5, "b"), *entries(6, 9, "a")])
    shelf.storage.commit([opening("a", 9)])

    assert shelf.storage.trim(9) == 5

    recovery = shelf.restart()
    assert (recovery.oldest_seq, seqs(recovery.tail)) == (5, [5])


def test_a_silent_channel_with_an_old_snapshot_does_not_hold_up_trimming(storage: Storage) -> None:
    storage.commit([opening("silent"), opening("a"), *entries(1, 9, "a"), opening("a", 9)])

    assert storage.trim(8) == 8


def test_a_removed_channel_does_not_hold_up_trimming(storage: Storage) -> None:
    storage.commit([opening("gone"), opening("a"), entry(1, "gone"), entry(2, "a"), Removal("gone"), opening("a", 2)])

    assert storage.trim(3) == 3


def test_trimming_never_brings_anything_back(storage: Storage) -> None:
    storage.commit([opening(), *entries(1, 9), opening("a", 9)])

    assert [storage.trim(before) for before in (6, 3, 0, 6)] == [6, 6, 6, 6]


def test_an_action_of_a_client_is_found_by_its_number(shelf: Shelf) -> None:
    shelf.storage.commit([opening(), entry(1, client=("me", 10)), entry(2), entry(3, client=("you", 11))])

    assert shelf.storage.seen("me", 10) == 1
    assert shelf.storage.seen("me", 11) is None
    assert shelf.storage.seen("stranger", 1) is None
    assert shelf.restart().clients == {"me": 10, "you": 11}
    assert shelf.storage.seen("you", 11) == 3


def test_an_action_that_was_never_logged_is_not_seen_though_later_ones_are(storage: Storage) -> None:
    storage.commit([opening(), entry(1, client=("me", 1)), entry(2, client=("me", 3))])

    assert storage.seen("me", 2) is None


def test_a_trimmed_action_is_still_known_to_have_been_seen(shelf: Shelf) -> None:
    shelf.storage.commit([opening(), *(entry(seq, client=("me", seq)) for seq in range(1, 6)), opening("a", 5)])
    shelf.storage.trim(3)
    shelf.storage.trim(4)

    recovery = shelf.restart()

    assert [shelf.storage.seen("me", number) for number in range(1, 7)] == [0, 0, 0, 4, 5, None]
    assert recovery.clients == {"me": 5}


def test_values_are_kept_replaced_and_forgotten(shelf: Shelf) -> None:
    shelf.storage.commit([Value("kept", b""), Value("replaced", b"old"), Value("forgotten", b"x")])
    shelf.storage.commit([Value("replaced", b"new"), Value("forgotten", None), Value("unknown", None)])

    assert shelf.restart().values == {"kept": b"", "replaced": b"new"}


def test_a_mark_tells_when_an_entry_was_written_and_how_much_until_then(shelf: Shelf) -> None:
    shelf.storage.commit([opening(), entry(1, payload=b"12345", at=100), entry(2, payload=b"123", at=200)])
    shelf.restart()
    shelf.storage.commit([entry(3, payload=b"1", at=150)])

    assert [shelf.storage.mark(seq) for seq in (1, 2, 3)] == [Mark(100, 5), Mark(200, 8), Mark(150, 9)]


def test_statistics_count_what_can_be_replayed(shelf: Shelf) -> None:
    assert shelf.storage.statistics().payload_bytes == 0
    shelf.storage.commit([opening(), *(entry(seq, payload=b"x" * seq) for seq in range(1, 5)), opening("a", 4)])
    shelf.storage.trim(3)

    statistics = shelf.storage.statistics()

    assert (statistics.oldest_seq, statistics.head_seq) == (3, 4)
    assert (statistics.payload_bytes, statistics.channels) == (7, 1)
    shelf.storage.trim(5)
    assert shelf.storage.statistics().payload_bytes == 0


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
