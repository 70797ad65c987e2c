"""Who receives which channel, and writing one committed batch to all of them. Knows no methods, states or policy.

A batch is framed once per kind of framing and joined into one buffer per subscriber, so that the cost of a delivery is
one write. A reader that stops loses its connection, never our memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from ahpkit.log.entry import Entry
from ahpkit.wire.transport import Transport

_PREFIX = b'{"jsonrpc":"2.0","method":"action","params":'
_SUFFIX = b"}"


class Outbox:
    """The way out to one client: ordered, never waiting, bounded in bytes.

    A client may leave `budget` bytes unread, and the largest thing that is on its way to it: a snapshot can be larger
    than the budget, and must arrive however long it takes.
    """

    __slots__ = ("_budget", "_held", "_largest", "_on_lagging", "channels", "lagging", "parts", "transport")

    def __init__(self, transport: Transport, *, budget: int, on_lagging: Callable[[], None]) -> None:
        self.transport = transport
        self._budget = budget
        self._largest = 0
        """Bytes of the largest write since the client was last within its budget."""
        self._on_lagging = on_lagging
        self.channels: set[str] = set()
        self.parts: list[bytes] = []
        self.lagging = False
        self._held: list[bytes] | None = None

    def hold(self) -> None:
        """Keep everything back until `reply`: an answer in the making must come first."""
        self._held = []

    def release(self, message: bytes) -> None:
        """Write the answer that everything was kept back for, then all that."""
        held, self._held = self._held or [], None
        self.write(b"".join([self.transport.frame(message), *held]))

    def send(self, message: bytes) -> None:
        """Frame and write one message."""
        self.write(self.transport.frame(message))

    def write(self, frames: bytes) -> None:
        if self.lagging:
            return
        if self._held is not None:
            self._held.append(frames)
            return
        self.transport.write(frames)
        unread = self.transport.buffered
        if unread <= self._budget:
            self._largest = 0
            return
        self._largest = max(self._largest, len(frames))
        if unread > self._budget + self._largest:
            self.lagging = True
            self.transport.abort()
            self._on_lagging()


class Fanout:
    """Subscriptions of all clients by channel."""

    def __init__(self) -> None:
        self._subscribers: dict[str, set[Outbox]] = {}

    def subscribe(self, uri: str, outbox: Outbox) -> None:
        self._subscribers.setdefault(uri, set()).add(outbox)
        outbox.channels.add(uri)

    def unsubscribe(self, uri: str, outbox: Outbox) -> None:
        outbox.channels.discard(uri)
        subscribers = self._subscribers.get(uri)
        if subscribers is not None:
            subscribers.discard(outbox)
            if not subscribers:
                del self._subscribers[uri]

    def close(self, uri: str) -> None:
        """Forget a channel that is gone."""
        for outbox in self._subscribers.pop(uri, ()):
            outbox.channels.discard(uri)

    def has_subscribers(self, uri: str) -> bool:
        return uri in self._subscribers

    def subscribers(self, uri: str) -> Iterable[Outbox]:
        return tuple(self._subscribers.get(uri, ()))

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Send a committed batch: every subscriber gets its channels' actions in order, in one write."""
        touched: set[Outbox] = set()
        for uri, run in groupby(entries, key=_channel):
            subscribers = self._subscribers.get(uri)
            if subscribers:
                self._add_run([b"%b%b%b" % (_PREFIX, entry.payload, _SUFFIX) for entry in run], subscribers)
                touched |= subscribers
        for outbox in touched:
            parts, outbox.parts = outbox.parts, []
            outbox.write(parts[0] if len(parts) == 1 else b"".join(parts))

    @staticmethod
    def _add_run(messages: list[bytes], subscribers: set[Outbox]) -> None:
        framed: dict[str, bytes] = {}
        for outbox in subscribers:
            kind = outbox.transport.framing
            buffer = framed.get(kind)
            if buffer is None:
                buffer = framed[kind] = b"".join(map(outbox.transport.frame, messages))
            outbox.parts.append(buffer)


def _channel(entry: Entry) -> str:
    return entry.channel


__all__ = ["Fanout", "Outbox"]
