from __future__ import annotations

from ahpkit.log.checkpoints import Checkpoints
from support.records import entry, opening


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
