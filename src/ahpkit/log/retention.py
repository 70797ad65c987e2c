"""Decides how much of the past a log keeps, and which channels get a snapshot so that it can be trimmed. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from ahpkit.log.entry import ChannelSnapshot, Entry, LogPosition


@dataclass(frozen=True, slots=True)
class Retention:
    """An entry is kept while all three limits allow it; the newest one always is. States never depend on this."""

    max_entries: int = 1_000_000
    max_bytes: int = 1 << 30
    """Bytes of payloads."""
    max_age_ms: int = 30 * 24 * 3600 * 1000
    """Counted back from the newest entry, so that a host that was idle for a month forgets nothing."""

    def keep_from(self, oldest_seq: int, head_seq: int, mark: Callable[[int], LogPosition]) -> int:
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


class Checkpoints:
    """Follows a log. A channel is due when its entries outweigh its state, or when they are far behind the head.

    The first rule bounds what snapshots cost: about as much as the entries themselves. The second one bounds how many
    entries a restart replays, and lets the log forget the past of a channel that fell silent.
    """

    def __init__(self, *, min_bytes: int = 64 << 10, max_lag: int = 20_000) -> None:
        self._min_bytes = min_bytes
        self._max_lag = max_lag
        self._room: dict[str, int] = {}
        """Bytes of entries a channel may still log before it is due."""
        self._first: dict[str, int] = {}
        """The first entry after the snapshot of each channel that has one, roughly ordered by number."""
        self._last: dict[str, int] = {}
        """The last entry of each channel that has one after its snapshot."""
        self._heavy: set[str] = set()

    def snapshot(self, snapshot: ChannelSnapshot) -> None:
        channel, last = snapshot.channel, self._last.get(snapshot.channel, 0)
        self.remove(channel)
        self._room[channel] = max(self._min_bytes, snapshot.size)
        if last > snapshot.seq:  # Entries came while a large state was written.
            self._first[channel], self._last[channel] = snapshot.seq + 1, last

    def append(self, entry: Entry) -> None:
        channel = entry.channel
        self._first.setdefault(channel, entry.seq)
        self._last[channel] = entry.seq
        room = self._room[channel] = self._room[channel] - len(entry.payload)
        if room < 0:
            self._heavy.add(channel)

    def remove(self, channel: str) -> None:
        self._first.pop(channel, None)
        self._last.pop(channel, None)
        self._room.pop(channel, None)
        self._heavy.discard(channel)

    def due(self, head_seq: int) -> list[str]:
        """The channels to snapshot now. Cheap while there are none."""
        due = list(self._heavy)
        for channel, first in self._first.items():
            if head_seq - first < self._max_lag:
                break
            if channel not in self._heavy:
                due.append(channel)
        return due


__all__ = ["Checkpoints", "Retention"]
