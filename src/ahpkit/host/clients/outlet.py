"""The one way out to a client: actions, echoes, rejections, snapshots, replays, notifications, requests and answers.

Everything passes the connection's dialect here, so nothing behind it needs to know which protocol version a client
speaks. Ordered, never waiting, bounded in bytes: a reader that stops loses its connection, never our memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Raw

from ahpkit.dialects.base import Dialect, Resync
from ahpkit.host.limits import MAX_REASON
from ahpkit.host.spine.fanout import Sameness
from ahpkit.host.spine.store import Origin, envelope
from ahpkit.log.entry import Entry
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import RequestId, RpcError
from ahpkit.wire.codec import decode_json
from ahpkit.wire.peer import Peer
from ahpkit.wire.transport import Transport


class Outlet:
    """The way out to one client. Implements `ahpkit.host.spine.fanout.Receiver`.

    A client may leave `budget` bytes unread, and the largest thing that is on its way to it: a snapshot can be larger
    than the budget, and must arrive however long it takes.
    """

    __slots__ = (
        "_budget",
        "_dialect",
        "_held",
        "_largest",
        "_on_lagging",
        "_on_resync",
        "_peer",
        "_transport",
        "channels",
        "frame",
        "lagging",
        "parts",
        "sameness",
    )

    def __init__(
        self,
        transport: Transport,
        peer: Peer,
        dialect: Dialect,
        *,
        budget: int,
        on_lagging: Callable[[], None],
        on_resync: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._peer = peer
        self._budget = budget
        self._largest = 0
        """Bytes of the largest write since the client was last within its budget."""
        self._on_lagging = on_lagging
        self._on_resync = on_resync
        self._held: list[bytes] | None = None
        self.frame = transport.frame
        self.channels: set[str] = set()
        self.parts: list[bytes] = []
        self.lagging = False
        self.speak(dialect)

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def speak(self, dialect: Dialect) -> None:
        """The handshake chose how this client is spoken to."""
        self._dialect = dialect
        self.sameness = Sameness(self._transport.framing, dialect.stream)

    # -- actions ---------------------------------------------------------------------------------------------------

    def project(self, entry: Entry) -> bytes | None:
        """The envelope of a logged action as this client gets it; None: not at all. Raises `Resync`."""
        if self._dialect.is_same(entry.type):
            return entry.payload
        kind = entry.type or decode_json(entry.payload)["action"]["type"]
        return entry.payload if self._dialect.is_same(kind) else self._dialect.action(kind, entry.payload)

    def replay(self, entries: Iterable[Entry]) -> list[Raw] | None:
        """Missed actions for the answer to `reconnect`; None when only snapshots can tell."""
        try:
            return [Raw(body) for entry in entries if (body := self.project(entry)) is not None]
        except Resync:
            return None

    def echo(self, entry: Entry) -> None:
        """Send a logged action again, to a client that repeated it."""
        if (body := self.project(entry)) is not None:
            self.send(self._peer.notify("action", decode_json(body)))

    def answer_action(self, uri: str, sent: JsonObject, seq: int, origin: Origin, reason: str | None = None) -> None:
        """Send a client its own action back, as it sent it; with a reason it was refused."""
        told = {**envelope(uri, sent, origin), "serverSeq": seq}
        if reason is not None:
            told["rejectionReason"] = reason[:MAX_REASON]
        self.send(self._peer.notify("action", self._dialect.rejection(told)))

    def resync(self) -> None:
        self._on_resync()

    # -- everything else -------------------------------------------------------------------------------------------

    def snapshot(self, uri: str, state: JsonObject, seq: int) -> JsonObject:
        """A channel's state as an answer shows it."""
        return {"resource": uri, "state": self._dialect.state(uri, state), "fromSeq": seq}

    def notify(self, method: str, params: JsonObject) -> None:
        if (told := self._dialect.notification(method, params)) is not None:
            self.send(self._peer.notify(*told))

    def request(self, method: str, params: JsonObject) -> int:
        """Ask the client; returns the id of the request."""
        request_id, message = self._peer.request(*self._dialect.request(method, params))
        self.send(message)
        return request_id

    def respond(self, id: RequestId, method: str, params: JsonObject, result: Any) -> None:
        """Answer a request."""
        self._answer(method, self._peer.respond(id, self._dialect.result(method, params, result)))

    def fail(self, id: RequestId, method: str, error: Exception) -> None:
        """Refuse a request."""
        told = self._dialect.error(method, error) if isinstance(error, RpcError) else error
        self._answer(method, self._peer.fail(id, told))

    def hold(self) -> None:
        """Keep everything back until `reconnect` is answered: the answer must come first."""
        self._held = []

    def _answer(self, method: str, message: bytes) -> None:
        held: list[bytes] = []
        if method == "reconnect":
            held, self._held = self._held or [], None
        self.write(b"".join([self.frame(message), *held]))

    def send(self, message: bytes) -> None:
        """Frame and write one message."""
        self.write(self.frame(message))

    def write(self, frames: bytes) -> None:
        if self.lagging:
            return
        if self._held is not None:
            self._held.append(frames)
            return
        self._transport.write(frames)
        unread = self._transport.buffered
        if unread <= self._budget:
            self._largest = 0
            return
        self._largest = max(self._largest, len(frames))
        if unread > self._budget + self._largest:
            self.lagging = True
            self._transport.abort()
            self._on_lagging()

    @property
    def unread(self) -> int:
        """Bytes that the client has not read yet."""
        return self._transport.buffered

    async def drain(self) -> None:
        """Wait until the client has read most of it."""
        await self._transport.drain()


__all__ = ["Outlet"]
