"""Keeps the subscribers of each channel, and writes each committed batch to them.

Connections that get the same bytes share them: a batch is translated once for each protocol version and framed once for
each kind of framing, then joined into one buffer per subscriber. So a delivery to one subscriber costs one write.

A long action is not framed here: each receiver writes it piece by piece, from bytes that all of them share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, Protocol

from ahpkit.dialects.base import MustReconnect
from ahpkit.log.entry import Entry
from ahpkit.wire.pieces import PIECE

_LONG = 4 * PIECE
"""An action whose envelope has at least this many bytes is written piece by piece. Framing it and writing it to many
receivers in one step would block all others."""

_PREFIX = b'{"jsonrpc":"2.0","method":"action","params":'
_SUFFIX = b"}"


class Sameness(NamedTuple):
    """Receivers with an equal `Sameness` get equal bytes."""

    framing: str
    stream: str


class Receiver(Protocol):
    """A connection, as the fan-out sees it: actions are written to it."""

    sameness: Sameness
    channels: set[str]
    """The channels that it is subscribed to; the fan-out maintains this set."""
    parts: list[bytes]
    """Frames of the batch that is being delivered."""

    def is_same(self, action_type: str) -> bool:
        """Whether this receiver gets all actions of a type as they are logged."""
        ...

    def project(self, entry: Entry) -> bytes | None:
        """The envelope of an action in the form for this receiver; None: this receiver does not get the action. Raises
        `MustReconnect`."""
        ...

    def form(self, action_type: str) -> str | None:
        """The name of the form in which this receiver gets all actions of a type; None: it depends on the action."""
        ...

    def frame(self, message: bytes) -> bytes: ...

    def write(self, frames: bytes) -> None: ...

    def write_long(self, envelope: bytes) -> None:
        """Write a long action over several steps of the event loop. Later writes wait until it is written."""
        ...

    def resync(self) -> None:
        """End the connection: an action cannot be expressed in its protocol version."""
        ...

    latencies: dict[str, float]
    """Channel → the seconds for which its actions may be held back for this receiver. Actions of other channels are not
    held back."""
    due: float
    """The seconds for which the frames in `parts` may be held back."""

    def hold_back(self, frames: bytes) -> None:
        """Keep frames until the next `write` or `flush`."""
        ...

    def flush(self) -> None:
        """Write the frames that were held back."""
        ...


class Fanout:
    """Subscriptions of all clients by channel."""

    def __init__(self) -> None:
        self.deliveries = 0
        """Batches that were written to connections."""
        self._subscribers: dict[str, dict[Receiver, None]] = {}
        """Channel → its subscribers, in the order in which they subscribed."""
        self._late: dict[float, set[Receiver]] = {}
        """Latency → the receivers for which frames are held back."""

    def subscribe(self, uri: str, receiver: Receiver) -> None:
        self._subscribers.setdefault(uri, {})[receiver] = None
        receiver.channels.add(uri)

    def unsubscribe(self, uri: str, receiver: Receiver) -> None:
        receiver.channels.discard(uri)
        receiver.latencies.pop(uri, None)
        subscribers = self._subscribers.get(uri)
        if subscribers is not None:
            subscribers.pop(receiver, None)
            if not subscribers:
                del self._subscribers[uri]

    def close(self, uri: str) -> None:
        """Forget a channel that is gone."""
        for receiver in self._subscribers.pop(uri, ()):
            receiver.channels.discard(uri)
            receiver.latencies.pop(uri, None)

    def has_subscribers(self, uri: str) -> bool:
        return uri in self._subscribers

    def subscribers(self, uri: str) -> Sequence[Receiver]:
        return tuple(self._subscribers.get(uri, ()))

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Send a committed batch: every subscriber gets its channels' actions in order, in one write. Each long action
        is written by itself."""
        start = 0
        for at, entry in enumerate(entries):
            if len(entry.payload) >= _LONG:
                self._deliver_short(entries[start:at])
                self._deliver_long(entry)
                start = at + 1
        self._deliver_short(entries[start:] if start else entries)

    def _deliver_long(self, entry: Entry) -> None:
        made: dict[Sameness, list[bytes] | None] = {}
        for receiver in self.subscribers(entry.channel):
            if receiver.sameness not in made:
                made[receiver.sameness] = _bodies(receiver, [entry])
            bodies = made[receiver.sameness]
            if bodies is None:
                receiver.resync()
            for body in bodies or ():
                self.deliveries += 1
                receiver.write_long(body)

    def _deliver_short(self, entries: Sequence[Entry]) -> None:
        touched: dict[Receiver, None] = {}
        for uri, run in groupby(entries, key=_channel):
            subscribers = self._subscribers.get(uri)
            if subscribers:
                _add_run(uri, list(run), subscribers)
                touched.update(subscribers)
        self.deliveries += len(touched)
        for receiver in touched:
            parts, receiver.parts = receiver.parts, []
            if frames := parts[0] if len(parts) == 1 else b"".join(parts):
                if receiver.latencies:
                    self._write_late(receiver, frames)
                else:
                    receiver.write(frames)

    def _write_late(self, receiver: Receiver, frames: bytes) -> None:
        """Write to a receiver that allows delays: at once if the batch is urgent, otherwise when the delay is over."""
        due, receiver.due = receiver.due, LATENCIES[-1]
        if due <= 0:
            receiver.write(frames)
            return
        receiver.hold_back(frames)
        if due not in self._late:
            self._late[due] = set()
            asyncio.get_running_loop().call_later(due, self._flush, due)
        self._late[due].add(receiver)

    def _flush(self, due: float) -> None:
        for receiver in self._late.pop(due):
            receiver.flush()


