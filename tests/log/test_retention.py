from __future__ import annotations

import pytest

from ahpkit.log.entry import Mark
from ahpkit.log.retention import Retention

GENEROUS = 1 << 60


def keep_from(retention: Retention, marks: list[Mark], *, oldest: int = 1) -> int:
    """Ask about a log whose entries have these marks."""
    return retention.keep_from(oldest, oldest + len(marks) - 1, lambda seq: marks[seq - oldest])


def marks(count: int, *, size: int = 10, apart: int = 1000) -> list[Mark]:
    return [Mark(at=number * apart, total=number * size) for number in range(1, count + 1)]


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

    def mark(seq: int) -> Mark:
        asked.append(seq)
        return Mark(at=seq, total=seq)

    assert Retention(max_entries=1000).keep_from(1, 1_000_000, mark) == 999_001
    assert len(asked) < 25


def test_a_clock_that_went_back_keeps_entries_rather_than_losing_them() -> None:
    went_back = [
        *(Mark(1_000_000 + number, number) for number in range(50)),
        *(Mark(number, 50) for number in range(50)),
    ]

    assert keep_from(Retention(GENEROUS, GENEROUS, max_age_ms=100), went_back) == 1
