"""Runs a child process as a transport: in its own group, supervised, ended with all its children.

It may leave children behind that hold its pipes open, or that moved into another session. Each process gets a mark in
its environment that its descendants inherit. When it ends, its group is ended, and so is every process that carries the
mark, descends from it, or still holds its pipes. A process that avoids all of these is not found.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ahpkit.platform.cleaner import ended_with_us
from ahpkit.platform.limits import limit_child
from ahpkit.platform.processes import MARK, PROC, Snapshot, holders, kill, kill_group, look, look_together, new_mark
from ahpkit.transports.stdio import MAX_LINE, LineTransport

MAX_STDERR = 64 * 1024
"""Bytes that are kept of the end of stderr, which says why the process failed."""

_EOF_PATIENCE = 1.0
"""Seconds for the process to leave by itself after the end of its input."""
_TERM_PATIENCE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_PIPE_PATIENCE = 1.0
"""Seconds to read its last output. If its pipes are still open after that, another process holds them, and they are not
waited for."""
_KILL_ROUNDS = 3
"""How many times processes are searched that were forked while the others were killed."""
_LOOK_AGAIN = 0.01
"""Seconds between two looks at the running processes."""
LOOKS = 100
"""How many times processes are searched again that are just being started."""
_CHUNK = 64 * 1024


class Tail:
    """The last bytes of an endless text."""

    def __init__(self, limit: int = MAX_STDERR) -> None:
        self._limit = limit
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def lines(self, count: int) -> list[str]:
        """The last lines that are not empty."""
        text = bytes(self._data[-self._limit :]).decode("utf-8", "replace")
        return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]


class ChildTransport(LineTransport):
    """The messages of a child. Messages are objects, so a line that does not begin like one is kept as log output."""

    message = re.compile(rb"\s*\{")
    """The pattern of the beginning of a message."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, address: str, max_bytes: int, log: Tail
    ) -> None:
        super().__init__(reader, writer, address=address, max_bytes=max_bytes)
        self._log = log

    async def receive(self) -> bytes:
        while not self.message.match(line := await super().receive()):
            self._log.add(b"stdout: " + line[:1000] + b"\n")
        return line


