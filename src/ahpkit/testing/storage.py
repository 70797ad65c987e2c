"""Checks that every storage of a log must pass. Run them against your own.

    from ahpkit.testing.storage import STORAGE_CHECKS, check_storage

    check_storage(lambda directory: MyStorage(directory / "log"), directory)

`make` is called with an empty directory, and again with the same one after each restart. Each check gets a directory of
its own. A check that fails raises `AssertionError`; run them one by one (`STORAGE_CHECKS`) to see all that do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zlib import crc32

from ahpkit.log.entry import (
    RESERVED,
    Batch,
    ChannelRemoval,
    ChannelSnapshot,
    Entry,
    LogPosition,
    PartWrittenAhead,
    Recovery,
    StatePart,
    Value,
)
from ahpkit.log.errors import NotInLog, OutOfOrder
from ahpkit.log.storage import Storage

MakeStorage = Callable[[Path], Storage]
"""Makes a storage in a directory; what was committed there before comes back with `load`."""


class StorageHolder:
    """Holds one storage. `restart` closes and opens it, as the end and the new start of a host do."""

    def __init__(self, make: MakeStorage, directory: Path) -> None:
        self._make = make
        self._directory = directory
        self.storage = make(directory)
        self.recovery: Recovery = self.storage.load()

    def restart(self) -> Recovery:
        self.storage.close()
        self.storage = self._make(self._directory)
        self.recovery = self.storage.load()
        return self.recovery


def entry(
    seq: int, channel: str = "a", *, payload: bytes = b"{}", client: tuple[str, int] | None = None, at: int = 0
) -> Entry:
    """An entry with everything that does not matter filled in."""
    client_id, client_seq = client or (None, None)
    return Entry(seq, channel, payload, client_id, client_seq, at)


def entries(first: int, last: int, channel: str = "a") -> list[Entry]:
    """The entries `first` to `last`, both included."""
    return [entry(seq, channel) for seq in range(first, last + 1)]


def opening(channel: str = "a", seq: int = 0, state: bytes = b"{}") -> ChannelSnapshot:
    """The state that opens a channel."""
    return ChannelSnapshot(channel, seq, state)


def divided(channel: str, seq: int, *parts: bytes) -> tuple[list[StatePart], ChannelSnapshot]:
    """The steps that store a state in parts: those that are written ahead, and the snapshot with the last one."""
    *first, last = parts
    ahead = tuple(PartWrittenAhead(len(data), crc32(data)) for data in first)
    steps = [StatePart(channel, seq, number, data) for number, data in enumerate(first)]
    return steps, ChannelSnapshot(channel, seq, last, ahead)


def seqs(found: list[Entry]) -> list[int]:
    return [each.seq for each in found]


def check_storage(make: MakeStorage, directory: Path) -> None:
    """Run all checks, each in a separate folder below `directory`."""
    for name, check in STORAGE_CHECKS.items():
        place = directory / name
        place.mkdir()
        holder = StorageHolder(make, place)
        try:
            check(holder)
        finally:
            holder.storage.close()


def _refused(error: type[Exception], work: Callable[[], object]) -> bool:
    try:
        work()
    except error:
        return True
    return False


def _a_new_storage_is_empty(holder: StorageHolder) -> None:
    assert holder.recovery == Recovery(head_seq=0, oldest_seq=1)
    assert holder.storage.read(0) == []


def _entries_come_back_as_they_were_written(holder: StorageHolder) -> None:
    written = [
        Entry(1, "ahp-chat:/ü\U0001f600", b'{"text":"\\u0000"}\x00\xff', "client'; DROP TABLE", 7, 1_700_000_000_123),
        Entry(2, "ahp-chat:/ü\U0001f600", b"", None, None, 0),
    ]
    holder.storage.commit([opening(written[0].channel), *written])

    assert holder.storage.read(0) == written
    assert holder.restart().tail == written


def _reading_starts_after_a_number_and_stops_at_the_limit(holder: StorageHolder) -> None:
    storage = holder.storage
    storage.commit([opening(), *entries(1, 10)])

    assert seqs(storage.read(7)) == [8, 9, 10]
    assert seqs(storage.read(7, limit=2)) == [8, 9]
    first = len(storage.read(0, limit=1)[0].payload)
    assert seqs(storage.read(0, max_bytes=first)) == [1, 2]
    assert seqs(storage.read(0, max_bytes=0)) == [1]
    assert storage.read(10) == []


def _reading_some_channels_keeps_the_order_of_the_whole(holder: StorageHolder) -> None:
    storage = holder.storage
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


def _a_refused_batch_leaves_nothing_behind(holder: StorageHolder) -> None:
    holder.storage.commit([opening(), entry(1)])

    wrong: Batch = [Value("key", b"1"), opening("b", 1), entry(2, "b"), ChannelRemoval("a"), entry(4)]
    assert _refused(OutOfOrder, lambda: holder.storage.commit(wrong))

    recovery = holder.restart()
    assert (recovery.head_seq, list(recovery.snapshots), recovery.values) == (1, ["a"], {})
    holder.storage.commit([entry(2)])


def _recovery_is_the_snapshots_and_the_entries_after_them(holder: StorageHolder) -> None:
    holder.storage.commit([opening("a"), opening("b"), *entries(1, 3, "a"), *entries(4, 6, "b"), entry(7, "a")])
    holder.storage.commit([opening("a", 3, b"three"), entry(8, "b")])

    recovery = holder.restart()

    assert recovery.snapshots == {"a": opening("a", 3, b"three"), "b": opening("b")}
    assert seqs(recovery.tail) == [4, 5, 6, 7, 8]
    assert (recovery.head_seq, recovery.oldest_seq, recovery.problems) == (8, 1, [])


def _a_state_that_was_written_in_parts_is_whole(holder: StorageHolder) -> None:
    holder.storage.commit([opening("a"), opening("b"), *entries(1, 3)])
    for seq, state in ((1, b"one of four parts"), (2, b"two"), (3, b"three, and no longer")):
        parts, snapshot = divided("a", seq, *(bytes([byte]) for byte in state))
        for part in parts:
            holder.storage.commit([part])
        holder.storage.commit([snapshot])
        assert holder.restart().snapshots == {"a": opening("a", seq, state), "b": opening("b")}
    holder.storage.commit([opening("a", 3, b"at once")])
    assert holder.restart().snapshots["a"] == opening("a", 3, b"at once")


def _parts_mean_nothing_without_their_snapshot(holder: StorageHolder) -> None:
    holder.storage.commit([opening("a"), *entries(1, 2)])
    stored, snapshot = divided("a", 1, b"{", b'"stored"', b"}")
    holder.storage.commit([*stored, snapshot])
    unfinished, _ = divided("a", 2, b"[", b"1,", b"2,", b"3]")
    holder.storage.commit([*unfinished])
    assert holder.restart().snapshots == {"a": opening("a", 1, b'{"stored"}')}
    fewer, snapshot = divided("a", 2, b"[", b"]")
    holder.storage.commit([*fewer])
    holder.storage.commit([snapshot])
    assert holder.restart().snapshots == {"a": opening("a", 2, b"[]")}


def _parts_of_a_removed_channel_are_not_those_of_its_successor(holder: StorageHolder) -> None:
    holder.storage.commit([opening("a"), entry(1)])
    parts, snapshot = divided("a", 1, b"x", b"y")
    holder.storage.commit([*parts, snapshot])
    unfinished, _ = divided("a", 1, b"1", b"2", b"3")
    holder.storage.commit([ChannelRemoval("a"), *unfinished, opening("a", 1, b"new")])
    assert holder.restart().snapshots == {"a": opening("a", 1, b"new")}


def _parts_may_be_written_before_their_channel_begins(holder: StorageHolder) -> None:
    parts, snapshot = divided("a", 0, b"x", b"y", b"z")
    reserved = opening("a", RESERVED, b"")
    for step in (reserved, *parts):
        holder.storage.commit([step])
    assert holder.restart().snapshots == {"a": reserved}
    holder.storage.commit([ChannelRemoval("a")])
    assert holder.restart().snapshots == {}
    for step in (reserved, *parts, entry(1, "")):
        holder.storage.commit([step])
    holder.storage.commit([snapshot, entry(2)])
    assert holder.restart().snapshots == {"a": opening("a", 0, b"xyz")}
    assert seqs(holder.recovery.tail) == [2]


def _a_removed_channel_is_gone_with_its_entries(holder: StorageHolder) -> None:
    holder.storage.commit(
        [opening("a"), opening("b"), entry(1, "a"), entry(2, "b"), ChannelRemoval("a"), ChannelRemoval("unknown")]
    )

    assert seqs(holder.storage.read(0)) == [2]
    assert holder.storage.read(0, channels=["a"]) == []
    recovery = holder.restart()
    assert list(recovery.snapshots) == ["b"]
    assert seqs(recovery.tail) == [2]
    assert recovery.head_seq == 2


def _an_entry_without_an_open_channel_only_takes_its_number(holder: StorageHolder) -> None:
    holder.storage.commit([entry(1, "nowhere"), opening("a", 1), entry(2, "a")])

    assert seqs(holder.storage.read(0)) == [2]
    assert holder.restart().head_seq == 2


def _reading_from_before_the_oldest_entry_is_refused(holder: StorageHolder) -> None:
    storage = holder.storage
    storage.commit([opening(), *entries(1, 10), opening("a", 10)])
    assert storage.trim(5) == 5

    assert seqs(storage.read(4)) == [5, 6, 7, 8, 9, 10]
    assert _refused(NotInLog, lambda: storage.read(3))


def _reading_from_a_number_never_given_out_is_refused(holder: StorageHolder) -> None:
    storage = holder.storage
    storage.commit([opening(), entry(1)])

    assert _refused(NotInLog, lambda: storage.read(2))


def _trimming_stops_at_the_first_entry_a_state_needs(holder: StorageHolder) -> None:
    holder.storage.commit([opening("a"), opening("b"), *entries(1, 4, "a"), entry(5, "b"), *entries(6, 9, "a")])
    holder.storage.commit([opening("a", 9)])

    assert holder.storage.trim(9) == 5

    recovery = holder.restart()
    assert (recovery.oldest_seq, seqs(recovery.tail)) == (5, [5])


def _a_silent_channel_with_an_old_snapshot_does_not_hold_up_trimming(holder: StorageHolder) -> None:
    storage = holder.storage
    storage.commit([opening("silent"), opening("a"), *entries(1, 9, "a"), opening("a", 9)])

    assert storage.trim(8) == 8


def _a_removed_channel_does_not_hold_up_trimming(holder: StorageHolder) -> None:
    storage = holder.storage
    storage.commit(
        [opening("gone"), opening("a"), entry(1, "gone"), entry(2, "a"), ChannelRemoval("gone"), opening("a", 2)]
    )

    assert storage.trim(3) == 3


def _trimming_never_brings_anything_back(holder: StorageHolder) -> None:
    storage = holder.storage
    storage.commit([opening(), *entries(1, 9), opening("a", 9)])

    assert [storage.trim(before) for before in (6, 3, 0, 6)] == [6, 6, 6, 6]


def _an_action_of_a_client_is_found_by_its_number(holder: StorageHolder) -> None:
    holder.storage.commit([opening(), entry(1, client=("me", 10)), entry(2), entry(3, client=("you", 11))])

    assert holder.storage.seen("me", 10) == 1
    assert holder.storage.seen("me", 11) is None
    assert holder.storage.seen("stranger", 1) is None
    assert holder.restart().clients == {"me": 10, "you": 11}
    assert holder.storage.seen("you", 11) == 3


def _an_action_that_was_never_logged_is_not_seen_though_later_ones_are(holder: StorageHolder) -> None:
    storage = holder.storage
    storage.commit([opening(), entry(1, client=("me", 1)), entry(2, client=("me", 3))])

    assert storage.seen("me", 2) is None


def _a_trimmed_action_is_still_known_to_have_been_seen(holder: StorageHolder) -> None:
    holder.storage.commit([opening(), *(entry(seq, client=("me", seq)) for seq in range(1, 6)), opening("a", 5)])
    holder.storage.trim(3)
    holder.storage.trim(4)

    recovery = holder.restart()

    assert [holder.storage.seen("me", number) for number in range(1, 7)] == [0, 0, 0, 4, 5, None]
    assert recovery.clients == {"me": 5}


def _values_are_kept_replaced_and_forgotten(holder: StorageHolder) -> None:
    holder.storage.commit([Value("kept", b""), Value("replaced", b"old"), Value("forgotten", b"x")])
    holder.storage.commit([Value("replaced", b"new"), Value("forgotten", None), Value("unknown", None)])

    assert holder.restart().values == {"kept": b"", "replaced": b"new"}


def _a_mark_tells_when_an_entry_was_written_and_how_much_until_then(holder: StorageHolder) -> None:
    holder.storage.commit([opening(), entry(1, payload=b"12345", at=100), entry(2, payload=b"123", at=200)])
    holder.restart()
    holder.storage.commit([entry(3, payload=b"1", at=150)])

    assert [holder.storage.mark(seq) for seq in (1, 2, 3)] == [
        LogPosition(100, 5),
        LogPosition(200, 8),
        LogPosition(150, 9),
    ]


def _statistics_count_what_can_be_replayed(holder: StorageHolder) -> None:
    assert holder.storage.statistics().payload_bytes == 0
    holder.storage.commit([opening(), *(entry(seq, payload=b"x" * seq) for seq in range(1, 5)), opening("a", 4)])
    holder.storage.trim(3)

    statistics = holder.storage.statistics()

    assert (statistics.oldest_seq, statistics.head_seq) == (3, 4)
    assert (statistics.payload_bytes, statistics.channels) == (7, 1)
    holder.storage.trim(5)
    assert holder.storage.statistics().payload_bytes == 0


_CHECKS: Sequence[Callable[[StorageHolder], None]] = (
    _a_new_storage_is_empty,
    _entries_come_back_as_they_were_written,
    _reading_starts_after_a_number_and_stops_at_the_limit,
    _reading_some_channels_keeps_the_order_of_the_whole,
    _a_refused_batch_leaves_nothing_behind,
    _recovery_is_the_snapshots_and_the_entries_after_them,
    _a_state_that_was_written_in_parts_is_whole,
    _parts_mean_nothing_without_their_snapshot,
    _parts_of_a_removed_channel_are_not_those_of_its_successor,
    _parts_may_be_written_before_their_channel_begins,
    _a_removed_channel_is_gone_with_its_entries,
    _an_entry_without_an_open_channel_only_takes_its_number,
    _reading_from_before_the_oldest_entry_is_refused,
    _reading_from_a_number_never_given_out_is_refused,
    _trimming_stops_at_the_first_entry_a_state_needs,
    _a_silent_channel_with_an_old_snapshot_does_not_hold_up_trimming,
    _a_removed_channel_does_not_hold_up_trimming,
    _trimming_never_brings_anything_back,
    _an_action_of_a_client_is_found_by_its_number,
    _an_action_that_was_never_logged_is_not_seen_though_later_ones_are,
    _a_trimmed_action_is_still_known_to_have_been_seen,
    _values_are_kept_replaced_and_forgotten,
    _a_mark_tells_when_an_entry_was_written_and_how_much_until_then,
    _statistics_count_what_can_be_replayed,
)

STORAGE_CHECKS: Mapping[str, Callable[[StorageHolder], None]] = {
    check.__name__.removeprefix("_"): check for check in _CHECKS
}
"""The checks, by the sentence about a storage that each one tests."""

__all__ = [
    "STORAGE_CHECKS",
    "MakeStorage",
    "StorageHolder",
    "check_storage",
    "divided",
    "entries",
    "entry",
    "opening",
    "seqs",
]
