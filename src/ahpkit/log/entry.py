"""The records of a log: what is written, and what comes back after a restart.

A channel is open from its first snapshot to its removal. Its state is that snapshot plus the entries after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """One action that was applied. `payload` is the JSON of its envelope; the log never looks into it."""

    seq: int
    """The serverSeq: one more than that of the entry before, over all channels."""
    channel: str
    payload: bytes
    client_id: str | None
    client_seq: int | None
    at: int
    """When it was written, in milliseconds since the epoch; only used to trim by age."""
    type: str = ""
    """The type of its action, while that is known: it is not stored."""
    forms: Any = None
    """Further forms of it for its readers; not stored either."""


def hole(seq: int, at: int) -> Entry:
    """An entry that only uses up a number, for something that is not kept or could not be written. Readers never see
    it."""
    return Entry(seq, "", b"", None, None, at if 0 <= at < 1 << 53 else 0)


def is_hole(entry: Entry) -> bool:
    return not entry.channel


MAX_PAGE = 10_000
"""Entries that are read at once when their bytes are limited: some may be very short."""


def up_to(entries: Iterable[Entry], max_bytes: int | None) -> list[Entry]:
    """The first entries, up to the one that makes their payloads together larger than `max_bytes`."""
    if max_bytes is None:
        return list(entries)
    found: list[Entry] = []
    for entry in islice(entries, MAX_PAGE):
        found.append(entry)
        max_bytes -= len(entry.payload)
        if max_bytes < 0:
            break
    return found


class StatePart(NamedTuple):
    """A part of a large state, written before the snapshot it belongs to. Without that snapshot it is ignored."""

    channel: str
    seq: int
    """That of the snapshot."""
    number: int
    """Its place among the parts: 0 is the first."""
    data: bytes


RESERVED = -1
"""The `seq` of a snapshot without a state: the parts of its channel's first state are being written. If nobody opens
the channel, there is none."""


class PartAhead(NamedTuple):
    """What a snapshot says about a part that was written before it."""

    size: int
    checksum: int


class ChannelSnapshot(NamedTuple):
    """The state of a channel with every action up to `seq` applied. The first one opens the channel."""

    channel: str
    seq: int
    state: bytes
    """All of it, or what follows the parts that were written ahead."""
    ahead: tuple[PartAhead, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the whole state."""
        return len(self.state) + sum(part.size for part in self.ahead)


class Removal(NamedTuple):
    """The channel is gone, and its entries with it. A channel opened later under this name is another one."""

    channel: str


class Value(NamedTuple):
    """A small durable value beside the log; without data the key is removed."""

    key: str
    data: bytes | None


Step = Entry | ChannelSnapshot | StatePart | Removal | Value

Batch = list[Step]
"""What is committed together: all of it or nothing, in this order."""


class Mark(NamedTuple):
    """Where the log stood at an entry: when it was written, and the payload bytes logged up to and including it."""

    at: int
    total: int


@dataclass(slots=True)
class Recovery:
    """What a storage returns when it is opened: enough to rebuild every state, and no more."""

    head_seq: int = 0
    """The highest number ever used; it outlives the entry that had it."""
    oldest_seq: int = 1
    """The log can replay from this number on."""
    snapshots: dict[str, ChannelSnapshot] = field(default_factory=dict[str, ChannelSnapshot])
    """The newest snapshot of each open channel, each with its whole state."""
    tail: list[Entry] = field(default_factory=list[Entry])
    """The entries of open channels after their snapshot, in order."""
    values: dict[str, bytes] = field(default_factory=dict[str, bytes])
    clients: dict[str, int] = field(default_factory=dict[str, int])
    """The highest clientSeq logged for each client."""
    problems: list[str] = field(default_factory=list[str])
    """What was damaged and what was done about it, for a person. Empty when all is well."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """How large the log is."""

    head_seq: int
    oldest_seq: int
    channels: int
    payload_bytes: int
    """Of the entries that can be replayed."""
    disk_bytes: int


__all__ = [
    "MAX_PAGE",
    "RESERVED",
    "Batch",
    "ChannelSnapshot",
    "Entry",
    "Mark",
    "PartAhead",
    "Recovery",
    "Removal",
    "StatePart",
    "Statistics",
    "Step",
    "Value",
    "hole",
    "is_hole",
    "up_to",
]
