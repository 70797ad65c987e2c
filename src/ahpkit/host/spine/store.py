"""Holds the states of all channels: reduces actions, passes them to the log, and keeps the durable states separately.

The store keeps two states of each channel. `state()` is the newest: the next action is applied to it. `committed()` is
the durable one. Readers see only this one, so that nothing that was shown can be lost. States are immutable, so keeping
both costs only a reference.

A channel that rests is kept as JSON text, and so are all channels after a restart. The text is parsed when somebody
asks for the state; the first action makes the channel live again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from ahpkit.dialects.base import OutgoingAction, SentAction
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.secret_addresses import stored_action, stored_state
from ahpkit.host.states import NO_STATE, States
from ahpkit.log.engine import OPENED, Commit, Draft, LogEngine
from ahpkit.log.entry import Entry, PartWrittenAhead, Recovery
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AlreadyExists
from ahpkit.wire.codec import decode_own, encode
from ahpkit.wire.pieces import entries_of, free, is_light, read_pieces, write_parts

_log = logging.getLogger(__name__)


_AT_ONCE = 100
"""Stored actions that are applied to a snapshot in one step of the event loop."""

_PART = 128 * 1024
"""Bytes of a large state that are committed at once: less than a millisecond of the log's time."""

_LARGEST_TEXT = 16 * 1024 * 1024
"""Bytes. A channel whose text is longer does not rest, because joining the text would take long."""

_PRIVATE = cast("StateAction", {"type": ""})
"""Placeholder for a message to one subscriber. Reducers ignore it."""


class Origin(NamedTuple):
    """The client that dispatched an action, and that client's number for it."""

    client_id: str
    client_seq: int


@dataclass(slots=True, eq=False)
class _Text:
    """The state of a channel at rest."""

    snapshot: bytes
    tail: Sequence[Entry] = ()
    """Actions after the snapshot."""
    read: ChannelState | None = None
    """The state that `Store.reading` has parsed."""
    readers: int = 0
    """The number of blocks of `Store.reading` that use `read`."""


@dataclass(slots=True, eq=False)
class _Channel:
    """A channel from `open` to `close`. The same URI may be opened again later, as another channel."""

    uri: str
    state: ChannelState | None
    """None while it rests."""
    opened_at: int
    """The number after which the state can be rebuilt from actions alone."""
    is_retold: bool = False
    """Its first action replaces the whole state. So actions are enough for a client that saw an earlier channel with
    this URI."""
    committed: ChannelState | None = None
    """None until its opening is durable, and while it rests."""
    text: _Text | None = None
    """Its stored text while it rests."""
    begun: bool = False
    """Whether its opening is durable. Until then `committed` is the state of an earlier channel with this URI, or
    None."""
    stored_at: int = 0
    """The state that the log has stored contains all actions up to this number."""
    told_at: int = 0
    """The number of the last action that was sent with a secret address, which is not stored. A replay would lack the
    address."""


@dataclass(slots=True, eq=False)
class _Change:
    """A change that waits to become durable."""

    step: int
    """The step of the log that makes it durable."""
    channel: _Channel
    state: ChannelState | None
    """The channel's state after the change; None: the channel is closed."""
    action: StateAction | None = None
    """The action that an entry of the log belongs to."""
    for_subscribers: bytes | None = None
    """The envelope for subscribers, if it has an address that the stored one lacks."""


class Prepared(NamedTuple):
    """The first state of a channel that is not open yet. Most of the state is stored already."""

    at: int
    """The number under which its parts were stored."""
    ahead: Sequence[PartWrittenAhead]
    rest: bytes
    """The end of the state's JSON, after the stored parts."""


class ChannelChanges(NamedTuple):
    """The channels that appeared or disappeared for readers with a commit."""

    appeared: list[str]
    gone: list[str]


