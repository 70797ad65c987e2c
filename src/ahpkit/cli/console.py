"""Reads lines, single keys and Ctrl-C from a person, inside an event loop.

Everything can be cancelled at any moment. The terminal is restored, however the block ends. `terminal_console` reads a
terminal key by key; this module reads the lines of pipes and files.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from ahpkit.cli.choosing import Choices, meant, possible
from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.output import Output, is_capable
from ahpkit.platform.signals import handling_signals
from ahpkit.platform.terminal_mode import can_read_keys


class Console(Output):
    """Standard input as lines, for pipes and files. `TerminalConsole` is for people."""

    interactive = False

    def __init__(self) -> None:
        super().__init__()
        self._interrupted = asyncio.Event()
        self._questions = asyncio.Lock()
        self._buffer = b""
        self._ended = False

    def interrupt(self) -> None:
        """Report that Ctrl-C was pressed."""
        self._interrupted.set()

    @property
    def interrupt_waits(self) -> bool:
        """Whether Ctrl-C was pressed and nothing has reacted to it yet."""
        return self._interrupted.is_set()

    async def interrupted(self) -> None:
        """Wait for Ctrl-C."""
        await self._interrupted.wait()
        self._interrupted.clear()

    async def line(self, prompt: str, editor: LineEditor | None = None) -> str | None:
        """One line without its end, or None if there is no more input. On a terminal the person edits the text of
        `editor`."""
        if is_shown():
            self.stream(prompt)
        while b"\n" not in self._buffer and not self._ended:
            self._buffer += await self._read()
        if is_shown():
            self._inside_line = b"\n" not in self._buffer  # Enter ends the line; Ctrl-D does not.
            self.end_line()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return None if self._ended and not line else line.decode(errors="replace").rstrip("\r")

    async def typed(self, prompt: str, editor: LineEditor) -> str:
        """A line that is typed while something else goes on. The next line of a pipe waits until that is over."""
        return await asyncio.Future()

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None]:
        """Held while a question is asked, so that questions come one at a time."""
        async with self._questions:
            yield

    async def settle(self) -> None:
        """Wait until the person can have seen what was shown. What they typed before does not answer it."""

    async def choose(self, prompt: str, choices: Choices, show: Callable[[], object] = lambda: None) -> str | None:
        """Ask the person to choose; returns the name of the choice. On a terminal a key chooses, else a line that is
        exactly one of the words. None: there is no more input, or the person does not want to choose now.

        `show` shows again what the question is about, when the person comes back to the terminal from elsewhere.
        """
        before = self._typed_before()
        try:
            while (line := await self.line(prompt)) is not None:
                if (name := meant(choices, line)) is not None:
                    if not is_shown():
                        self.say(f"{prompt}{line.strip()}")
                    return name
                if line.strip():
                    self.say(f"  {possible(choices, line)}", "yellow", error=True)
            return None
        finally:
            self._buffer = before + self._buffer

    def _typed_before(self) -> bytes:
        """What a person typed before the question was shown. It does not answer the question, and is kept for later.

        This concerns terminals that cannot be read key by key. The lines of a pipe are answers, in their order.
        """
        if not sys.stdin.isatty():
            return b""
        while select.select([sys.stdin.fileno()], [], [], 0)[0]:
            data = os.read(sys.stdin.fileno(), 65536)
            self._buffer += data
            if not data:
                break
        before, self._buffer = self._buffer, b""
        return before

    async def _read(self) -> bytes:
        """The next bytes of the input; empty if the input has ended. A read that is cancelled loses nothing."""
        await _readable(sys.stdin.fileno())
        try:
            data = os.read(sys.stdin.fileno(), 65536)
        except OSError:  # The terminal was closed.
            data = b""
        self._ended = not data
        return data


def is_shown() -> bool:
    """Whether a person types at a terminal and sees the output."""
    return sys.stdin.isatty() and sys.stdout.isatty()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    except PermissionError:  # epoll refuses plain files, because they are always ready.
        return
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


@asynccontextmanager
async def console() -> AsyncGenerator[Console]:
    """A console that handles Ctrl-C until the block ends. A signal to end, or the loss of the terminal, ends
    the block."""
    if is_capable(os.environ) and can_read_keys() and sys.stdin.isatty() and sys.stdout.isatty():
        from ahpkit.cli.terminal_console import TerminalConsole, key_by_key  # Imported here: a pipe needs neither.

        made = TerminalConsole()
        with key_by_key(made):
            async with _signals(made):
                yield made
    else:
        made = Console()
        async with _signals(made):
            yield made


@asynccontextmanager
async def _signals(made: Console) -> AsyncGenerator[None]:
    running = asyncio.current_task()
    assert running is not None
    with handling_signals({"SIGINT": made.interrupt, "SIGTERM": running.cancel, "SIGHUP": running.cancel}):
        yield


__all__ = ["Console", "console", "is_shown"]
