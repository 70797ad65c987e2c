"""The log as a port of the host: it acknowledges what it stored and can be followed. Also its default engine.

The host appends drafts, in order, and goes on. A `Commit` acknowledges them: it says how many of the host's own steps
are durable now and which numbers its entries got. The host learns this by following the log. So an engine may give the
numbers later, for example when the members of a cluster have agreed on them.

`LocalLog` is the default engine. It numbers each entry at once and writes to one storage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol, Self
from zlib import crc32

from ahpkit.log.entry import RESERVED, ChannelSnapshot, Entry, PartWrittenAhead, Recovery, StatePart, Step, hole
from ahpkit.log.errors import StorageError
from ahpkit.log.log import MOMENT, Log
from ahpkit.log.retention import Retention
from ahpkit.log.storage import Storage

_log = logging.getLogger(__name__)

OPENED = "opened/"
"""Prefix of the durable value with the number after which a channel's state can be computed from entries alone."""

_PAGE = 1000
"""Entries read at a time for a follower that starts in the past."""


_LONG = 64 * 1024
"""Envelopes longer than this many bytes are copied only once."""


class Draft(NamedTuple):
    """An action that has no number yet. `envelope` is the JSON object of its envelope without the `serverSeq`."""

    channel: str
    type: str
    envelope: bytes
    client_id: str | None
    client_seq: int | None
    at: int
    outgoing: Any = None
    """The same member of the entry that this draft becomes."""

    def numbered(self, seq: int) -> Entry:
        """The entry this draft becomes under a number."""
        if len(self.envelope) < _LONG:
            payload = b'%b,"serverSeq":%d}' % (self.envelope[:-1], seq)
        else:
            payload = b"".join((memoryview(self.envelope)[:-1], b',"serverSeq":%d}' % seq))
        return Entry(seq, self.channel, payload, self.client_id, self.client_seq, self.at, self.type, self.outgoing)


class Refused(NamedTuple):
    """An entry that the log cannot store, its step, and the reason."""

    entry: Entry
    step: int
    reason: str


class Commit(NamedTuple):
    """Entries that became durable together."""

    entries: list[Entry]
    """The entries, in the order of their numbers."""
    step: int
    """All steps of this host up to this one are durable."""
    refused: Sequence[Refused] = ()
    """Entries among these steps that the log cannot store. They are undone, and their numbers are not used again."""


class LogEngine(Protocol):
    """The log that a host writes to. Open inside its `async with`; all methods are called in the thread of the event
    loop.

    A step is one call of `append`, `skip`, `reserve`, `open`, `write_ahead`, `checkpoint`, `close` or `set_value`.
    Steps become durable in order. Steps made without an `await` in between become durable together.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def take_recovery(self) -> Recovery:
        """What was stored when the log was opened. It can be taken once, because it may be large."""
        ...

    @property
    def steps(self) -> int:
        """How many steps there were so far; the newest one has this number."""
        ...

    @property
    def head_seq(self) -> int:
        """The highest number that was given out."""
        ...

    @property
    def oldest_seq(self) -> int:
        """Replay is possible for clients that have everything before this number."""
        ...

    @property
    def failing(self) -> str | None:
        """Why nothing can be made durable now, in words for a person; None: entries can be stored."""
        ...

    async def wait_failing(self) -> None:
        """Wait until nothing can be made durable."""
        ...

    def append(self, draft: Draft) -> int:
        """Take an action; returns its step. The commit of that step has the number that the action got."""
        ...

    def skip(self, at: int) -> int:
        """Use a number for a message that is not stored; returns its step.

        The commit of that step has an entry with only the number (`hole`), which `read` never returns.
        """
        ...

    def open(self, channel: str, state: bytes, *, at: int | None = None, ahead: Sequence[PartWrittenAhead] = ()) -> int:
        """Open a channel with this state. If parts were written `ahead` under the number `at`, `state` is the rest
        after these parts."""
        ...

    def reserve(self, channel: str) -> int:
        """Allow parts of a channel's first state to be written ahead. The channel does not exist until it is opened."""
        ...

    async def write_ahead(self, channel: str, data: bytes, *, at: int, number: int) -> PartWrittenAhead:
        """Store a part of a large state before its `open` or `checkpoint`, so that no commit has to take all of it at
        once.

        `at` is the number of the later checkpoint, and higher than that of the stored state. Parts are numbered from 0.
        Returns when the part is durable. Parts without a checkpoint are ignored.
        """
        ...

    def checkpoint(self, channel: str, state: bytes, *, at: int, ahead: Sequence[PartWrittenAhead] = ()) -> int:
        """Store the state of a channel after every entry up to a durable number, so that a restart need not replay
        these entries.

        `state` is the whole state, or the rest after the parts that were written `ahead`.
        """
        ...

    def close(self, channel: str) -> int:
        """Remove a channel with its entries."""
        ...

    def set_value(self, key: str, data: bytes | None) -> int:
        """Store a small value beside the log; None removes the key."""
        ...

    def may_wait(self) -> None:
        """Allow the steps so far to become durable a moment later, together with later steps."""
        ...

    def hurry(self) -> None:
        """Commit the steps that wait now, because a task waits until they are durable."""
        ...

    def checkpoints_due(self) -> list[str]:
        """Channels that should get a `checkpoint` soon; ask after each commit, it is cheap."""
        ...

    async def follow(self, after: int, take: Callable[[Commit], None]) -> None:
        """Call `take` with every commit that has entries after a number, then with each new one as it happens.

        Goes on until it is cancelled. `take` handles its own errors.
        """
        ...

    async def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        """Durable entries after a number; raises `NotInLog` if the log no longer (or not yet) reaches that number.

        Ends with the entry that reaches `limit`, or that makes the payloads together larger than `max_bytes`; with
        `max_bytes` also at `MAX_PAGE` entries.
        """
        ...

    def is_new(self, client_id: str, client_seq: int) -> bool:
        """Whether a client has certainly not used this number before. Costs no I/O."""
        ...

    async def seen(self, client_id: str, client_seq: int) -> int | None:
        """The number that a client's action got, 0 if that is trimmed, None if there was none."""
        ...


