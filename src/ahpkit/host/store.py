"""States and the sequence: reduces an action, numbers it, hands it to the log. Knows no clients, sockets or agents.

Two views of each channel are kept. `state()` is the newest: what the next action is reduced on. `committed()` is what
is durable: the only thing a reader ever sees, so that nothing shown can be lost. States are immutable, so keeping both
costs a reference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery
from ahpkit.protocol.channels import reduce
from ahpkit.protocol.codec import decode_json, encode
from ahpkit.protocol.common.state import JsonObject

_SNAPSHOT_BYTES = 256 * 1024
"""A channel is written anew once its tail in the log exceeds this and its last snapshot: restarts stay short."""

_OPENED = "opened/"
"""Key of the durable value that says where in the sequence a channel began."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The client that dispatched an action, and that client's number for it."""

    client_id: str
    client_seq: int


class LogDoor(Protocol):
    """What the store needs of the log."""

    def append(self, entry: Entry) -> None: ...

    def snapshot(self, snapshot: ChannelSnapshot) -> None: ...

    def remove(self, channel: str) -> None: ...

    def set_value(self, key: str, data: bytes | None) -> None: ...


@dataclass(slots=True)
class _Tail:
    """How much of a channel's history a restart would have to replay."""

    bytes: int = 0
    threshold: int = _SNAPSHOT_BYTES


class Store:
    """All channel states of a host, and the one counter that orders their actions."""

    def __init__(self, log: LogDoor, *, now: Callable[[], int]) -> None:
        self._log = log
        self._now = now
        self._states: dict[str, JsonObject] = {}
        self._committed: dict[str, JsonObject] = {}
        self._uncommitted: deque[tuple[int, str, JsonObject | None]] = deque()
        self._tails: dict[str, _Tail] = {}
        self._opened: dict[str, int] = {}
        self.head = 0
        """serverSeq of the newest action."""
        self.committed_head = 0
        """serverSeq up to which everything is durable."""

    def restore(self, recovery: Recovery) -> None:
        """Rebuild the states: each channel's snapshot, then the actions after it."""
        for channel, snapshot in recovery.snapshots.items():
            self._states[channel] = decode_json(snapshot.state)
            self._tails[channel] = _Tail(threshold=max(_SNAPSHOT_BYTES, len(snapshot.state)))
        for channel in self._states:
            self._opened[channel] = int(recovery.values.get(_OPENED + channel, b"0"))
        for entry in recovery.tail:
            state = self._states.get(entry.channel)
            if state is not None:
                action = decode_json(entry.payload)["action"]
                self._states[entry.channel] = reduce(entry.channel, state, action, now=entry.at)
                self._tails[entry.channel].bytes += len(entry.payload)
        self._committed = dict(self._states)
        self.head = self.committed_head = recovery.head_seq

    def state(self, uri: str) -> JsonObject | None:
        """The newest state, committed or not."""
        return self._states.get(uri)

    def committed(self, uri: str) -> JsonObject | None:
        """The durable state: what subscribers have been or will be shown at `committed_head`."""
        return self._committed.get(uri)

    def opened_at(self, uri: str) -> int:
        """serverSeq after which the channel's state can be rebuilt from actions alone."""
        return self._opened.get(uri, 0)

    def channels(self) -> list[str]:
        return list(self._states)

    def open(self, uri: str, state: JsonObject) -> None:
        """Create a channel, or give an existing one a new beginning, at the present place in the sequence."""
        self._states[uri] = state
        self._opened[uri] = self.head
        self._log.set_value(_OPENED + uri, b"%d" % self.head)
        self._write_snapshot(uri, state)
        self._uncommitted.append((self.head, uri, state))
        self._settle()

    def close(self, uri: str) -> None:
        """Forget a channel."""
        self._states.pop(uri, None)
        self._tails.pop(uri, None)
        self._opened.pop(uri, None)
        self._log.set_value(_OPENED + uri, None)
        self._log.remove(uri)
        self._uncommitted.append((self.head, uri, None))
        self._settle()

    def apply(self, uri: str, action: JsonObject, origin: Origin | None = None) -> tuple[int, JsonObject, JsonObject]:
        """Reduce, number and log one action; returns its serverSeq and the states before and after it."""
        before = self._states[uri]
        at = self._now()
        after = reduce(uri, before, action, now=at)
        self.head += 1
        self._states[uri] = after
        payload = encode(envelope(uri, action, self.head, origin))
        client_id, client_seq = (origin.client_id, origin.client_seq) if origin else (None, None)
        self._log.append(Entry(self.head, uri, payload, client_id, client_seq, at))
        self._uncommitted.append((self.head, uri, after))
        self._grow_tail(uri, len(payload), after)
        return self.head, before, after

    def commit(self, seq: int) -> None:
        """Everything up to `seq` is durable now."""
        self.committed_head = max(self.committed_head, seq)
        self._settle()

    @property
    def backlog(self) -> int:
        """How many changes wait to become durable."""
        return len(self._uncommitted)

    def _settle(self) -> None:
        while self._uncommitted and self._uncommitted[0][0] <= self.committed_head:
            _, uri, state = self._uncommitted.popleft()
            if state is None:
                self._committed.pop(uri, None)
            else:
                self._committed[uri] = state

    def _grow_tail(self, uri: str, size: int, state: JsonObject) -> None:
        tail = self._tails[uri]
        tail.bytes += size
        if tail.bytes > tail.threshold:
            self._write_snapshot(uri, state)

    def _write_snapshot(self, uri: str, state: JsonObject) -> None:
        data = encode(state)
        self._tails[uri] = _Tail(threshold=max(_SNAPSHOT_BYTES, len(data)))
        self._log.snapshot(ChannelSnapshot(uri, self.head, data))


def envelope(uri: str, action: JsonObject, seq: int, origin: Origin | None, rejection: str | None = None) -> JsonObject:
    """An ActionEnvelope: what is logged and what clients receive as the params of `action`."""
    made: JsonObject = {"channel": uri, "action": action, "serverSeq": seq}
    if origin is not None:
        made["origin"] = {"clientId": origin.client_id, "clientSeq": origin.client_seq}
    if rejection is not None:
        made["rejectionReason"] = rejection
    return made


__all__ = ["LogDoor", "Origin", "Store", "envelope"]
