"""A log engine that gives numbers late, as members of a cluster would: when a batch is committed, and with gaps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Self

from ahpkit.log.engine import OPENED, Commit, Draft
from ahpkit.log.entry import ChannelSnapshot, Entry, PartWrittenAhead, Recovery, hole, up_to
from ahpkit.log.errors import NotInLog

_Step = tuple[str, object, object]


@dataclass
class Disk:
    """What survives a restart."""

    head: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    snapshots: dict[str, ChannelSnapshot] = field(default_factory=dict[str, ChannelSnapshot])
    parts: dict[tuple[str, int, int], bytes] = field(default_factory=dict[tuple[str, int, int], bytes])
    values: dict[str, bytes] = field(default_factory=dict[str, bytes])


class LateLog:
    """Implements `ahpkit.log.engine.LogEngine`. Between two entries `gap` numbers go to somebody else.

    While `by_hand` is set, nothing is committed before `commit` is called.
    """

    def __init__(self, disk: Disk | None = None, *, gap: int = 2, by_hand: bool = False) -> None:
        self.disk = disk or Disk()
        self._gap = gap
        self.by_hand = by_hand
        self._queue: list[_Step] = []
        self._committed = 0
        self._followers: list[Callable[[Commit], None]] = []
        self._scheduled = False
        self._used: set[tuple[str, int]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.commit()

    def take_recovery(self) -> Recovery:
        disk = self.disk
        tail = [entry for entry in disk.entries if _is_after(entry, disk.snapshots.get(entry.channel))]
        return Recovery(head_seq=disk.head, snapshots=dict(disk.snapshots), tail=tail, values=dict(disk.values))

    @property
    def steps(self) -> int:
        return self._committed + len(self._queue)

    @property
    def head_seq(self) -> int:
        return self.disk.head

    @property
    def oldest_seq(self) -> int:
        return 1

    @property
    def failing(self) -> str | None:
        return None

    async def wait_failing(self) -> None:
        await asyncio.Event().wait()

    def append(self, draft: Draft) -> int:
        if draft.client_id is not None and draft.client_seq is not None:
            self._used.add((draft.client_id, draft.client_seq))
        return self._put("append", draft, None)

    def skip(self, at: int) -> int:
        return self._put("skip", at, None)

    def open(self, channel: str, state: bytes, *, at: int | None = None, ahead: Sequence[PartWrittenAhead] = ()) -> int:
        return self._put("open", ChannelSnapshot(channel, 0 if at is None else at, state, tuple(ahead)), None)

    def reserve(self, channel: str) -> int:
        return self._put("value", f"reserved/{channel}", b"")

    async def write_ahead(self, channel: str, data: bytes, *, at: int, number: int) -> PartWrittenAhead:
        step = self._put("part", (channel, at, number), data)
        while self._committed < step:  # noqa: ASYNC110  # Tests step through it without a loop.
            await asyncio.sleep(0)
        return PartWrittenAhead(len(data), 0)

    def checkpoint(self, channel: str, state: bytes, *, at: int, ahead: Sequence[PartWrittenAhead] = ()) -> int:
        return self._put("checkpoint", ChannelSnapshot(channel, at, state, tuple(ahead)), None)

    def close(self, channel: str) -> int:
        return self._put("close", channel, None)

    def set_value(self, key: str, data: bytes | None) -> int:
        return self._put("value", key, data)

    def may_wait(self) -> None:
        """Allowed, but this log stores at the end of each step anyway."""

    def hurry(self) -> None:
        """Does nothing, because nothing waits in this log."""

    def checkpoints_due(self) -> list[str]:
        return []

    async def follow(self, after: int, take: Callable[[Commit], None]) -> None:
        past = [entry for entry in self.disk.entries if entry.seq > after]
        if past:
            take(Commit(past, 0))
        self._followers.append(take)
        await asyncio.Event().wait()

    async def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        if after > self.disk.head:
            raise NotInLog(after, oldest_seq=1, head_seq=self.disk.head)
        wanted = [
            entry._replace(type="")
            for entry in self.disk.entries
            if entry.seq > after and (channels is None or entry.channel in channels)
        ]
        return up_to(wanted[:limit], max_bytes)

    def is_new(self, client_id: str, client_seq: int) -> bool:
        return (client_id, client_seq) not in self._used

    async def seen(self, client_id: str, client_seq: int) -> int | None:
        found = [
            entry.seq for entry in self.disk.entries if (entry.client_id, entry.client_seq) == (client_id, client_seq)
        ]
        return found[-1] if found else None

    def commit(self, steps: int | None = None) -> Commit:
        """Make the next so many steps durable, all by default; only now do their entries get numbers."""
        self._scheduled = False
        count = len(self._queue) if steps is None else steps
        done, self._queue = self._queue[:count], self._queue[count:]
        entries = [entry for step in done if (entry := self._make_durable(step)) is not None]
        self._committed += len(done)
        commit = Commit(entries, self._committed)
        for take in self._followers:
            take(commit)
        return commit

    def _make_durable(self, step: _Step) -> Entry | None:
        disk = self.disk
        match step:
            case ("append", Draft() as draft, _):
                disk.head += 1 + self._gap
                disk.entries.append(entry := draft.numbered(disk.head))
                return entry
            case ("skip", int(at), _):
                disk.head += 1 + self._gap
                return hole(disk.head, at)
            case ("open", ChannelSnapshot(channel, at, state, ahead), _):
                disk.values[OPENED + channel] = b"%d" % disk.head
                parts = [disk.parts.pop((channel, at, number)) for number in range(len(ahead))]
                disk.snapshots[channel] = ChannelSnapshot(channel, disk.head, b"".join((*parts, state)))
            case ("part", (str(channel), int(at), int(number)), bytes(data)):
                disk.parts[channel, at, number] = data
            case ("checkpoint", ChannelSnapshot(channel, at, state, ahead), _):
                parts = [disk.parts.pop((channel, at, number)) for number in range(len(ahead))]
                disk.snapshots[channel] = ChannelSnapshot(channel, at, b"".join((*parts, state)))
            case ("close", str(channel), _):
                disk.values.pop(OPENED + channel, None)
                disk.snapshots.pop(channel, None)
                disk.entries = [entry for entry in disk.entries if entry.channel != channel]
            case (_, str(key), data):
                disk.values.pop(key, None)
                if isinstance(data, bytes):
                    disk.values[key] = data
            case _:
                raise AssertionError(step)
        return None

    def _put(self, kind: str, one: object, other: object) -> int:
        self._queue.append((kind, one, other))
        if not self.by_hand and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(0.001, self._commit_scheduled)
        return self.steps

    def _commit_scheduled(self) -> None:
        self._scheduled = False
        if not self.by_hand:
            self.commit()


def _is_after(entry: Entry, snapshot: ChannelSnapshot | None) -> bool:
    return snapshot is not None and entry.seq > snapshot.seq


__all__ = ["Disk", "LateLog"]
