"""The interface of a storage for a log, and the order of entries that every storage keeps.

All methods of a storage block. `load` is called once, before everything else. `commit`, `trim` and `tidy` are called by
one thread at a time; `read`, `seen`, `mark` and `statistics` may be called by others meanwhile and see what is
committed. A call that fails changes nothing, can be made again, and raises `StorageError` if the cause is outside the
program, and `ContentRefused` if it is the content to be written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from ahpkit.log.entry import (
    RESERVED,
    Batch,
    ChannelSnapshot,
    Entry,
    LogPosition,
    Recovery,
    StatePart,
    Statistics,
    is_hole,
)
from ahpkit.log.errors import OutOfOrder


class StepOrder:
    """Follows the steps of a log and refuses the first one that does not fit."""

    def __init__(self, head_seq: int, snapshots: Mapping[str, ChannelSnapshot]) -> None:
        self.head_seq = head_seq
        self._open = {channel: snapshot.seq for channel, snapshot in snapshots.items()}

    def append(self, entry: Entry) -> None:
        if entry.seq != self.head_seq + 1:
            raise OutOfOrder(f"entry {entry.seq} of {entry.channel} cannot follow {self.head_seq}")
        if entry.channel not in self._open and not is_hole(entry):
            raise OutOfOrder(f"entry {entry.seq} is for {entry.channel}, which no snapshot has opened")
        self.head_seq = entry.seq

    def part(self, part: StatePart) -> None:
        """A part belongs to a later snapshot: parts of the stored state must not change before that state is
        replaced."""
        stored = self._open.get(part.channel)
        if stored is None or not stored < part.seq <= self.head_seq:
            raise OutOfOrder(f"a part of {part.channel} at {part.seq} does not fit a log at {self.head_seq}")

    def snapshot(self, snapshot: ChannelSnapshot) -> None:
        if not self._open.get(snapshot.channel, RESERVED) <= snapshot.seq <= self.head_seq:
            raise OutOfOrder(
                f"a snapshot of {snapshot.channel} at {snapshot.seq} does not fit a log at {self.head_seq}"
            )
        self._open[snapshot.channel] = snapshot.seq

    def remove(self, channel: str) -> None:
        self._open.pop(channel, None)


def head_after(head_seq: int, batch: Batch) -> int:
    """The head after `batch` is committed; raises `OutOfOrder` when its numbers do not continue from `head_seq`."""
    entries = [step for step in batch if type(step) is Entry]
    after = head_seq + len(entries)
    if [entry.seq for entry in entries] != list(range(head_seq + 1, after + 1)):
        before, wrong = next((n, entry) for n, entry in enumerate(entries, head_seq) if entry.seq != n + 1)
        raise OutOfOrder(f"entry {wrong.seq} of {wrong.channel} cannot follow {before}")
    return after


class Storage(Protocol):
    """Stores the records of a log. `ahpkit.testing.storage` checks an implementation."""

    def load(self) -> Recovery:
        """Open the storage, and repair it if needed; returns the data for a restart, and descriptions of damage."""
        ...

    def commit(self, batch: Batch) -> None:
        """Make the batch durable: all of it, in its order, or none of it."""
        ...

    def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        """The entries after a number, in order, of these open channels (None: all); raises `NotInLog` for a hole.

        Ends with the entry that reaches `limit`, or that makes the payloads together larger than `max_bytes`; with
        `max_bytes` also at `MAX_PAGE` entries.
        """
        ...

    def seen(self, client_id: str, client_seq: int) -> int | None:
        """The number that a client's action got; 0 if the action was trimmed; None if it was never logged."""
        ...

    def mark(self, seq: int) -> LogPosition:
        """The position of an entry that is still stored."""
        ...

    def trim(self, before_seq: int) -> int:
        """Forget entries below a number, except those that a state still needs; returns the oldest remaining number."""
        ...

    def tidy(self, *, at_rest: bool = False) -> bool:
        """Do some work that can wait; returns whether there is more. Called by the thread that commits, when it is
        idle.

        `at_rest`: there was no commit for a while, so it may take longer.
        """
        ...

    def statistics(self) -> Statistics:
        """How large the log is."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


__all__ = ["StepOrder", "Storage", "head_after"]
