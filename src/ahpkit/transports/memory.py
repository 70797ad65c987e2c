"""Two connected transports in one event loop, for tests and for hosts inside a program."""

from __future__ import annotations

import asyncio
from collections import deque

from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import ABNORMAL_CLOSURE, NORMAL_CLOSURE, PeerInfo

_HEADER = 4
"""Frames are length-prefixed, so that joined frames can be told apart whatever the messages contain."""

_MORE = 1 << 31
"""Added to the length of a piece that is not the last of its message."""

_HIGH_WATER = 64 * 1024
"""`drain` waits while more bytes than this are unread, as asyncio does for sockets."""


class _Pipe:
    """One direction: messages on their way, and how it ended."""

    def __init__(self) -> None:
        self.messages: deque[bytes] = deque()
        self._pieces: list[bytes] = []
        """The pieces of a message that is not complete yet."""
        self.size = 0
        self.closed: tuple[str, int] | None = None
        self.changed = asyncio.Event()

    def put(self, frames: bytes) -> None:
        start = 0
        while start < len(frames):
            body = start + _HEADER
            length = int.from_bytes(frames[start:body], "big")
            start = body + length % _MORE
            self._pieces.append(frames[body:start])
            if length < _MORE:
                self.messages.append(b"".join(self._pieces))
                self.size += len(self.messages[-1])
                self._pieces.clear()
        self.changed.set()

    def take(self) -> bytes:
        message = self.messages.popleft()
        self.size -= len(message)
        self.changed.set()
        return message

    def end(self, reason: str, code: int, *, drop: bool) -> None:
        if self.closed is None:
            self.closed = (reason, code)
        if drop:
            self.messages.clear()
            self.size = 0
        self.changed.set()

    async def wait_changed(self) -> None:
        self.changed.clear()
        await self.changed.wait()


class MemoryTransport:
    """One end of `memory_pair`."""

    framing = "memory"

    def __init__(self, inbox: _Pipe, outbox: _Pipe, peer: PeerInfo) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self.peer = peer

    @property
    def buffered(self) -> int:
        return self._outbox.size

    @property
    def is_over(self) -> bool:
        return self._outbox.closed is not None

    async def receive(self) -> bytes:
        inbox = self._inbox
        while not inbox.messages:
            if inbox.closed is not None:
                reason, code = inbox.closed
                raise TransportClosed(reason or "connection closed", code=code)
            await inbox.wait_changed()
        return inbox.take()

    def frame(self, message: bytes) -> bytes:
        return len(message).to_bytes(_HEADER, "big") + message

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        return (len(piece) + (0 if last else _MORE)).to_bytes(_HEADER, "big") + piece

    def write(self, frames: bytes) -> None:
        if not self.is_over:
            self._outbox.put(frames)

    async def drain(self) -> None:
        while self._outbox.size > _HIGH_WATER and self._outbox.closed is None:
            await self._outbox.wait_changed()

    async def aclose(self, *, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        self._outbox.end(reason, code, drop=False)
        self._inbox.end(reason, code, drop=True)

    def abort(self) -> None:
        for pipe in (self._outbox, self._inbox):
            # After a clean close, unread messages stay, as in a socket.
            pipe.end("connection aborted", ABNORMAL_CLOSURE, drop=pipe.closed is None)


def memory_pair(*, credential: str | None = None) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected transports. The first sees the second's `credential`: it plays the server."""
    there, back = _Pipe(), _Pipe()
    server = MemoryTransport(there, back, PeerInfo("memory", "in-process", credential))
    client = MemoryTransport(back, there, PeerInfo("memory", "in-process"))
    return server, client


__all__ = ["MemoryTransport", "memory_pair"]
