"""The client's copy of the host's states: confirmed, pending, optimistic; and plain JSON of it for users. Pure.

All states and actions here are those of AHP 1.0.0: the host's dialect translates from the version that the host speaks.

For every channel that is followed:

* `confirmed`: the host's snapshot with every later action applied to it once.
* `pending`: this client's own actions that the host has not answered.
* `optimistic`: confirmed with the pending actions applied on top. Without pending actions it *is* confirmed, so
  streamed text is reduced only once.

An own action is recognised by (clientId, clientSeq), not by its place in the queue, because a rejection can overtake an
acceptance. Actions that arrive while a snapshot or replay of their channel is on the way wait for it, so nothing is
applied to the wrong state and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ahpkit.client.dispatch import Accepted, Outcome, Rejected
from ahpkit.dialects.generations import NEWEST
from ahpkit.dialects.older_host import HostActions, HostContext, HostDialect
from ahpkit.protocol.channels import CHANNELS, channel_of
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.rope import Rope
from ahpkit.protocol.session.summary import current_session

_NEWEST = HostDialect(NEWEST.release, NEWEST)

_ANNOTATIONS = "/annotations"
"""The end of the URI of a session's annotations."""


@dataclass(frozen=True, slots=True)
class PendingAction:
    """An own action that the host has not answered."""

    client_seq: int
    action: JsonObject


@dataclass(frozen=True, slots=True)
class Applied:
    """An action became part of a confirmed state."""

    channel: str
    envelope: JsonObject


@dataclass(frozen=True, slots=True)
class ActionSettled:
    """An own action was answered. This happens once for each action."""

    channel: str
    client_seq: int
    outcome: Outcome


Change = Applied | ActionSettled


class ChannelMirror:
    """The states of one channel. `kind` is needed where the URI does not tell the kind."""

    def __init__(self, uri: str, kind: str | None) -> None:
        self.uri = uri
        found = channel_of(uri) if kind is None else CHANNELS[kind]
        self.kind = None if found is None else found.name
        self.confirmed: JsonObject | None = None
        """None before the snapshot, and always for a channel without state."""
        self.seq = 0
        """serverSeq of the last action that `confirmed` contains."""
        self.pending: dict[int, PendingAction] = {}
        self.joined = False
        """Whether the host has answered a subscription to this channel, on this connection or an earlier one."""
        self.waiting: list[JsonObject] | None = []
        """Envelopes that arrived before the snapshot or replay that they follow; None if none is awaited."""
        self._optimistic: JsonObject | None = None
        self._reducer = None if found is None else found.reducer

    @property
    def optimistic(self) -> JsonObject | None:
        if not self.pending or self.confirmed is None:
            return self.confirmed
        if self._optimistic is None:
            state = self.confirmed
            for pending in self.pending.values():
                state = self._reduce(state, pending.action)
            self._optimistic = state
        return self._optimistic

    def reset(self, state: JsonObject | None, seq: int) -> None:
        self.confirmed, self.seq, self.joined = state, seq, True
        self._optimistic = None

    def apply(self, action: JsonObject, seq: int) -> None:
        if self.confirmed is not None:
            self.confirmed = self._reduce(self.confirmed, action)
        self.seq = seq
        self._optimistic = None

    def add(self, pending: PendingAction) -> None:
        state = self.optimistic
        self.pending[pending.client_seq] = pending
        self._optimistic = None if state is None else self._reduce(state, pending.action)

    def drop(self, client_seq: int) -> bool:
        """Remove a pending action; returns False if there was none."""
        if self.pending.pop(client_seq, None) is None:
            return False
        self._optimistic = None
        return True

    def _reduce(self, state: JsonObject, action: JsonObject) -> JsonObject:
        return state if self._reducer is None else self._reducer(state, action)


