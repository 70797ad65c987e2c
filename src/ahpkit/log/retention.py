"""Decides how much of the past a log keeps. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from ahpkit.log.entry import Mark


@dataclass(frozen=True, slots=True)
class Retention:
    """An entry is kept while all three limits allow it; the newest one always is. States never depend on this."""

    max_entries: int = 1_000_000
    max_bytes: int = 1 << 30
    """Of payloads."""
    max_age_ms: int = 30 * 24 * 3600 * 1000
    """Counted back from the newest entry, so that a host that was idle for a month forgets nothing."""

    def keep_from(self, oldest_seq: int, head_seq: int, mark: Callable[[int], Mark]) -> int:
        """The lowest number to keep. `mark` is asked about a few entries between oldest and head."""
        if oldest_seq > head_seq:
            return oldest_seq
        newest = mark(head_seq)

        def kept(seq: int) -> bool:
            at, total = mark(seq)
            return (
                head_seq - seq < self.max_entries
                and newest.total - total < self.max_bytes
                and newest.at - at <= self.max_age_ms
            )

        return oldest_seq + bisect_left(range(oldest_seq, head_seq), True, key=kept)


__all__ = ["Retention"]