class Store(States):
    """All channel states of a host."""

    def __init__(self, log: LogEngine, kinds: ChannelKinds, *, now: Callable[[], int]) -> None:
        self._log = log
        self._kinds = kinds
        self._now = now
        self._channels: dict[str, _Channel] = {}
        self._uncommitted: deque[_Change] = deque()
        self._closing: dict[str, _Channel] = {}
        """Channels that are closed. Readers still see them until that is durable."""
        self._preparing: set[str] = set()
        """URIs of channels that are not open yet, while their first states are being stored."""
        self._dropped: list[list[Any]] = []
        """The lists of closed channels. `free` frees them."""
        self.committed_head = 0
        """Everything up to this serverSeq is durable and was delivered."""

    def restore(self, recovery: Recovery) -> None:
        """Keep each channel's snapshot and the actions after it as text. The text is parsed when the state is
        needed."""
        tails: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in recovery.tail:
            tails[entry.channel].append(entry)
        for uri, snapshot in recovery.snapshots.items():
            text = _Text(snapshot.state, tails.get(uri, ()))
            opened_at = int(recovery.values.get(OPENED + uri, b"0"))
            self._channels[uri] = _Channel(uri, None, opened_at, text=text, begun=True, stored_at=snapshot.seq)
        self.committed_head = recovery.head_seq

    def _read(self, uri: str, text: _Text) -> ChannelState:
        if text.read is not None:
            return text.read
        state: ChannelState = decode_own(text.snapshot)
        for entry in text.tail:
            state = self._read_action(uri, state, entry)
        return state

    def _read_action(self, uri: str, state: ChannelState, entry: Entry) -> ChannelState:
        try:
            return self._kinds.reduce(uri, state, decode_own(entry.payload)["action"])
        except Exception:  # An action that cannot be read is left out, so that all others still count.
            _log.exception("the action %d of %s could not be applied again", entry.seq, uri)
            return state

    @asynccontextmanager
    async def reading(self, *uris: str) -> AsyncGenerator[None]:
        """Parse the texts of channels that rest, piece by piece. Until the end of the block, it is quick to
        read, show and wake these channels."""
        held: list[_Text] = []
        try:
            for uri in uris:
                channel = self._visible(uri)
                if channel is not None and (text := channel.text) is not None:
                    held.append(text)
                    text.readers += 1
                    text.read = await self._read_gently(uri, text)
            yield
        finally:
            values: list[list[Any]] = []
            for text in held:
                text.readers -= 1
                if not text.readers:
                    values += entries_of(text.read)
                    text.read = None
            await free(values)

    async def _read_gently(self, uri: str, text: _Text) -> ChannelState:
        """Like `_read`, but other tasks run between two pieces."""
        if text.read is not None:
            return text.read
        state = await read_pieces(text.snapshot)
        for number, entry in enumerate(text.tail, 1):
            state = self._read_action(uri, state, entry)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return state

    def wake(self, uri: str) -> None:
        """Load the state of a channel that rests."""
        channel = self._channels.get(uri)
        if channel is not None and channel.text is not None:
            channel.state = channel.committed = self._read(uri, channel.text)
            channel.text.read = channel.text = None

    async def free(self) -> None:
        """Free the lists of closed channels."""
        values, self._dropped = self._dropped, []
        await free(values)

    def durable(self, uri: str) -> bool:
        """Whether no change of a channel waits for the disk."""
        channel = self._channels.get(uri)
        return channel is not None and channel.state is channel.committed

    async def rest(self, uri: str, *, still: Callable[[], bool] = lambda: True) -> None:
        """Keep only the text of a channel, if no change of it waits for the disk. Writing the text takes a while; if
        `still()` is false after that, the channel stays live. A very large channel stays live, too."""
        channel = self._channels.get(uri)
        if channel is None or channel.text is not None or not self.durable(uri):
            return
        state = channel.state
        data = await _written(state or NO_STATE)
        if data is not None and still() and channel.state is state and self.durable(uri):
            channel.text = _Text(data)
            values, state = entries_of(state), None
            channel.state = channel.committed = None
            await free(values)

    def state(self, uri: str) -> ChannelState | None:
        """The newest state, committed or not."""
        channel = self._channels.get(uri)
        if channel is None:
            return None
        return channel.state if channel.text is None else self._read(uri, channel.text)

    def committed(self, uri: str) -> ChannelState | None:
        """The durable state: the one that subscribers have at `committed_head`."""
        channel = self._visible(uri)
        if channel is None:
            return None
        return channel.committed if channel.text is None else self._read(uri, channel.text)

    def shown(self, uri: str) -> bool:
        """Whether readers see this channel: its opening is durable, and it was not closed since."""
        channel = self._channels.get(uri)
        return channel is not None and (channel.text is not None or channel.committed is not None)

    def can_replay(self, after: int, channels: Iterable[str]) -> bool:
        """Whether a client that has seen everything up to a number can be brought up to date by actions, without
        snapshots."""
        if not self._log.oldest_seq - 1 <= after <= self.committed_head:
            return False
        visible = (self._visible(uri) for uri in channels)
        return all(channel is None or max(channel.opened_at, channel.told_at) <= after for channel in visible)

    def channels(self) -> list[str]:
        return list(self._channels)

    def taken(self, uri: str) -> bool:
        """Whether the URI is in use: by an open channel, or by one that is being prepared or closed."""
        return self._visible(uri) is not None or uri in self._preparing

    def _visible(self, uri: str) -> _Channel | None:
        return self._channels.get(uri) or self._closing.get(uri)

    def open(
        self,
        uri: str,
        state: ChannelState,
        *,
        kind: str | None = None,
        is_retold: bool = False,
        prepared: Prepared | None = None,
    ) -> None:
        """Create a channel, or replace the state of an existing one, at the present place in the sequence.

        `kind` is the channel's kind if its URI does not contain it. `is_retold`: the channel's first action replaces
        the state. `prepared` is the result of `preparing`.
        """
        if kind is not None:
            self._kinds.bind(uri, kind)
        if prepared is None:
            step = self._log.open(uri, encode(stored_state(state)))
        else:
            step = self._log.open(uri, prepared.rest, at=prepared.at, ahead=prepared.ahead)
            self._preparing.discard(uri)
        opened_at = 0 if is_retold else self._log.head_seq
        channel = _Channel(uri, state, opened_at, is_retold, self.committed(uri))
        self._channels[uri] = channel
        self._uncommitted.append(_Change(step, channel, state))

    @asynccontextmanager
    async def preparing(self, uri: str, state: ChannelState) -> AsyncGenerator[Prepared | None]:
        """Store the first state of a channel before it is opened, so that no commit has to take a large state at once.

        Nobody sees the state before `open`. If the channel is not opened, the stored state is removed; after a crash
        the next start removes it. None: the state is short, so `open` writes it.
        """
        stored = stored_state(state)
        if is_light(stored):
            yield None
            return
        if self.taken(uri):
            raise AlreadyExists(f"{uri} exists already")
        self._preparing.add(uri)
        self._log.reserve(uri)
        try:
            at = self.committed_head
            ahead, rest = await self._write_ahead(uri, stored, at)
            yield Prepared(at, ahead, rest)
        finally:
            if uri in self._preparing:
                self._preparing.discard(uri)
                self._log.close(uri)

    async def _write_ahead(self, uri: str, stored: ChannelState, at: int) -> tuple[list[PartWrittenAhead], bytes]:
        """Store all parts of a state except the last; returns the descriptions of the stored parts, and the last
        part."""
        ahead: list[PartWrittenAhead] = []
        rest = b""
        async for rest in write_parts(stored, _PART):
            if len(rest) >= _PART:
                ahead.append(await self._log.write_ahead(uri, rest, at=at, number=len(ahead)))
        return ahead, rest

    def close(self, uri: str) -> None:
        """Remove a channel. No further actions can be applied to it. Readers see it until its removal is durable."""
        channel = self._channels.pop(uri, None)
        if channel is not None:
            self._dropped += entries_of(channel.state)
            self._closing[uri] = channel
            self._kinds.release(uri)
            self._uncommitted.append(_Change(self._log.close(uri), channel, None))

    def apply(
        self, uri: str, action: StateAction, origin: Origin | None = None
    ) -> tuple[ChannelState, ChannelState, int]:
        """Reduce and log one action; returns the states before and after it, and its time."""
        channel = self._channels[uri]
        if channel.text is not None:
            self.wake(uri)
        before, at = channel.state, self._now()
        assert before is not None
        after = self._kinds.reduce(uri, before, action)
        sent, stored = envelope(uri, action, origin), stored_action(action)
        body = encode(sent if stored is action else envelope(uri, stored, origin))
        client_id, client_seq = origin or (None, None)
        step = self._log.append(Draft(uri, action["type"], body, client_id, client_seq, at, OutgoingAction(sent)))
        # From here on nothing can fail: an action that could not be reduced or encoded has changed nothing.
        channel.state = after
        self._uncommitted.append(_Change(step, channel, after, action, None if stored is action else encode(sent)))
        return before, after, at

    def skip(self, uri: str) -> None:
        """Use a number of the sequence for a message to one subscriber of a channel. No state changes."""
        self.wake(uri)
        channel = self._channels[uri]
        step = self._log.skip(self._now())
        self._uncommitted.append(_Change(step, channel, channel.state, _PRIVATE))

    async def checkpoint(self, uri: str) -> None:
        """Store the durable state of a channel, so that a restart need not apply the actions before it again.

        A large state is stored part by part. Actions that arrive meanwhile are stored between two parts, so an action
        waits for one part at most.
        """
        channel = self._channels.get(uri)
        if channel is not None and channel.begun and self.committed_head > channel.stored_at:
            async with self.reading(uri):
                await self._store_parts(uri, channel, self.committed_head)

    async def _store_parts(self, uri: str, channel: _Channel, at: int) -> None:
        resting, state = channel.text, self.committed(uri)
        ahead: list[PartWrittenAhead] = []
        text: list[bytes] = []
        async for data in write_parts(stored_state(state or NO_STATE), _PART):
            if self._channels.get(uri) is not channel:
                return
            if resting is not None:
                text.append(data)
            if len(data) < _PART:
                self._log.checkpoint(uri, data, at=at, ahead=ahead)
                channel.stored_at = at
            else:
                ahead.append(await self._log.write_ahead(uri, data, at=at, number=len(ahead)))
        short = len(text) * _PART <= _LARGEST_TEXT
        if resting is not None and resting.tail and channel.text is resting and short:
            channel.text = _Text(b"".join(text))  # Its actions need not be applied again after a restart.

    def commit(self, commit: Commit) -> ChannelChanges:
        """Show readers the changes that a commit made durable. Entries whose stored envelope lacks an address get the
        envelope for subscribers."""
        if commit.refused:
            self._undo({refused.step for refused in commit.refused})
        changes = ChannelChanges([], [])
        places = iter(range(len(commit.entries)))
        while self._uncommitted and self._uncommitted[0].step <= commit.step:
            change = self._uncommitted.popleft()
            channel = change.channel
            if change.action is not None:
                self._numbered(change, commit.entries, next(places))
            elif change.state is not None:
                self._begun(channel)
            if change.state is None:
                del self._closing[channel.uri]
                changes.gone.append(channel.uri)
            elif channel.committed is None and self._channels.get(channel.uri) is channel:
                changes.appeared.append(channel.uri)
            channel.committed = change.state  # Readers see it from now on.
        return changes

    def _numbered(self, change: _Change, entries: list[Entry], place: int) -> None:
        """Note the number that an action got."""
        entry = entries[place]
        self.committed_head = entry.seq
        if change.for_subscribers is not None:
            change.channel.told_at = entry.seq
            shown = Draft(change.channel.uri, entry.type, change.for_subscribers, None, None, 0)
            entries[place] = entry._replace(payload=shown.numbered(entry.seq).payload)

    def _begun(self, channel: _Channel) -> None:
        """Note that the opening of a channel is durable."""
        channel.begun = True
        channel.stored_at = self.committed_head
        if not channel.is_retold:
            channel.opened_at = self.committed_head

    def _undo(self, refused: set[int]) -> None:
        """The log could not store the actions of these steps: reset their channels to the state without them."""
        undone = [change for change in self._uncommitted if change.step in refused]
        self._uncommitted = deque(change for change in self._uncommitted if change.step not in refused)
        for channel in {id(change.channel): change.channel for change in undone}.values():
            self._reduce_again(channel)

    def _reduce_again(self, channel: _Channel) -> None:
        state = channel.committed or NO_STATE
        for change in self._uncommitted:
            if change.channel is not channel or change.state is None:
                continue
            state = change.state if change.action is None else self._kinds.reduce(channel.uri, state, change.action)
            change.state = state
        channel.state = state

    @property
    def backlog(self) -> int:
        """How many changes wait to become durable."""
        return len(self._uncommitted)


async def _written(state: ChannelState) -> bytes | None:
    """A state as JSON. Other tasks run between two pieces. None: the state is so large that joining the pieces would
    take long."""
    parts: list[bytes] = []
    async for part in write_parts(state, _PART):
        parts.append(part)
        if len(parts) * _PART > _LARGEST_TEXT:
            return None
    return b"".join(parts)


def envelope(uri: str, action: StateAction | SentAction, origin: Origin | None) -> JsonObject:
    """An ActionEnvelope without its number, which the log gives."""
    made: JsonObject = {"channel": uri, "action": action}
    if origin is not None:
        made["origin"] = {"clientId": origin.client_id, "clientSeq": origin.client_seq}
    return made


_TYPE = re.compile(rb'\{"channel":"[^"\\]*","action":\{"type":"([^"\\]+)"')
"""The beginning of most envelopes."""


def action_type(payload: bytes) -> str:
    """The type of the action in an envelope of the log."""
    found = _TYPE.match(payload)
    return found[1].decode() if found else decode_own(payload)["action"]["type"]


__all__ = ["ChannelChanges", "Origin", "Prepared", "Store", "action_type", "envelope"]
