"""Who receives which channel, and writing one committed batch to all of them.

Connections that get the same bytes share them: a batch is projected once per stream and framed once per kind of
framing, then joined into one buffer per subscriber. So the cost of a delivery is one write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from ahpkit.dialects.base import Resync
from ahpkit.log.entry import Entry

_PREFIX = b'{"jsonrpc":"2.0","method":"action","params":'
_SUFFIX = b"}"


class Sameness(NamedTuple):
    """Receivers that are equal in this get equal bytes."""

    framing: str
    stream: str


class Receiver(Protocol):
    """The end of a connection that actions are written to."""

    sameness: Sameness
    channels: set[str]
    """What it is subscribed to; kept by the fan-out."""
    parts: list[bytes]
    """Frames of the batch that is being delivered."""

    def project(self, entry: Entry) -> bytes | None:
        """The envelope of an action as this receiver gets it; None: not at all. Raises `Resync`."""
        ...

    def frame(self, message: bytes) -> bytes: ...

    def write(self, frames: bytes) -> None: ...

    def resync(self) -> None:
        """End the connection: an action cannot be expressed in what it speaks."""
        ...


class Fanout:
    """Subscriptions of all clients by channel."""

    def __init__(self) -> None:
        self._subscribers: dict[str, set[Receiver]] = {}

    def subscribe(self, uri: str, receiver: Receiver) -> None:
        self._subscribers.setdefault(uri, set()).add(receiver)
        receiver.channels.add(uri)

    def unsubscribe(self, uri: str, receiver: Receiver) -> None:
        receiver.channels.discard(uri)
        subscribers = self._subscribers.get(uri)
        if subscribers is not None:
            subscribers.discard(receiver)
            if not subscribers:
                del self._subscribers[uri]

    def close(self, uri: str) -> None:
        """Forget a channel that is gone."""
        for receiver in self._subscribers.pop(uri, ()):
            receiver.channels.discard(uri)

    def has_subscribers(self, uri: str) -> bool:
        return uri in self._subscribers

    def subscribers(self, uri: str) -> Iterable[Receiver]:
        return tuple(self._subscribers.get(uri, ()))

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Send a committed batch: every subscriber gets its channels' actions in order, in one write."""
        touched: set[Receiver] = set()
        for uri, run in groupby(entries, key=_channel):
            subscribers = self._subscribers.get(uri)
            if subscribers:
                _add_run(list(run), subscribers)
                touched |= subscribers
        for receiver in touched:
            parts, receiver.parts = receiver.parts, []
            if frames := parts[0] if len(parts) == 1 else b"".join(parts):
                receiver.write(frames)


def _add_run(entries: list[Entry], subscribers: set[Receiver]) -> None:
    """Add the actions of one channel to what each subscriber is about to get."""
    made: dict[Sameness, bytes | None] = {}
    for receiver in subscribers:
        sameness = receiver.sameness
        if sameness not in made:
            made[sameness] = _frames(entries, receiver)
        buffer = made[sameness]
        if buffer is None:
            receiver.resync()
        else:
            receiver.parts.append(buffer)


def _frames(entries: list[Entry], receiver: Receiver) -> bytes | None:
    """The actions for everyone who is like this receiver; None when one of them cannot be expressed."""
    try:
        told = [body for entry in entries if (body := receiver.project(entry)) is not None]
    except Resync:
        return None
    return b"".join(_framed(told, receiver.frame))


def _framed(envelopes: Iterable[bytes], frame: Callable[[bytes], bytes]) -> Iterable[bytes]:
    return (frame(b"%b%b%b" % (_PREFIX, envelope, _SUFFIX)) for envelope in envelopes)


def _channel(entry: Entry) -> str:
    return entry.channel


__all__ = ["Fanout", "Receiver", "Sameness"]
