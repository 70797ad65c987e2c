"""Checks the order of a log: numbers without a gap, entries only in open channels. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.log.entry import Batch, ChannelSnapshot, Entry, StatePart, is_hole
from ahpkit.log.errors import OutOfOrder


class Order:
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
        if not self._open.get(snapshot.channel, 0) <= snapshot.seq <= self.head_seq:
            raise OutOfOrder(
                f"a snapshot of {snapshot.channel} at {snapshot.seq} does not fit a log at {self.head_seq}"
            )
        self._open[snapshot.channel] = snapshot.seq

    def remove(self, channel: str) -> None:
        self._open.pop(channel, None)


def head_after(head_seq: int, batch: Batch) -> int:
    """The head after `batch` is committed; raises `OutOfOrder` when its numbers do not continue from `head_seq`."""
    for step in batch:
        if type(step) is Entry:
            if step.seq != head_seq + 1:
                raise OutOfOrder(f"entry {step.seq} of {step.channel} cannot follow {head_seq}")
            head_seq = step.seq
    return head_seq


__all__ = ["Order", "head_after"]
