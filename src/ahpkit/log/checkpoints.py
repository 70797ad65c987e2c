"""Decides which channels should get a snapshot, so that a restart replays little and the log can be trimmed. Pure."""

from __future__ import annotations

from ahpkit.log.entry import ChannelSnapshot, Entry


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
        self._room[channel] -= len(entry.payload)
        if self._room[channel] < 0:
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


__all__ = ["Checkpoints"]