class LocalLog:
    """One storage on this machine. Implements `LogEngine`; a number is known as soon as its entry is appended."""

    def __init__(self, storage: Storage, *, retention: Retention | None = None, moment: float = MOMENT) -> None:
        """`moment`: the seconds that steps which may wait are held back at most."""
        self._log = Log(
            storage,
            on_commit=self._committed,
            on_error=self._failed,
            on_refused=self._not_stored,
            retention=retention,
            moment=moment,
        )
        self._refused: list[Refused] = []
        self._lost_parts: list[StatePart] = []
        self._followers: list[Callable[[Commit], None]] = []
        self._trouble = asyncio.Event()
        self._durable_seq = 0

    async def __aenter__(self) -> Self:
        await self._log.__aenter__()
        self._durable_seq = self._log.head_seq
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._log.__aexit__(*exc)

    def take_recovery(self) -> Recovery:
        recovery = self._log.take_recovery()
        for channel in [uri for uri, snapshot in recovery.snapshots.items() if snapshot.seq == RESERVED]:
            del recovery.snapshots[channel]
            self._log.remove(channel)
        return recovery

    @property
    def steps(self) -> int:
        return self._log.queued

    @property
    def head_seq(self) -> int:
        return self._log.head_seq

    @property
    def oldest_seq(self) -> int:
        return self._log.oldest_seq

    @property
    def failing(self) -> str | None:
        return self._log.failing

    async def wait_failing(self) -> None:
        await self._trouble.wait()

    def append(self, draft: Draft) -> int:
        self._log.append(draft.numbered(self._log.head_seq + 1))
        return self._log.queued

    def skip(self, at: int) -> int:
        self._log.append(hole(self._log.head_seq + 1, at))
        return self._log.queued

    def open(self, channel: str, state: bytes, *, at: int | None = None, ahead: Sequence[PartWrittenAhead] = ()) -> int:
        head = self._log.head_seq
        self._log.set_value(OPENED + channel, b"%d" % head)
        return self.checkpoint(channel, state, at=head if at is None else at, ahead=ahead)

    def reserve(self, channel: str) -> int:
        self._log.snapshot(ChannelSnapshot(channel, RESERVED, b""))
        return self._log.queued

    async def write_ahead(self, channel: str, data: bytes, *, at: int, number: int) -> PartWrittenAhead:
        part = StatePart(channel, at, number, data)
        self._log.part(part)
        await self._log.flush()
        if part in self._lost_parts:
            self._lost_parts.remove(part)
            raise StorageError(f"a part of the state of {channel} could not be stored")
        return PartWrittenAhead(len(data), crc32(data))

    def checkpoint(self, channel: str, state: bytes, *, at: int, ahead: Sequence[PartWrittenAhead] = ()) -> int:
        self._log.snapshot(ChannelSnapshot(channel, at, state, tuple(ahead)))
        return self._log.queued

    def close(self, channel: str) -> int:
        self._log.set_value(OPENED + channel, None)
        self._log.remove(channel)
        return self._log.queued

    def set_value(self, key: str, data: bytes | None) -> int:
        self._log.set_value(key, data)
        return self._log.queued

    def may_wait(self) -> None:
        self._log.may_wait()

    def hurry(self) -> None:
        self._log.hurry()

    def checkpoints_due(self) -> list[str]:
        return self._log.snapshots_due()

    async def follow(self, after: int, take: Callable[[Commit], None]) -> None:
        meanwhile = list[Commit]()  # Commits that happen while older ones are read.
        self._followers.append(meanwhile.append)
        try:
            async for past in self._past(after, until=self._durable_seq):
                take(past)
        finally:
            self._followers.remove(meanwhile.append)
        for commit in meanwhile:
            take(commit)
        self._followers.append(take)
        try:
            await asyncio.Event().wait()
        finally:
            self._followers.remove(take)

    async def _past(self, after: int, *, until: int) -> AsyncIterator[Commit]:
        while after < until:
            page = await self.read(after, limit=_PAGE)
            entries = [entry for entry in page if entry.seq <= until]
            if entries:
                yield Commit(entries, 0)
            after = entries[-1].seq if entries and len(page) == _PAGE else until

    async def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        return await self._log.read(after, channels=channels, limit=limit, max_bytes=max_bytes)

    def is_new(self, client_id: str, client_seq: int) -> bool:
        return self._log.is_new(client_id, client_seq)

    async def seen(self, client_id: str, client_seq: int) -> int | None:
        return await self._log.seen(client_id, client_seq)

    def _committed(self, entries: list[Entry]) -> None:
        self._trouble.clear()
        if entries:
            self._durable_seq = entries[-1].seq
        refused, self._refused = self._refused, []
        commit = Commit(entries, self._log.durable, refused)
        for take in self._followers:
            take(commit)

    def _not_stored(self, step: Step, number: int, reason: str) -> None:
        _log.error("a %s could not be stored and is dropped: %s", type(step).__name__, reason)
        if isinstance(step, Entry):
            self._refused.append(Refused(step, number, reason))
        elif isinstance(step, StatePart):
            self._lost_parts.append(step)

    def _failed(self, error: Exception) -> None:
        _log.error("the log cannot be written: %s. New actions are refused until it can.", error)
        self._trouble.set()


__all__ = ["OPENED", "Commit", "Draft", "LocalLog", "LogEngine", "Refused"]
