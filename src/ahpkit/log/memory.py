"""A log in memory: for tests and `--durability memory`."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from ahpkit.log.entry import (
    Batch,
    ChannelRemoval,
    ChannelSnapshot,
    Entry,
    LogPosition,
    Recovery,
    StatePart,
    Statistics,
    Value,
    up_to,
)
from ahpkit.log.errors import NotInLog
from ahpkit.log.storage import head_after


@dataclass(slots=True)
class _Open:
    born: int
    """The head when the channel was opened. Earlier entries belong to an earlier channel of that name."""
    snapshot: ChannelSnapshot


class MemoryStorage:
    """The storage interface over lists and dicts; opening it again after `close` finds everything as it was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._floor = 0
        """The highest number that was trimmed; `_entries[i]` has number `_floor + 1 + i`."""
        self._entries: list[Entry] = []
        self._totals: list[int] = []
        self._total = 0
        self._open: dict[str, _Open] = {}
        self._parts: dict[str, dict[int, bytes]] = {}
        """Parts of states that are being written, by channel and number."""
        self._values: dict[str, bytes] = {}
        self._trimmed_clients: dict[str, int] = {}

    @property
    def _head(self) -> int:
        return self._floor + len(self._entries)

    def load(self) -> Recovery:
        with self._lock:
            return Recovery(
                head_seq=self._head,
                oldest_seq=self._floor + 1,
                snapshots={channel: opened.snapshot for channel, opened in self._open.items()},
                tail=[entry for entry in self._entries if self._needed(entry)],
                values=dict(self._values),
                clients=self._highest(self._trimmed_clients, self._entries),
            )

    def commit(self, batch: Batch) -> None:
        with self._lock:
            head_after(self._head, batch)
            for step in batch:
                match step:
                    case Entry():
                        self._total += len(step.payload)
                        self._entries.append(step)
                        self._totals.append(self._total)
                    case StatePart():
                        self._parts.setdefault(step.channel, {})[step.number] = step.data
                    case ChannelSnapshot():
                        whole = self._joined(step)
                        opened = self._open.setdefault(step.channel, _Open(self._head, whole))
                        opened.snapshot = whole
                    case ChannelRemoval():
                        self._open.pop(step.channel, None)
                        self._parts.pop(step.channel, None)
                    case Value(key, data):
                        if data is None:
                            self._values.pop(key, None)
                        else:
                            self._values[key] = data

    def _joined(self, snapshot: ChannelSnapshot) -> ChannelSnapshot:
        parts = self._parts.pop(snapshot.channel, {})
        ahead = b"".join(parts[number] for number in range(len(snapshot.ahead)))
        return ChannelSnapshot(snapshot.channel, snapshot.seq, ahead + snapshot.state)

    def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        with self._lock:
            if not self._floor <= after <= self._head:
                raise NotInLog(after, oldest_seq=self._floor + 1, head_seq=self._head)
            wanted = self._open.keys() if channels is None else self._open.keys() & set(channels)
            found = (
                entry
                for entry in islice(self._entries, after - self._floor, None)
                if entry.channel in wanted and entry.seq > self._open[entry.channel].born
            )
            return up_to(islice(found, limit), max_bytes)

    def seen(self, client_id: str, client_seq: int) -> int | None:
        with self._lock:
            for entry in reversed(self._entries):
                if entry.client_id == client_id and entry.client_seq == client_seq:
                    return entry.seq
            return 0 if client_seq <= self._trimmed_clients.get(client_id, -1) else None

    def mark(self, seq: int) -> LogPosition:
        with self._lock:
            index = seq - self._floor - 1
            return LogPosition(self._entries[index].at, self._totals[index])

    def trim(self, before_seq: int) -> int:
        with self._lock:
            doomed = self._entries[: max(0, before_seq - self._floor - 1)]
            count = next((i for i, entry in enumerate(doomed) if self._needed(entry)), len(doomed))
            self._trimmed_clients = self._highest(self._trimmed_clients, doomed[:count])
            del self._entries[:count], self._totals[:count]
            self._floor += count
            return self._floor + 1

    def tidy(self, *, at_rest: bool = False) -> bool:
        """Nothing to do."""
        return False

    def statistics(self) -> Statistics:
        with self._lock:
            size = self._total - (self._totals[0] - len(self._entries[0].payload) if self._entries else self._total)
            return Statistics(self._head, self._floor + 1, len(self._open), size, 0)

    def close(self) -> None:
        """Nothing to release."""

    def _needed(self, entry: Entry) -> bool:
        opened = self._open.get(entry.channel)
        return opened is not None and entry.seq > max(opened.born, opened.snapshot.seq)

    @staticmethod
    def _highest(known: dict[str, int], entries: Collection[Entry]) -> dict[str, int]:
        highest = dict(known)
        for entry in entries:
            if entry.client_id is not None and entry.client_seq is not None:
                highest[entry.client_id] = max(entry.client_seq, highest.get(entry.client_id, -1))
        return highest


__all__ = ["MemoryStorage"]
