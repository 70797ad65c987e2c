"""A WebSocket client by hand, to send what no library sends and to read or not read as a test needs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Mapping

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
}


class Raw:
    """A TCP connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.reader = reader
        self.writer = writer
        self.port = port

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def http(self, target: str, *, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send a request and read the whole answer: status, headers, body."""
        self.request(target, headers, method=method)
        head, _, body = (await self.reader.read()).partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        named = (line.split(": ", 1) for line in lines)
        return int(status.split()[1]), {name.lower(): value for name, value in named}, body

    async def upgrade(self, target: str = "/", **headers: str) -> str:
        """Open a WebSocket; returns the head of the answer."""
        self.request(target, UPGRADE | headers)
        return (await self.reader.readuntil(b"\r\n\r\n")).decode()

    def request(self, target: str, headers: Mapping[str, str], *, method: str = "GET") -> None:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if not any(line.lower().startswith("host:") for line in lines):
            lines.append(f"Host: 127.0.0.1:{self.port}")
        self.send("\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode())

    async def frame(self) -> tuple[int, bytes]:
        """The next frame: its first byte (0x81 is a whole text message, 0x88 a close) and its payload."""
        first, size = await self.reader.readexactly(2)
        if size == 126:
            size = int.from_bytes(await self.reader.readexactly(2), "big")
        elif size == 127:
            size = int.from_bytes(await self.reader.readexactly(8), "big")
        return first, await self.reader.readexactly(size)

    async def close_frame(self) -> tuple[int, str]:
        """Read up to the close frame: its code and reason."""
        first, payload = await self.frame()
        while first != 0x88:
            first, payload = await self.frame()
        return int.from_bytes(payload[:2], "big"), payload[2:].decode()


def masked(first: int, payload: bytes) -> bytes:
    """A client frame."""
    mask = os.urandom(4)
    body = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
    size = len(payload)
    longer = b"" if size < 126 else size.to_bytes(2 if size < 1 << 16 else 8, "big")
    return bytes((first, 0x80 | {0: size, 2: 126, 8: 127}[len(longer)])) + longer + mask + body


@contextlib.asynccontextmanager
async def raw(port: int, *, receive_buffer: int | None = None) -> AsyncGenerator[Raw]:
    """Connect; with `receive_buffer` the kernel takes about that much for a reader that does not read."""
    sock = socket.socket()
    sock.setblocking(False)
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=4096)
    try:
        yield Raw(reader, writer, port)
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