class Mirror:
    """All channels a client follows."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._channels: dict[str, ChannelMirror] = {}
        self.dialect = _NEWEST
        """Translates between the host's version and 1.0.0."""

    def __getitem__(self, uri: str) -> ChannelMirror:
        return self._channels[uri]

    def joined(self) -> list[str]:
        """The channels that have a state, so that a reconnect can continue them."""
        return [channel.uri for channel in self._with_states()]

    def unanswered(self) -> list[tuple[str, PendingAction]]:
        """Every pending action with its channel, in the order of dispatch."""
        found = ((uri, pending) for uri, channel in self._channels.items() for pending in channel.pending.values())
        return sorted(found, key=lambda item: item[1].client_seq)

    def last_seen(self) -> int:
        """The lowest sequence number applied on any channel: replaying from there leaves no hole in any of them."""
        return min((channel.seq for channel in self._with_states()), default=0)

    def highest_seen(self) -> int:
        """The highest sequence number applied on any channel."""
        return max((channel.seq for channel in self._with_states()), default=0)

    def _with_states(self) -> Iterator[ChannelMirror]:
        """The channels with a state. The others have nothing to replay, so they are subscribed to again."""
        return (channel for channel in self._channels.values() if channel.joined and channel.confirmed is not None)

    # Changes by this client.

    def follow(self, uri: str, kind: str | None = None) -> ChannelMirror:
        """Begin to follow a channel. Its envelopes wait until `snapshot` or `resume` is called."""
        if uri not in self._channels:
            self._channels[uri] = ChannelMirror(uri, kind or ("chat" if self._is_chat(uri) else None))
        return self._channels[uri]

    def _is_chat(self, uri: str) -> bool:
        """Whether a session that is followed has a chat with this URI."""
        return self.session_of(uri) is not None and not uri.endswith(_ANNOTATIONS)

    def session_of(self, uri: str) -> str | None:
        """The followed session that a chat or an annotations channel belongs to; None when there is none."""
        if uri.endswith(_ANNOTATIONS):
            return uri.removesuffix(_ANNOTATIONS)
        for channel in self._channels.values():
            if channel.kind == "session" and channel.confirmed is not None:
                chats: list[JsonObject] = channel.confirmed["chats"]
                if any(chat["resource"] == uri for chat in chats):
                    return channel.uri
        return None

    def _context(self, uri: str, now: int) -> HostContext:
        return HostContext(uri, now, self._state_of, self.session_of)

    def _state_of(self, uri: str) -> JsonObject | None:
        channel = self._channels.get(uri)
        return None if channel is None else channel.confirmed

    def forget(self, uri: str) -> list[int]:
        """Stop following a channel; returns the clientSeq of its actions that will stay unanswered."""
        return list(self._channels.pop(uri).pending)

    def expect(self, uris: Iterable[str]) -> None:
        """A snapshot or replay of these channels was requested: actions that arrive meanwhile wait for it."""
        for uri in uris:
            self._channels[uri].waiting = []

    def dispatch(self, uri: str, client_seq: int, action: JsonObject) -> None:
        """Show an own action's effect until the host answers."""
        self._channels[uri].add(PendingAction(client_seq, action))

    def written(self, uri: str, action: JsonObject, *, now: int) -> HostActions:
        """Translate an own action to the host's version; raises `LocalProtocolError` if that version cannot express
        it."""
        return self.dialect.write_action(action, self._context(uri, now))

    def refuse(self, uri: str, client_seq: int, reason: str) -> list[Change]:
        """Take back an own action that was never sent."""
        self._channels[uri].drop(client_seq)
        return [ActionSettled(uri, client_seq, Rejected(reason))]

    # Messages of the host.

    def snapshot(self, snapshot: Mapping[str, Any]) -> None:
        """Replace the state of a channel by the host's, even by an older one, because the host may have lost its
        log."""
        channel = self._channels[snapshot["resource"]]
        sent: Any = snapshot["state"]
        if not isinstance(sent, dict):
            raise TypeError("the state is not an object")
        state = self.dialect.state(channel.kind, cast("JsonObject", sent), self._context(channel.uri, 0))
        channel.reset(state, snapshot["fromSeq"])

    def doubt(self, uri: str) -> None:
        """The state may be wrong: from now on its envelopes wait for a new snapshot."""
        channel = self._channels[uri]
        channel.joined, channel.waiting = False, []

    def without_state(self, uri: str) -> None:
        """The host confirmed a subscription without a snapshot: from now on its envelopes are passed to listeners."""
        self._channels[uri].reset(None, self._channels[uri].seq)

    def replay(self, envelopes: Iterable[JsonObject], *, now: int) -> Iterator[Change]:
        """Apply missed envelopes in order, one change at a time. Envelopes that were applied before are dropped."""
        for envelope in envelopes:
            channel = self._channels.get(envelope["channel"])
            if channel is not None and channel.joined:
                yield from self._take(channel, envelope, now)

    def resume(self, uri: str, *, now: int) -> Iterator[Change]:
        """The snapshot or replay was applied: now apply the envelopes that waited for it, one change at a time."""
        channel = self._channels[uri]
        waiting, channel.waiting = channel.waiting, None
        return self.replay(waiting or (), now=now)

    def envelope(self, envelope: JsonObject, *, now: int) -> list[Change]:
        """Handle one live action. Envelopes of channels that this client has left are ignored."""
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
            # `seq` is not advanced: actions with lower numbers may still arrive on this channel.
            return self._settle(channel, envelope, Rejected(reason))
        seq: int = envelope["serverSeq"]
        changes: list[Change] = []
        if seq > channel.seq:
            for action in self.dialect.actions(envelope["action"], self._context(channel.uri, now)):
                channel.apply(action, seq)
                changes.append(Applied(channel.uri, {**envelope, "action": action}))
        return changes + self._settle(channel, envelope, Accepted(seq))

    def _settle(self, channel: ChannelMirror, envelope: JsonObject, outcome: Outcome) -> list[Change]:
        origin: JsonObject | None = envelope.get("origin")
        if origin is None or origin["clientId"] != self._client_id or not channel.drop(origin["clientSeq"]):
            return []
        return [ActionSettled(channel.uri, origin["clientSeq"], outcome)]


