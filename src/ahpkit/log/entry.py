"""The records of a log, as they are written and as they are read after a restart.

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
    """The type of its action. It is not stored, so it is unknown for an entry that was read from the log."""
    outgoing: Any = None
    """Other forms of the action for readers. They are not stored, either."""


def hole(seq: int, at: int) -> Entry:
    """An entry that only uses a number, for a message that is not stored or could not be written. Readers never see
    it."""
    return Entry(seq, "", b"", None, None, at if 0 <= at < 1 << 53 else 0)


def is_hole(entry: Entry) -> bool:
    return not entry.channel


MAX_PAGE = 10_000
"""Entries that are read at once if their bytes are limited. The number is limited too, because entries may be very
short."""


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
    """The number of the snapshot that it belongs to."""
    number: int
    """Its place among the parts: 0 is the first."""
    data: bytes


RESERVED = -1
"""The `seq` of a snapshot without a state: the parts of its channel's first state are being written. A channel that is
never opened does not exist."""


class PartWrittenAhead(NamedTuple):
    """The description of a part that was written before its snapshot: its size and checksum."""

    size: int
    checksum: int


class ChannelSnapshot(NamedTuple):
    """The state of a channel with every action up to `seq` applied. The first one opens the channel."""

    channel: str
    seq: int
    state: bytes
    """The whole state, or the rest after the parts that were written ahead."""
    ahead: tuple[PartWrittenAhead, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the whole state."""
        return len(self.state) + sum(part.size for part in self.ahead)


class ChannelRemoval(NamedTuple):
    """The channel is gone, and its entries with it. A channel that is opened later under this name is a new one."""

    channel: str


class Value(NamedTuple):
    """A small durable value beside the log; without data the key is removed."""

    key: str
    data: bytes | None


Step = Entry | ChannelSnapshot | StatePart | ChannelRemoval | Value

Batch = list[Step]
"""Steps that are committed together, in this order: all or none."""


class LogPosition(NamedTuple):
    """The position of an entry: when it was written, and the bytes of all payloads up to and including it."""

    at: int
    total: int


@dataclass(slots=True)
class Recovery:
    """What a storage returns when it is opened: exactly the data that are needed to rebuild every state."""

    head_seq: int = 0
    """The highest number that was ever used. It is kept even if its entry is trimmed."""
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
    """Descriptions of damage and its repair, for a person. Empty if nothing was damaged."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """How large the log is."""

    head_seq: int
    oldest_seq: int
    channels: int
    payload_bytes: int
    """The bytes of the entries that can be replayed."""
    disk_bytes: int


__all__ = [
    "MAX_PAGE",
    "RESERVED",
    "Batch",
    "ChannelRemoval",
    "ChannelSnapshot",
    "Entry",
    "LogPosition",
    "PartWrittenAhead",
    "Recovery",
    "StatePart",
    "Statistics",
    "Step",
    "Value",
    "hole",
    "is_hole",
    "up_to",
]
