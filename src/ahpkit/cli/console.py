"""Reading from the terminal inside an event loop, and Ctrl-C as an event. Knows no chat and no protocol.

Lines are edited by the terminal itself; a single key is read with the line discipline switched off for a moment. Both
can be cancelled, so that Ctrl-C always works.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager


class Console:
    """Standard input and output of one command."""

    def __init__(self) -> None:
        self._buffer = b""
        self._ended = False
        self.interrupted = asyncio.Event()
        """Set by Ctrl-C."""

    @property
    def interactive(self) -> bool:
        return sys.stdin.isatty() and sys.stdout.isatty()

    def write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    async def line(self, prompt: str) -> str | None:
        """One line without its end, or None when there is no more input."""
        if self.interactive:
            self.write(prompt)
        while b"\n" not in self._buffer and not self._ended:
            await self._fill()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return None if self._ended and not line else line.decode(errors="replace").rstrip("\r")

    async def key(self, prompt: str, keys: str) -> str | None:
        """One of `keys`, by a single key press on a terminal, else the first letter of a line."""
        self.write(prompt)
        while True:
            pressed = await self._press() if self.interactive else (await self.line("") or "")[:1]
            if not pressed or pressed == "\x04":
                return None
            if pressed.lower() in keys:
                self.write(f"{pressed.lower()}\n")
                return pressed.lower()

    async def _press(self) -> str:
        with _raw_keys():
            await self._fill()
        pressed, self._buffer = self._buffer[:1], b""
        return pressed.decode(errors="replace")

    async def _fill(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        descriptor = sys.stdin.fileno()
        try:
            loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
        except PermissionError:  # A plain file is always ready, and epoll refuses it.
            ready.set_result(None)
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)
        data = os.read(descriptor, 65536)
        self._ended = not data
        self._buffer += data


@contextmanager
def _raw_keys() -> Generator[None]:
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@asynccontextmanager
async def console() -> AsyncGenerator[Console]:
    """A console that hears Ctrl-C while the block lasts."""
    made = Console()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, made.interrupted.set)
    try:
        yield made
    finally:
        loop.remove_signal_handler(signal.SIGINT)


__all__ = ["Console", "console"]
