"""States and the sequence: reduces an action, numbers it, hands it to the log. Knows no clients, sockets or agents.

Two views of each channel are kept. `state()` is the newest: what the next action is reduced on. `committed()` is what
is durable: the only thing a reader ever sees, so that nothing shown can be lost. States are immutable, so keeping both
costs a reference.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery
from ahpkit.protocol.channels import reduce
from ahpkit.protocol.codec import decode_json, encode
from ahpkit.protocol.common.state import JsonObject

_log = logging.getLogger(__name__)

_OPENED = "opened/"
"""Key of the durable value that says where in the sequence a channel began."""


class Origin(NamedTuple):
    """The client that dispatched an action, and that client's number for it."""

    client_id: str
    client_seq: int


class LogDoor(Protocol):
    """What the store needs of the log."""

    @property
    def queued(self) -> int:
        """Steps that were ever queued."""
        ...

    def append(self, entry: Entry) -> None: ...

    def snapshot(self, snapshot: ChannelSnapshot) -> None: ...

    def remove(self, channel: str) -> None: ...

    def set_value(self, key: str, data: bytes | None) -> None: ...


@dataclass(slots=True, eq=False)
class _Channel:
    """One life of a channel: after `close`, the same URI may be opened as another one."""

    uri: str
    state: JsonObject
    opened_at: int
    committed: JsonObject | None = None
    """None until its opening is durable."""


@dataclass(slots=True, eq=False)
class _Change:
    """What happened to a channel and is not durable yet."""

    steps: int
    """How many steps of the log make it durable."""
    channel: _Channel
    state: JsonObject | None
    """After it; None: the channel is closed."""
    entry: Entry | None = None
    """The action that made it."""
    action: JsonObject | None = None


class Turnover(NamedTuple):
    """Channels that a commit made visible, and channels whose end it made durable."""

    appeared: list[str]
    gone: list[str]


