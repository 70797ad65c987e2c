"""Uses an open WebSocket as a transport, on either side: frames and close codes.

Frames are built once and written to the socket as they are, however many connections they go to (docs/decisions,
2026-11-15). This is correct because nothing is compressed and nothing is written unless the connection is open. A long
message is sent in fragments, as fast as the peer reads.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, cast

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import DATA_OPCODES, CloseCode, Frame, Opcode
from websockets.protocol import Event, State

from ahpkit.transports.auth import Admission
from ahpkit.transports.short_messages import ShortMessages, TooManyFrames
from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import ABNORMAL_CLOSURE, NORMAL_CLOSURE, PeerInfo

PING_INTERVAL = 20.0
"""Seconds between pings, and for the pong to come: a peer that vanished is noticed within a minute."""

CLOSE_TIMEOUT = 2.0
"""Seconds for the closing handshake. A peer that does not answer by then is disconnected."""

HIGH_WATER = 64 * 1024
"""`drain` waits while more than this is buffered."""

_SEND_BUFFER = 256 * 1024
"""Bytes of kernel memory for data that one peer does not read. By default, Linux gives a stalled reader almost 4 MB."""

MAX_UNREAD = 64 * 1024 * 1024
"""Bytes. A peer that causes answers (by pings) and never reads is disconnected. The writers of messages have lower
limits."""

_MAX_QUEUED = 2
"""If more messages wait to be taken, nothing more is read from the socket, because each may be very large. Many short
messages may still arrive at once."""

_MAX_FRAGMENTS = 4096
"""Fragments of one message. Each takes memory, however short it is."""

_FINAL = 0x80
_TEXT = _FINAL | 0x1
_CONTINUATION = _FINAL
"""The first byte of a frame that ends its message (RFC 6455, 5.2): the library's way takes ten times as long."""

_MAX_REASON = 123
"""Bytes: RFC 6455, 5.5, gives a control frame 125, two of them for the code."""

log = logging.getLogger("ahpkit.transports.websocket")
log.setLevel(logging.INFO)
"""The logger for the library. At DEBUG it would print request headers, which contain the token."""


class Inbox:
    """Complete messages that were not taken yet. While several wait, nothing more is read from the socket.

    The library's own queue holds frames, and takes several times as many steps.
    """

    __slots__ = ("_is_paused", "_messages", "_transport", "_waiting")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._messages: deque[bytes] | None = None
        """None while there are none: an empty queue takes 600 bytes, and most connections are idle."""
        self._is_paused = False
        self._waiting: asyncio.Future[None] | None = None

    def put(self, messages: Sequence[bytes]) -> None:
        """Add one or more messages."""
        if self._messages is None:
            self._messages = deque(messages)
        else:
            self._messages.extend(messages)
        if len(self._messages) > _MAX_QUEUED and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self.wake()

    def take(self) -> bytes | None:
        """The next message; None if there is none."""
        if self._messages is None:
            return None
        message = self._messages.popleft()
        if not self._messages:
            self._messages = None
            if self._is_paused:
                self._is_paused = False
                self._transport.resume_reading()
        return message

    async def wait(self) -> None:
        """Wait until a message is added, or until `wake` is called."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def wake(self) -> None:
        """End a `wait`."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class _TextConnection(Connection):
    """What both sides add to the library's connection: text only, bounded buffers, control frames that never wait.

    The library waits for a full socket before it goes on, also with pings and closes, so it would not notice that a
    reader stalled. Here the library is never paused when the socket is full (`pause_writing` is not passed on to it).
    Only `drain` waits.
    """

    # Slots, because more attributes in the instance's dictionary would cost every connection 1.5 KiB.
    __slots__ = ("_fragments", "_full", "_max_unread", "_refused", "inbox")

    def __init__(self, *given: Any, max_unread: int = MAX_UNREAD, **options: Any) -> None:
        super().__init__(*given, **options)
        self._max_unread = max_unread

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.inbox = Inbox(self.transport)
        self._fragments: list[bytes] | None = None
        """The beginning of a message that comes in fragments."""
        self._full: asyncio.Future[None] | None = None
        self._refused = False
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.inbox.wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._full = self.loop.create_future()

    def resume_writing(self) -> None:
        if self._full is not None:
            self._full.set_result(None)
            self._full = None

    async def wait_writable(self) -> None:
        if self._full is not None:
            await asyncio.shield(self._full)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_write_buffer_size() > self._max_unread:
            self.transport.abort()

    def process_event(self, event: Event) -> None:
        if self._refused:
            return
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES:
            self._take_frame(event)
        else:
            super().process_event(event)

    def _take_frame(self, frame: Frame) -> None:
        """Take a frame of a message: the library has checked that it may come now."""
        if frame.opcode is Opcode.BINARY:
            self._refuse(CloseCode.UNSUPPORTED_DATA, "binary frame: messages are JSON in text frames")
            return
        fragments, self._fragments = self._fragments or [], None
        fragments.append(bytes(frame.data))
        if frame.fin:
            self.inbox.put([b"".join(fragments)])
        elif len(fragments) < _MAX_FRAGMENTS:
            self._fragments = fragments
        else:
            self._refuse(CloseCode.MESSAGE_TOO_BIG, "too many fragments")

    def _refuse(self, code: CloseCode, reason: str) -> None:
        self._refused = True
        self.protocol.fail(code, reason)
        self.send_data()


def connection_options(*, ping_interval: float, close_timeout: float = CLOSE_TIMEOUT) -> dict[str, Any]:
    """The options of the library's connections on both sides."""
    return {
        "ping_interval": ping_interval,
        "ping_timeout": ping_interval,
        "close_timeout": close_timeout,
        "write_limit": HIGH_WATER,
        "max_queue": _MAX_QUEUED,
    }


