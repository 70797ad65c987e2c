"""Runs one command on a pseudo terminal: in its own session, read at the reader's pace, ended with all its children.

Output is bytes. If nobody reads, the command waits: the kernel buffers a few KiB, we buffer nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ahpkit.platform import Unsupported
from ahpkit.platform.cleaner import ended_with_us
from ahpkit.platform.limits import limit_child
from ahpkit.platform.processes import end_session

CHUNK = 32 * 1024
"""The largest number of bytes that is handed over at once."""

_INTERVAL = 0.01
"""Output that comes within this many seconds is handed over together. The echo of a key is not held back."""

_QUIET = 0.1
"""Seconds without output after which an ended command counts as finished, although a process that left its session
still holds the pty."""

_LAST_LOOKS = 32
"""How often output is read after the end: more than the kernel's buffers need. Processes that left the session and go
on printing are not read."""

_REOPENED = 0.25
"""Seconds between two looks at a terminal that its command has closed."""

_ATTACH = ': <"$0" && exec "$@"'
"""Run by a shell that leads a session without a terminal: opening one makes it the session's own. Doing this between
fork and exec would run Python in a process that has lost its other threads and their locks."""

_IUTF8 = 0o40000
"""Erasing a character removes all its bytes. `termios` has no name for it."""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a command ended: by itself with a code, or by a signal."""

    code: int | None
    signal: str | None = None


class PtyProcess:
    """A running command. The caller of `start` calls `aclose`."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self._process = process
        self._master: int | None = master
        self._input = bytearray()
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._hung_up = False
        self._last_looks = _LAST_LOOKS
        self._due = 0.0
        self._watching = asyncio.create_task(self._watch(), name=f"watch {process.pid}")

    @classmethod
    async def start(
        cls, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, cols: int = 80, rows: int = 24
    ) -> Self:
        """Run `command`, whose first word is an absolute path, with exactly this environment."""
        if not hasattr(os, "openpty"):
            raise Unsupported("a pseudo terminal")
        master, slave = os.openpty()
        try:
            os.set_blocking(master, False)
            _erase_whole_characters(slave)
            _set_size(master, cols, rows)
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _ATTACH,
                os.ttyname(slave),
                *command,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
            limit_child(process.pid)
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        return cls(process, master)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def unread_input(self) -> int:
        """Bytes typed that the command has not taken yet."""
        return len(self._input)

    async def read(self) -> bytes:
        """The output since the last call; b"" after the end of the command, when all output was returned."""
        loop = asyncio.get_running_loop()
        data = bytearray()
        while not data and await self._wait_readable(None):
            self._take(data)
        while len(data) < CHUNK and not self._hung_up and (left := self._due - loop.time()) > 0:
            if not await self._wait_readable(left):
                break
            self._take(data)
        self._due = loop.time() + _INTERVAL
        return bytes(data)

    def write(self, data: bytes) -> None:
        """Write input. What the command does not read yet is buffered."""
        if self._master is not None:
            self._input += data
            self._send_input(self._master)

    def resize(self, cols: int, rows: int) -> None:
        """Change the size; the foreground processes get SIGWINCH."""
        if self._master is not None:
            _set_size(self._master, cols, rows)

    async def wait(self) -> ExitStatus:
        """Wait until the command, and everything that it left in its session, has ended."""
        await self._ended.wait()
        code = self._process.returncode
        assert code is not None
        return ExitStatus(code) if code >= 0 else ExitStatus(None, _signal_name(-code))

    async def kill(self) -> None:
        """End the command and everything in its session, politely first. Returns when all are gone."""
        if not self._ended.is_set():
            await end_session(self.pid)
            await self._ended.wait()

    async def aclose(self) -> None:
        """End the command and give back the pty."""
        await self.kill()
        await self._watching
        if self._master is not None:
            master, self._master = self._master, None
            self._input.clear()
            asyncio.get_running_loop().remove_writer(master)
            os.close(master)

    async def _watch(self) -> None:
        with ended_with_us(self.pid):
            await self._process.wait()
            await end_session(self.pid)
        self._ended.set()
        self._news.set()

    async def _wait_readable(self, seconds: float | None) -> bool:
        """Wait for output. Returns False if nothing came in time, or nothing will come any more."""
        master = self._master
        if master is None or (self._ended.is_set() and (self._hung_up or not self._last_looks)):
            return False
        if self._hung_up:
            await self._wait_reopened()
            return True
        if self._ended.is_set():
            self._last_looks -= 1
            seconds = _QUIET
        loop = asyncio.get_running_loop()
        self._news.clear()
        loop.add_reader(master, self._news.set)
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(master)
        return True

    async def _wait_reopened(self) -> None:
        """Wait while nobody holds the other side: the command runs on and may open its terminal again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REOPENED):
                await self._ended.wait()
        self._hung_up = False

    def _take(self, data: bytearray) -> None:
        assert self._master is not None
        try:
            while len(data) < CHUNK:
                piece = os.read(self._master, CHUNK - len(data))
                if not piece:
                    self._hung_up = True
                    return
                data += piece
        except BlockingIOError:
            pass
        except OSError:  # EIO: on Linux this means that nobody holds the other side any more.
            self._hung_up = True

    def _send_input(self, master: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._input:
                del self._input[: os.write(master, self._input)]
        except BlockingIOError:
            loop.add_writer(master, self._send_input, master)
            return
        except OSError:
            self._input.clear()
        loop.remove_writer(master)


def _set_size(master: int, cols: int, rows: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def _erase_whole_characters(slave: int) -> None:
    import termios

    attributes = termios.tcgetattr(slave)
    attributes[0] |= _IUTF8
    termios.tcsetattr(slave, termios.TCSANOW, attributes)


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


__all__ = ["CHUNK", "ExitStatus", "PtyProcess"]
