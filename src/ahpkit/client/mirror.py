"""The client's copy of the host's states: confirmed, pending, optimistic. Pure: knows no connection, tasks or clock.

For every channel that is followed:

* `confirmed` is what the host said: its snapshot and every action after it, each once.
* `pending` are this client's own actions that the host has not answered.
* `optimistic` is confirmed with the pending actions applied on top. Without pending actions it *is* confirmed, so
  streamed text costs one reduction however it is read.

An own action is recognised by (clientId, clientSeq), not by its place in the queue, because a rejection can overtake an
acceptance. What a channel was sent while its snapshot or replay is on the way waits for that, so nothing is applied to
the wrong state and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ahpkit.client.dispatch import Accepted, Outcome, Rejected
from ahpkit.protocol.channels import channel_of
from ahpkit.protocol.common.state import JsonObject


@dataclass(frozen=True, slots=True)
class PendingAction:
    """An own action that the host has not answered."""

    client_seq: int
    action: JsonObject
    at: int
    """When it was dispatched, in milliseconds: replaying it gives the same state each time."""


@dataclass(frozen=True, slots=True)
class Applied:
    """An action became part of a confirmed state."""

    channel: str
    envelope: JsonObject


@dataclass(frozen=True, slots=True)
class Settled:
    """An own action was answered. Happens once for each."""

    channel: str
    client_seq: int
    outcome: Outcome


Change = Applied | Settled


class ChannelMirror:
    """One channel's states."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.confirmed: JsonObject | None = None
        """None before the snapshot, and always for a channel without state."""
        self.seq = 0
        """serverSeq of the last action that `confirmed` contains."""
        self.pending: dict[int, PendingAction] = {}
        self.joined = False
        """Whether the host's answer to a subscription was taken in, on this connection or an earlier one."""
        self.waiting: list[JsonObject] | None = []
        """Envelopes that came before the snapshot or replay they follow; None when nothing is awaited."""
        self._optimistic: JsonObject | None = None
        kind = channel_of(uri)
        self._reducer = kind.reducer if kind is not None else None

    @property
    def optimistic(self) -> JsonObject | None:
        if not self.pending or self.confirmed is None:
            return self.confirmed
        if self._optimistic is None:
            state = self.confirmed
            for pending in self.pending.values():
                state = self._reduce(state, pending.action, pending.at)
            self._optimistic = state
        return self._optimistic

    def reset(self, state: JsonObject | None, seq: int) -> None:
        self.confirmed, self.seq, self.joined = state, seq, True
        self._optimistic = None

    def apply(self, action: JsonObject, seq: int, now: int) -> None:
        if self.confirmed is not None:
            self.confirmed = self._reduce(self.confirmed, action, now)
        self.seq = seq
        self._optimistic = None

    def add(self, pending: PendingAction) -> None:
        state = self.optimistic
        self.pending[pending.client_seq] = pending
        self._optimistic = None if state is None else self._reduce(state, pending.action, pending.at)

    def drop(self, client_seq: int) -> bool:
        """Take a pending action away; False when it was not there."""
        if self.pending.pop(client_seq, None) is None:
            return False
        self._optimistic = None
        return True

    def _reduce(self, state: JsonObject, action: JsonObject, now: int) -> JsonObject:
        return state if self._reducer is None else self._reducer(state, action, now=now)


class Mirror:
    """All channels a client follows."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._channels: dict[str, ChannelMirror] = {}

    def __getitem__(self, uri: str) -> ChannelMirror:
        return self._channels[uri]

    def joined(self) -> list[str]:
        """The channels that have a state to come back to."""
        return [channel.uri for channel in self._channels.values() if channel.joined]

    def unanswered(self) -> list[tuple[str, PendingAction]]:
        """Every pending action with its channel, in the order of dispatch."""
        found = ((uri, pending) for uri, channel in self._channels.items() for pending in channel.pending.values())
        return sorted(found, key=lambda item: item[1].client_seq)

    def last_seen(self) -> int:
        """The lowest sequence number applied on any channel: replaying from there leaves no hole in any of them."""
        return min((channel.seq for channel in self._channels.values() if channel.joined), default=0)

    # What this side does.

    def follow(self, uri: str) -> ChannelMirror:
        """Have a place for the channel; envelopes wait until `snapshot` or `resume`."""
        return self._channels.setdefault(uri, ChannelMirror(uri))

    def forget(self, uri: str) -> list[int]:
        """Stop following; returns the clientSeq of the actions that nobody will answer now."""
        return list(self._channels.pop(uri).pending)

    def expect(self, uris: Iterable[str]) -> None:
        """A snapshot or replay of these channels was asked for: what comes in the meantime follows it."""
        for uri in uris:
            self._channels[uri].waiting = []

    def dispatch(self, uri: str, client_seq: int, action: JsonObject, *, now: int) -> None:
        """Show an own action's effect until the host answers."""
        self._channels[uri].add(PendingAction(client_seq, action, now))

    # What the host says.

    def snapshot(self, snapshot: Mapping[str, Any]) -> None:
        """The host's state of a channel takes the place of ours, whatever we had: the host may have lost its log."""
        self._channels[snapshot["resource"]].reset(snapshot["state"], snapshot["fromSeq"])

    def without_state(self, uri: str) -> None:
        """The host confirmed a subscription that has no snapshot: envelopes pass through."""
        self._channels[uri].reset(None, self._channels[uri].seq)

    def replay(self, envelopes: Iterable[JsonObject], *, now: int) -> Iterator[Change]:
        """What was missed, in order, one change at a time; what is known already is dropped."""
        for envelope in envelopes:
            channel = self._channels.get(envelope["channel"])
            if channel is not None and channel.joined:
                yield from self._take(channel, envelope, now)

    def resume(self, uri: str, *, now: int) -> Iterator[Change]:
        """The channel is complete up to here: take in what waited, one change at a time."""
        channel = self._channels[uri]
        waiting, channel.waiting = channel.waiting, None
        return self.replay(waiting or (), now=now)

    def envelope(self, envelope: JsonObject, *, now: int) -> list[Change]:
        """One live action. Envelopes of channels we left are ignored."""
        channel = self._channels.get(envelope["channel"])
        if channel is None:
            return []
        if channel.waiting is not None:
            channel.waiting.append(envelope)
            return []
        return self._take(channel, envelope, now)

    def _take(self, channel: ChannelMirror, envelope: JsonObject, now: int) -> list[Change]:
        reason: str | None = envelope.get("rejectionReason")
        if reason is not None:
            # Its serverSeq says nothing about this channel: actions before it may still be on the way.
            return self._settle(channel, envelope, Rejected(reason))
        seq: int = envelope["serverSeq"]
        changes: list[Change] = []
        if seq > channel.seq:
            channel.apply(envelope["action"], seq, now)
            changes.append(Applied(channel.uri, envelope))
        return changes + self._settle(channel, envelope, Accepted(seq))

    def _settle(self, channel: ChannelMirror, envelope: JsonObject, outcome: Outcome) -> list[Change]:
        origin: JsonObject | None = envelope.get("origin")
        if origin is None or origin["clientId"] != self._client_id or not channel.drop(origin["clientSeq"]):
            return []
        return [Settled(channel.uri, origin["clientSeq"], outcome)]


__all__ = ["Applied", "Change", "ChannelMirror", "Mirror", "PendingAction", "Settled"]