class Store:
    """All channel states of a host, and the one counter that orders their actions."""

    def __init__(self, log: LogDoor, *, now: Callable[[], int]) -> None:
        self._log = log
        self._now = now
        self._channels: dict[str, _Channel] = {}
        self._uncommitted: deque[_Change] = deque()
        self._closing: dict[str, _Channel] = {}
        """Closed, but not durably: readers see them until then."""
        self.head = 0
        """serverSeq of the newest action."""
        self.committed_head = 0
        """serverSeq up to which everything is durable."""

    def restore(self, recovery: Recovery) -> None:
        """Rebuild the states: each channel's snapshot, then the actions after it."""
        states = {uri: decode_json(snapshot.state) for uri, snapshot in recovery.snapshots.items()}
        for entry in recovery.tail:
            try:
                action = decode_json(entry.payload)["action"]
                states[entry.channel] = reduce(entry.channel, states[entry.channel], action, now=entry.at)
            except Exception:  # What cannot be read costs this action. All others are needed.
                _log.exception("the action %d of %s could not be applied again", entry.seq, entry.channel)
        for uri, state in states.items():
            self._channels[uri] = _Channel(uri, state, int(recovery.values.get(_OPENED + uri, b"0")), state)
        self.head = self.committed_head = recovery.head_seq

    def state(self, uri: str) -> JsonObject | None:
        """The newest state, committed or not."""
        channel = self._channels.get(uri)
        return None if channel is None else channel.state

    def committed(self, uri: str) -> JsonObject | None:
        """The durable state: what subscribers have been or will be shown at `committed_head`."""
        channel = self._visible(uri)
        return None if channel is None else channel.committed

    def opened_at(self, uri: str) -> int:
        """serverSeq after which the channel's state can be rebuilt from actions alone."""
        channel = self._visible(uri)
        return 0 if channel is None else channel.opened_at

    def channels(self) -> list[str]:
        return list(self._channels)

    def taken(self, uri: str) -> bool:
        """Whether there is such a channel, in anybody's eyes."""
        return self._visible(uri) is not None

    def _visible(self, uri: str) -> _Channel | None:
        return self._channels.get(uri) or self._closing.get(uri)

    def open(self, uri: str, state: JsonObject) -> None:
        """Create a channel, or give an existing one a new beginning, at the present place in the sequence."""
        data = encode(state)
        channel = _Channel(uri, state, self.head, self.committed(uri))
        self._channels[uri] = channel
        self._log.set_value(_OPENED + uri, b"%d" % self.head)
        self._log.snapshot(ChannelSnapshot(uri, self.head, data))
        self._uncommitted.append(_Change(self._log.queued, channel, state))

    def close(self, uri: str) -> None:
        """Forget a channel: no action is taken any more, and once that is durable nobody sees it."""
        channel = self._channels.pop(uri, None)
        if channel is not None:
            self._closing[uri] = channel
            self._log.set_value(_OPENED + uri, None)
            self._log.remove(uri)
            self._uncommitted.append(_Change(self._log.queued, channel, None))

    def apply(self, uri: str, action: JsonObject, origin: Origin | None = None) -> tuple[int, JsonObject, JsonObject]:
        """Reduce, number and log one action; returns its serverSeq and the states before and after it."""
        channel = self._channels[uri]
        before, seq, at = channel.state, self.head + 1, self._now()
        after = reduce(uri, before, action, now=at)
        payload = encode(envelope(uri, action, seq, origin))
        client_id, client_seq = (origin.client_id, origin.client_seq) if origin else (None, None)
        entry = Entry(seq, uri, payload, client_id, client_seq, at)
        self._log.append(entry)
        # From here on nothing can fail: an action that could not be reduced or encoded has changed nothing.
        self.head = seq
        channel.state = after
        self._uncommitted.append(_Change(self._log.queued, channel, after, entry, action))
        return seq, before, after

    def undo(self, entry: Entry) -> None:
        """The log could not take an entry: its channel goes on as if that action had never come."""
        changed = next((change.channel for change in self._uncommitted if change.entry is entry), None)
        if changed is None:
            return
        state = changed.committed or {}
        for change in self._uncommitted:
            if change.channel is not changed or change.state is None:
                continue
            if change.entry is not None and change.entry is not entry and change.action is not None:
                state = reduce(changed.uri, state, change.action, now=change.entry.at)
            elif change.entry is None:
                state = change.state
            change.state = state
        changed.state = state

    def checkpoint(self, uri: str) -> None:
        """Write the newest state, so that a restart need not replay what led to it."""
        channel = self._channels.get(uri)
        if channel is not None:
            self._log.snapshot(ChannelSnapshot(uri, self.head, encode(channel.state)))

    def commit(self, durable: int, entries: Sequence[Entry]) -> Turnover:
        """That many steps of the log are durable now, these entries the last of them."""
        if entries:
            self.committed_head = entries[-1].seq
        turnover = Turnover([], [])
        while self._uncommitted and self._uncommitted[0].steps <= durable:
            change = self._uncommitted.popleft()
            channel, state = change.channel, change.state
            if state is None:
                del self._closing[channel.uri]
                turnover.gone.append(channel.uri)
            elif channel.committed is None and self._channels.get(channel.uri) is channel:
                turnover.appeared.append(channel.uri)
            channel.committed = state
        return turnover

    @property
    def backlog(self) -> int:
        """How many changes wait to become durable."""
        return len(self._uncommitted)


def envelope(uri: str, action: JsonObject, seq: int, origin: Origin | None, rejection: str | None = None) -> JsonObject:
    """An ActionEnvelope: what is logged and what clients receive as the params of `action`."""
    made: JsonObject = {"channel": uri, "action": action, "serverSeq": seq}
    if origin is not None:
        made["origin"] = {"clientId": origin.client_id, "clientSeq": origin.client_seq}
    if rejection is not None:
        made["rejectionReason"] = rejection
    return made


__all__ = ["LogDoor", "Origin", "Store", "Turnover", "envelope"]
