from __future__ import annotations

import pytest

from ahpkit.log.entry import LogPosition
from ahpkit.log.retention import Checkpoints, Retention
from support.records import entry, opening

GENEROUS = 1 << 60


def keep_from(retention: Retention, marks: list[LogPosition], *, oldest: int = 1) -> int:
    """Ask about a log whose entries have these marks."""
    return retention.keep_from(oldest, oldest + len(marks) - 1, lambda seq: marks[seq - oldest])


def marks(count: int, *, size: int = 10, apart: int = 1000) -> list[LogPosition]:
    return [LogPosition(at=number * apart, total=number * size) for number in range(1, count + 1)]


def test_nothing_is_forgotten_within_the_limits() -> None:
    assert keep_from(Retention(), marks(100)) == 1


def test_an_empty_log_has_nothing_to_forget() -> None:
    assert keep_from(Retention(max_entries=1), [], oldest=6) == 6


@pytest.mark.parametrize(
    ("retention", "expected"),
    [
        (Retention(max_entries=30), 71),
        (Retention(max_bytes=300), 71),
        (Retention(max_age_ms=29_000), 71),
        (Retention(max_entries=30, max_bytes=200, max_age_ms=9_000), 91),
    ],
    ids=["entries", "bytes", "age", "the strictest counts"],
)
def test_each_limit_alone_decides(retention: Retention, expected: int) -> None:
    assert keep_from(retention, marks(100)) == expected


def test_numbers_need_not_start_at_one() -> None:
    assert keep_from(Retention(max_entries=3), marks(10), oldest=501) == 508


@pytest.mark.parametrize("retention", [Retention(max_entries=0), Retention(max_bytes=0), Retention(max_age_ms=0)])
def test_the_newest_entry_is_always_kept(retention: Retention) -> None:
    assert keep_from(retention, marks(10)) == 10


def test_a_million_entries_are_decided_by_a_few_looks() -> None:
    asked: list[int] = []

    def mark(seq: int) -> LogPosition:
        asked.append(seq)
        return LogPosition(at=seq, total=seq)

    assert Retention(max_entries=1000).keep_from(1, 1_000_000, mark) == 999_001
    assert len(asked) < 25


def test_a_clock_that_went_back_keeps_entries_rather_than_losing_them() -> None:
    went_back = [
        *(LogPosition(1_000_000 + number, number) for number in range(50)),
        *(LogPosition(number, 50) for number in range(50)),
    ]

    assert keep_from(Retention(GENEROUS, GENEROUS, max_age_ms=100), went_back) == 1


def grown(checkpoints: Checkpoints, channel: str, *, first: int, count: int, size: int = 10) -> int:
    """Append entries of a channel; returns the head."""
    for seq in range(first, first + count):
        checkpoints.append(entry(seq, channel, payload=b"x" * size))
    return first + count - 1


def test_a_channel_is_due_when_its_entries_outweigh_its_state() -> None:
    checkpoints = Checkpoints(min_bytes=50)
    checkpoints.snapshot(opening("small", state=b"{}"))
    checkpoints.snapshot(opening("large", state=b"x" * 100))

    head = grown(checkpoints, "small", first=1, count=6)
    head = grown(checkpoints, "large", first=head + 1, count=10)
    assert checkpoints.due(head) == ["small"]

    head = grown(checkpoints, "large", first=head + 1, count=1)
    assert sorted(checkpoints.due(head)) == ["large", "small"]


def test_a_snapshot_settles_it() -> None:
    checkpoints = Checkpoints(min_bytes=50)
    checkpoints.snapshot(opening("a"))
    head = grown(checkpoints, "a", first=1, count=6)

    checkpoints.snapshot(opening("a", head))

    assert checkpoints.due(head) == []
    assert checkpoints.due(grown(checkpoints, "a", first=head + 1, count=5)) == []
    assert checkpoints.due(grown(checkpoints, "a", first=head + 6, count=1)) == ["a"]


def test_entries_that_came_while_a_state_was_written_count_for_the_next_one() -> None:
    checkpoints = Checkpoints(max_lag=100)
    checkpoints.snapshot(opening("a"))
    grown(checkpoints, "a", first=1, count=6)

    checkpoints.snapshot(opening("a", 4))
    assert checkpoints.due(103) == []
    assert checkpoints.due(105) == ["a"]

    checkpoints.snapshot(opening("a", 6))
    assert checkpoints.due(1000) == []


def test_a_channel_that_fell_silent_is_due_once_the_log_has_moved_on() -> None:
    checkpoints = Checkpoints(max_lag=100)
    checkpoints.snapshot(opening("silent"))
    checkpoints.snapshot(opening("never used"))
    checkpoints.snapshot(opening("busy"))
    head = grown(checkpoints, "silent", first=1, count=1)
    head = grown(checkpoints, "busy", first=head + 1, count=99)
    assert checkpoints.due(head) == []

    head = grown(checkpoints, "busy", first=head + 1, count=1)
    assert checkpoints.due(head) == ["silent"]
    checkpoints.snapshot(opening("silent", head))
    assert checkpoints.due(head) == []
    assert checkpoints.due(head + 1) == ["busy"]


def test_a_channel_is_named_once_however_many_reasons_there_are() -> None:
    checkpoints = Checkpoints(min_bytes=1, max_lag=1)
    checkpoints.snapshot(opening("a"))

    assert checkpoints.due(grown(checkpoints, "a", first=1, count=5)) == ["a"]


def test_a_removed_channel_is_never_due() -> None:
    checkpoints = Checkpoints(min_bytes=1, max_lag=1)
    checkpoints.snapshot(opening("a"))
    head = grown(checkpoints, "a", first=1, count=5)

    checkpoints.remove("a")

    assert checkpoints.due(head) == []