_NOTHING: Any = object()


class PlainStates:
    """Turns the states of one channel into plain JSON. Parts that did not change since the last call are reused.

    While text streams, the reducers keep it in ropes (`ahpkit.protocol.rope`), so that a delta costs the same however
    long the text is. A rope is not a `str`, so it is converted here, when somebody reads the state. Following events
    costs nothing extra.
    """

    def __init__(self) -> None:
        self._last: Any = None
        self._plain: Any = None
        self._shown: Any = None

    def of(self, state: Any) -> Any:
        """The state with strings in place of ropes; the same object if it has no ropes.

        A session's status and activity are those of its chats.
        """
        if state is not self._last or self._shown is None:
            self._plain = plain(state, self._last, self._plain)
            self._last = state
            self._shown = current_session(self._plain) if _is_session(self._plain) else self._plain
        return self._shown


def _is_session(state: Any) -> bool:
    return isinstance(state, dict) and "chats" in state and "lifecycle" in state


def plain(value: Any, before: Any = _NOTHING, before_plain: Any = None) -> Any:
    """`value` with strings for ropes. Parts that are also in `before` are taken from its plain form."""
    if value is before:
        return before_plain
    if isinstance(value, Rope):
        return str(value)
    if type(value) is dict:
        return _plain_object(cast("dict[str, Any]", value), before, before_plain)
    if type(value) is list:
        return _plain_list(cast("list[Any]", value), before, before_plain)
    return value


def _plain_object(value: dict[str, Any], before: Any, before_plain: Any) -> dict[str, Any]:
    old = cast("dict[str, Any]", before if type(before) is dict else {})
    old_plain = cast("dict[str, Any]", before_plain if type(before_plain) is dict else {})
    made = {key: plain(item, old.get(key, _NOTHING), old_plain.get(key)) for key, item in value.items()}
    return value if all(made[key] is item for key, item in value.items()) else made


def _plain_list(value: list[Any], before: Any, before_plain: Any) -> list[Any]:
    old = cast("list[Any]", before if type(before) is list else [])
    old_plain = cast("list[Any]", before_plain if type(before_plain) is list else [])
    known = len(old)
    made = [
        plain(item, old[index], old_plain[index]) if index < known else plain(item) for index, item in enumerate(value)
    ]
    return value if all(new is item for new, item in zip(made, value, strict=True)) else made


__all__ = ["ActionSettled", "Applied", "Change", "ChannelMirror", "Mirror", "PendingAction", "PlainStates", "plain"]