class BatchTransport(ChildTransport):
    """The messages of a child that may send several in one line, as an array."""

    message = re.compile(rb"\s*(\[\s*)?\{")


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The pipes as streams, and the moments of the exit and of their ends: either may come long before the other."""

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()
        self.ended = asyncio.Event()
        """Set when nobody can write to stdout and stderr any more."""
        self._open = {1, 2}

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        super().pipe_connection_lost(fd, exc)
        self._open.discard(fd)
        if not self._open:
            self.ended.set()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class _AtOnce(asyncio.Protocol):
    """Passes what a child wrote on at once. asyncio's own protocol does so one step of the event loop later; it still
    learns of the end."""

    def __init__(self, streams: _Streams, end: asyncio.BaseProtocol) -> None:
        self._streams = streams
        self._end = end

    def data_received(self, data: bytes) -> None:
        self._streams.pipe_data_received(1, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.connection_lost(exc)


class ChildProcess:
    """`async with ChildProcess([...], env=…, cwd=…) as process`. Leaving ends the process and everything that it
    started."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        max_line: int = MAX_LINE,
        transport: type[ChildTransport] = ChildTransport,
        eof_patience: float = _EOF_PATIENCE,
        term_patience: float = _TERM_PATIENCE,
        looks: int = LOOKS,
        proc: Path = PROC,
    ) -> None:
        self._eof_patience = eof_patience
        self._term_patience = term_patience
        self._looks = looks
        self._proc = proc
        self.log = Tail()
        self.mark = new_mark()
        """The value of `MARK`. Other processes that are started with it end with this process."""
        self._command = command
        self._env = dict(env) | {MARK: self.mark}
        self._cwd = cwd
        self._max_line = max_line
        self._transport_type = transport
        self._process: asyncio.SubprocessTransport
        self._streams: _Streams
        self._group_ended = False
        self._pipes: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self.transport: ChildTransport

    async def __aenter__(self) -> Self:
        self._process, self._streams = await asyncio.get_running_loop().subprocess_exec(
            _Streams, *self._command, env=self._env, cwd=self._cwd, start_new_session=True
        )
        limit_child(self.pid)
        streams = self._streams
        assert streams.stdin is not None
        assert streams.stdout is not None
        assert streams.stderr is not None
        stdout = self._process.get_pipe_transport(1)
        assert isinstance(stdout, asyncio.ReadTransport)
        stdout.set_protocol(_AtOnce(streams, stdout.get_protocol()))
        name = Path(self._command[0]).name
        self.transport = self._transport_type(
            streams.stdout, streams.stdin, address=name, max_bytes=self._max_line, log=self.log
        )
        self._pipes = {name for number in (1, 2) if (name := _pipe_name(self._process.get_pipe_transport(number)))}
        self._tasks = [
            asyncio.create_task(self._drain(streams.stderr), name=f"stderr of {self.pid}"),
            asyncio.create_task(self._watch(), name=f"watch {self.pid}"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._streams.stdin is not None
        try:
            self._streams.stdin.close()
            await self.wait_exit(self._eof_patience)
            if not self._streams.exited.is_set():
                await self._signal(signal.SIGTERM)
                await self.wait_exit(self._term_patience)
        finally:
            if not self._streams.exited.is_set():  # Else `_watch` ends what it left behind.
                self.kill()
            try:
                await self.wait_exit(self._term_patience)
                await self._descendants_gone(_TERM_PATIENCE)
                # One of the tasks ends the processes that still hold the pipes.
                await asyncio.wait(self._tasks[1:], timeout=_TERM_PATIENCE)
            finally:
                self._process.close()  # Also closes pipes that a process still holds.
            await asyncio.gather(*self._tasks)

    @property
    def pid(self) -> int:
        return self._process.get_pid()

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.get_returncode()

    async def wait_exit(self, seconds: float) -> None:
        """Wait until the process has ended, but not longer than this."""
        await _wait(self._streams.exited, seconds)

    async def wait_over(self, seconds: float) -> None:
        """Wait until the process has ended and all of stderr was read, but not longer than this."""
        await asyncio.wait(self._tasks, timeout=seconds)

    async def _descendants_gone(self, seconds: float) -> None:
        """Wait until its descendants are gone: a killed process takes a moment to die, and we are not notified about
        processes that are not our children."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while found := self._family(await look_together(self._proc)):
                    kill(found, signal.SIGKILL)
                    await asyncio.sleep(_LOOK_AGAIN)

    def kill(self) -> None:
        """End the process and everything that it started now. The `async with` still has to be left."""
        for _ in range(_KILL_ROUNDS):
            if not self._send(signal.SIGKILL, look(self._proc)):
                return

    async def _drain(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(_CHUNK):
            self.log.add(data)

    async def _watch(self) -> None:
        """When the process has ended, end the processes that it left behind. Then the pipes end, after all output was
        read."""
        with ended_with_us(self.pid):
            await self._streams.exited.wait()
            seen = await self._signal(signal.SIGKILL)
            self._group_ended = True
        for _ in range(self._looks):
            if not seen.is_orphan_starting:
                break
            await asyncio.sleep(_LOOK_AGAIN)
            seen = await self._signal(signal.SIGKILL)
        await _wait(self._streams.ended, _PIPE_PATIENCE)
        if not self._streams.ended.is_set():
            kill(holders(self._pipes), signal.SIGKILL)
            await _wait(self._streams.ended, _PIPE_PATIENCE)
            self.transport.abort()

    def _family(self, seen: Snapshot) -> set[int]:
        return seen.family(() if self._group_ended else (self.pid,), self.mark)

    async def _signal(self, signum: signal.Signals) -> Snapshot:
        """Send a signal to all of the processes. SIGKILL is repeated for some rounds, until none is left. Returns the
        processes that were seen last."""
        for _ in range(_KILL_ROUNDS - 1 if signum == signal.SIGKILL else 0):
            if not self._send(signum, seen := await look_together(self._proc)):
                return seen
        self._send(signum, seen := await look_together(self._proc))
        return seen

    def _send(self, signum: signal.Signals, seen: Snapshot) -> bool:
        """Send a signal to all processes that were seen. Returns False if there were none."""
        found = self._family(seen)
        if not self._group_ended:  # Afterwards its number may be that of strangers.
            kill_group(self.pid, signum)
        kill(found, signum)
        return bool(found)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for the process, but not longer than this."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _pipe_name(pipe: asyncio.BaseTransport | None) -> str | None:
    """The name of a pipe in /proc; None for a pipe that has ended, because nobody holds it."""
    assert pipe is not None
    file = pipe.get_extra_info("pipe")
    return None if file.closed else f"pipe:[{os.fstat(file.fileno()).st_ino}]"


__all__ = ["BatchTransport", "ChildProcess", "ChildTransport", "Tail"]
