"""Sends messages as lines over a pair of pipes: this process's own stdio, or a child's.

A pipe cannot say why it ends, so the other side of a close sees `TransportClosed` with code 1006.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import sys
from collections import deque
from collections.abc import AsyncGenerator, Generator
from io import FileIO

from ahpkit.transports.errors import BindError
from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import ABNORMAL_CLOSURE, NORMAL_CLOSURE, PeerInfo

MAX_LINE = 100 * 1000 * 1000
"""Bytes of one line. Agents send whole files in one message; more than this is a mistake or an attack."""

TOO_BIG = 1009
"""Close code for a line over the limit, as for a WebSocket frame."""

_CHUNK = 256 * 1024
CLOSE_TIMEOUT = 2.0
"""Seconds for a reader to take what is still buffered at a close."""


class LineSplitter:
    """Splits bytes into whole lines. LF or CRLF ends a line, blank lines are skipped, and a line without an end is not
    a message."""

    def __init__(self, *, max_bytes: int = MAX_LINE) -> None:
        self.max_bytes = max_bytes
        self.overflow = False
        """Whether a line exceeded the limit. Then no more lines are returned."""
        self._partial = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            if not self._keep(end):
                return lines
            line = bytes(self._partial).removesuffix(b"\r")
            self._partial.clear()
            if line and not line.isspace():
                lines.append(line)
        self._keep(rest)
        return lines

    def _keep(self, piece: bytes) -> bool:
        self.overflow = self.overflow or len(self._partial) + len(piece) > self.max_bytes
        if self.overflow:
            self._partial.clear()
        else:
            self._partial += piece
        return not self.overflow


class LineTransport:
    """A transport over asyncio streams, for example `process.stdout` and `process.stdin`.

    Closing it closes the writer. The reader stays open: a child that goes on writing blocks, and does not exit, until
    somebody reads the rest (`process.communicate()` does).
    """

    framing = "line"

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        address: str,
        max_bytes: int = MAX_LINE,
        close_timeout: float = CLOSE_TIMEOUT,
    ) -> None:
        self.peer = PeerInfo("stdio", address)
        self._reader = reader
        self._writer = writer
        self._close_timeout = close_timeout
        self._splitter = LineSplitter(max_bytes=max_bytes)
        self._lines: deque[bytes] = deque()
        self._reading: asyncio.Timeout | None = None
        """The timeout of the task that waits for input; None if no task waits."""
        self._ended: tuple[str, int] | None = None

    @property
    def buffered(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    @property
    def is_over(self) -> bool:
        return self._writer.is_closing()

    @property
    def has_line(self) -> bool:
        """Whether `receive` has something to return at once."""
        return bool(self._lines)

    async def receive(self) -> bytes:
        while not self._lines:
            self._lines.extend(self._splitter.feed(await self._read()))
            if self._splitter.overflow:
                self._end(f"a line is longer than {self._splitter.max_bytes} bytes", TOO_BIG)
                self._writer.close()
        return self._lines.popleft()

    async def _read(self) -> bytes:
        self._check_open()
        try:
            async with asyncio.timeout(None) as self._reading:
                data = await self._reader.read(_CHUNK)  # When this is cancelled, the next call takes its bytes.
        except OSError:  # A terminal that hung up, for example, or `_end`, which is a `TimeoutError`.
            data = b""
        finally:
            self._reading = None
        self._check_open()
        if not data:
            self._end("end of input", ABNORMAL_CLOSURE)
            self._check_open()
        return data

    def frame(self, message: bytes) -> bytes:
        # In JSON a raw line break can only stand between tokens, where a space means the same.
        return message.replace(b"\n", b" ") + b"\n" if b"\n" in message else message + b"\n"

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        return self.frame(piece) if last else piece.replace(b"\n", b" ")

    def write(self, frames: bytes) -> None:
        if not self.is_over:
            self._writer.write(frames)

    async def drain(self) -> None:
        with contextlib.suppress(OSError):  # The pipe broke. `receive` reports it.
            await self._writer.drain()

    async def aclose(self, *, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        self._end(reason or "connection closed", code)
        self._lines.clear()
        self._writer.close()
        try:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(self._close_timeout):
                    await self._writer.wait_closed()
        finally:
            self._cut()

    def abort(self) -> None:
        self._end("connection aborted", ABNORMAL_CLOSURE)
        self._lines.clear()
        self._cut()

    def _cut(self) -> None:
        if self.buffered or not self._writer.is_closing():  # asyncio's pipes do not bear an abort after their end.
            self._writer.transport.abort()

    def _end(self, reason: str, code: int) -> None:
        """Make `receive` raise from now on, also a call that is waiting."""
        if self._ended is None:
            self._ended = (reason, code)
        if self._reading is not None:
            self._reading.reschedule(0)
            self._reading = None

    def _check_open(self) -> None:
        if self._ended is not None:
            reason, code = self._ended
            raise TransportClosed(reason, code=code)


@contextlib.asynccontextmanager
async def open_stdio(*, max_bytes: int = MAX_LINE) -> AsyncGenerator[LineTransport]:
    """This process's stdin and stdout as a transport.

    While it is open, descriptor 0 reads nothing and descriptor 1 is stderr: a stray `print` cannot garble the messages.
    """
    with _own_stdio() as (stdin, stdout):
        async with over_pipes(stdin, stdout, address="stdio", max_bytes=max_bytes) as transport:
            yield transport


@contextlib.asynccontextmanager
async def over_pipes(
    stdin: FileIO, stdout: FileIO, *, address: str, max_bytes: int = MAX_LINE
) -> AsyncGenerator[LineTransport]:
    """A transport over two open files, which may be the two ends of one socket. The files are closed at the end."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            reader, writer = await _streams(stdin, stdout, stack)
        except ValueError as exc:
            raise BindError("stdin and stdout must be pipes, sockets or terminals, not files") from exc
        transport = LineTransport(reader, writer, address=address, max_bytes=max_bytes)
        stack.push_async_callback(transport.aclose)
        yield transport