class ServerSide(_TextConnection, ServerConnection):
    """The connection class of the server."""

    __slots__ = ("_short", "admission")

    admission: Admission
    """Set during the handshake, when the gate has admitted the client."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._short: ShortMessages | None = ShortMessages(self.protocol.max_message_size or MAX_UNREAD)
        """None: the library gets all bytes, because the connection is ending."""

    def data_received(self, data: bytes) -> None:
        """The first call is the request of the handshake, without anything that follows it. What a client sends before
        the answer is read as well."""
        if self._short is None or self.request is None:
            super().data_received(data)
        elif self._is_ending:
            held_back, self._short = self._short.held_back, None
            super().data_received(held_back + data)
        else:
            try:
                self._take(self._short.split(data))
            except TooManyFrames as error:
                self._short = None
                self._refuse(CloseCode.POLICY_VIOLATION, str(error))

    @property
    def _is_ending(self) -> bool:
        return self.state is State.CLOSING or self.state is State.CLOSED

    def _take(self, arrived: Iterable[tuple[list[bytes], bytes]]) -> None:
        for messages, others in arrived:
            if messages:
                self.inbox.put(messages)
            if others:
                super().data_received(others)
                if self._is_ending:
                    self._short = None  # The library reads nothing any more, so nothing more is split.
                    break


class ClientSide(_TextConnection, ClientConnection):
    """The connection class of the client."""

    __slots__ = ()


class WebSocketTransport:
    """An open connection."""

    __slots__ = ("_connection", "_ended", "_masked", "_tls", "framing", "peer")

    def __init__(self, connection: ServerSide | ClientSide, peer: PeerInfo) -> None:
        self.peer = peer
        self._connection = connection
        self._masked = isinstance(connection, ClientSide)  # RFC 6455, 5.1: a client MUST mask, a server MUST NOT.
        self.framing = "ws-masked" if self._masked else "ws"
        self._tls = connection.transport.get_extra_info("ssl_object") is not None
        self._ended: tuple[str, int] | None = None

    @property
    def buffered(self) -> int:
        raw = self._connection.transport
        return 0 if raw.is_closing() else raw.get_write_buffer_size()

    @property
    def is_over(self) -> bool:
        return self._connection.state is not State.OPEN or self._connection.transport.is_closing()

    async def receive(self) -> bytes:
        inbox, lost = self._connection.inbox, self._connection.connection_lost_waiter
        while self._ended is None:
            if (message := inbox.take()) is not None:
                return message
            if lost.done():
                self._end(*_cause(self._connection.protocol.close_exc))
            else:
                await inbox.wait()
        reason, code = self._ended
        raise TransportClosed(reason, code=code)

    def frame(self, message: bytes) -> bytes:
        return self._frame(_TEXT, message)

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        """A fragment (RFC 6455, 5.4): the library's pings may come between, so a long message keeps nobody waiting."""
        return self._frame((_TEXT if first else _CONTINUATION) - (0 if last else _FINAL), piece)

    def _frame(self, first_byte: int, data: bytes) -> bytes:
        if self._masked:
            return bytes(Frame(Opcode(first_byte & 0x0F), data, fin=first_byte >= _FINAL).serialize(mask=True))
        length = len(data)
        if length < 126:
            return b"%c%c%b" % (first_byte, length, data)
        if length < 1 << 16:
            return b"%c\x7e%b%b" % (first_byte, length.to_bytes(2, "big"), data)
        return b"".join((b"%c\x7f" % first_byte, length.to_bytes(8, "big"), data))

    def write(self, frames: bytes) -> None:
        if self.is_over:
            return
        if self._tls:
            self._write_tls(frames)
        else:
            self._connection.transport.write(frames)

    def _write_tls(self, frames: bytes) -> None:
        """Write in slices, because bytes that were given to TLS in one write do not count in `buffered` any more."""
        view = memoryview(frames)
        for start in range(0, len(frames), HIGH_WATER):
            self._connection.transport.write(view[start : start + HIGH_WATER])

    async def drain(self) -> None:
        await self._connection.wait_writable()

    async def aclose(self, *, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        self._end(reason or "connection closed", code)
        if self._connection.state is not State.OPEN:  # The other side ends it, or ended it.
            lost = self._connection.connection_lost_waiter
            await asyncio.wait([lost], timeout=self._connection.close_timeout)
            self.abort()
            return
        await self._connection.close(code, reason.encode()[:_MAX_REASON].decode(errors="ignore"))

    def abort(self) -> None:
        self._end("connection aborted", ABNORMAL_CLOSURE)
        if not self._connection.connection_lost_waiter.done():  # Otherwise asyncio fails if bytes were not sent.
            self._connection.transport.abort()

    def _end(self, reason: str, code: int) -> None:
        if self._ended is None:
            self._ended = (reason, code)


def _cause(closed: ConnectionClosed) -> tuple[str, int]:
    """Reason and code as given by the side that closed first."""
    first = closed.rcvd if closed.rcvd_then_sent or closed.sent is None else closed.sent
    if first is None:
        return "connection lost", ABNORMAL_CLOSURE
    return first.reason or "connection closed", first.code


def address(name: Any) -> str:
    """A socket name in words: `127.0.0.1:80`, `[::1]:80`; empty for the unnamed end of a Unix socket."""
    if not isinstance(name, tuple):
        return str(name or "")
    host, port = cast("tuple[str, int]", name[:2])
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


__all__ = [
    "CLOSE_TIMEOUT",
    "MAX_UNREAD",
    "PING_INTERVAL",
    "ClientSide",
    "ServerSide",
    "WebSocketTransport",
    "address",
    "connection_options",
    "log",
]