LATENCIES = (0.0, 0.05, 0.25, 1.0)
"""The possible delays in seconds. All receivers with the same delay are written to at the same time."""

_URGENT = frozenset(
    {"chat/turnComplete", "chat/turnCancelled", "chat/error", "chat/inputRequested", "chat/toolCallReady"}
)
"""Actions that somebody waits for. A batch with one of them is written at once."""


def latency_class(milliseconds: float) -> float:
    """The longest possible delay (in seconds) that is not longer than what a client allows."""
    return max(seconds for seconds in LATENCIES if seconds * 1000 <= max(0, milliseconds))


def _add_run(uri: str, entries: list[Entry], subscribers: Collection[Receiver]) -> None:
    """Add the frames of one channel's actions to `parts` of each subscriber."""
    run = _Run(entries)
    for receiver in subscribers:
        buffer = run.make(receiver) if len(subscribers) == 1 else run.frames(receiver)
        if buffer is None:
            receiver.resync()
        else:
            receiver.parts.append(buffer)
            if receiver.latencies:
                receiver.due = min(receiver.due, 0.0 if run.is_urgent else receiver.latencies.get(uri, 0.0))


class _Run:
    """Actions of one channel that follow each other in a batch.

    Most actions have the same bytes in all versions of the protocol. Receivers that get the same bytes share one
    buffer, so the actions are encoded once for each distinct form, not once for each version.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._known: dict[Sameness, bytes | None] = {}
        self._types = set(map(_type, entries))
        self._formed: dict[tuple[str, ...], bytes | None] = {}
        """Frames by framing and by the form of each type of action. Nine versions have at most three forms, so for most
        versions the frames are found here and no action is translated."""
        self._made: dict[tuple[str, int | tuple[int, ...]], tuple[bytes, list[bytes]]] = {}
        """Frames by framing and ids of the bodies. The bodies are kept alive here, so that their ids are not used
        again."""

    @property
    def is_urgent(self) -> bool:
        """Whether somebody waits for one of these actions."""
        return any(entry.type in _URGENT for entry in self._entries)

    def frames(self, receiver: Receiver) -> bytes | None:
        """The actions in the form for receivers like this one; None when one of them cannot be expressed in that
        form."""
        sameness = receiver.sameness
        if sameness in self._known:
            return self._known[sameness]
        made = self._known[sameness] = self._find(receiver)
        return made

    def _find(self, receiver: Receiver) -> bytes | None:
        forms = [form for kind in self._types if (form := receiver.form(kind)) is not None]
        if len(forms) < len(self._types):
            return self.make(receiver)
        key = receiver.sameness.framing, *forms
        if key not in self._formed:
            self._formed[key] = self.make(receiver)
        return self._formed[key]

    def make(self, receiver: Receiver) -> bytes | None:
        """Like `frames`, for the only receiver, or the first one in its form: nothing is looked up."""
        bodies = _bodies(receiver, self._entries)
        if bodies is None:
            return None
        key = receiver.sameness.framing, id(bodies[0]) if len(bodies) == 1 else tuple(map(id, bodies))
        made = self._made.get(key)
        if made is None:
            frame = receiver.frame
            made = self._made[key] = b"".join([frame(action_message(body)) for body in bodies]), bodies
        return made[0]


def _bodies(receiver: Receiver, entries: Sequence[Entry]) -> list[bytes] | None:
    """The envelopes of these actions in the form for a receiver; None when one of them cannot be expressed in that
    form."""
    try:
        if len(entries) == 1:
            body = receiver.project(entries[0])
            return [] if body is None else [body]
        same = {kind for kind in set(map(_type, entries)) if receiver.is_same(kind)}
        bodies = (entry.payload if entry.type in same else receiver.project(entry) for entry in entries)
        return [body for body in bodies if body is not None]
    except MustReconnect:
        return None


def action_message(envelope: bytes) -> bytes:
    """The notification that carries an action."""
    return b"".join((_PREFIX, envelope, _SUFFIX))


def action_pieces(envelope: bytes) -> Iterator[bytes]:
    """The notification that carries an action, in pieces."""
    yield _PREFIX
    for start in range(0, len(envelope), PIECE):
        yield envelope[start : start + PIECE]
    yield _SUFFIX


_channel: Callable[[Entry], str] = attrgetter("channel")
_type: Callable[[Entry], str] = attrgetter("type")


__all__ = ["LATENCIES", "Fanout", "Receiver", "Sameness", "action_message", "action_pieces", "latency_class"]