async def _streams(
    stdin: FileIO, stdout: FileIO, stack: contextlib.AsyncExitStack
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    if _is_one_socket(stdin, stdout):  # asyncio's pipe for writing would treat arriving bytes as the end of the reader.
        return await asyncio.open_connection(sock=socket.socket(fileno=os.dup(stdin.fileno())))
    reader = asyncio.StreamReader()
    incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
    stack.callback(incoming.close)
    outgoing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), stdout
    )
    return reader, asyncio.StreamWriter(outgoing, protocol, None, loop)


def _is_one_socket(stdin: FileIO, stdout: FileIO) -> bool:
    one, other = os.fstat(stdin.fileno()), os.fstat(stdout.fileno())
    return stat.S_ISSOCK(one.st_mode) and os.path.samestat(one, other)


@contextlib.contextmanager
def _own_stdio() -> Generator[tuple[FileIO, FileIO]]:
    """Files for what stdin and stdout were, with harmless ones in their place; put back at the end."""
    saved = os.dup(0), os.dup(1)
    sys.stdout.flush()
    with open(os.devnull, "rb") as null:
        os.dup2(null.fileno(), 0)
    os.dup2(2, 1)
    try:
        with FileIO(os.dup(saved[0]), "rb") as stdin, FileIO(os.dup(saved[1]), "wb") as stdout:
            yield stdin, stdout
    finally:
        sys.stdout.flush()
        for fd, copy in enumerate(saved):
            os.set_blocking(copy, True)  # asyncio changed it for everyone who shares the pipe.
            os.dup2(copy, fd)
            os.close(copy)


__all__ = ["MAX_LINE", "TOO_BIG", "LineSplitter", "LineTransport", "open_stdio", "over_pipes"]
