"""A person at the other end: lines, single keys and Ctrl-C inside an event loop. Knows no chat and no protocol.

Everything can be cancelled at any moment, and the terminal is put back as it was, however the block ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator, Collection, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

from ahpkit.cli.keys import Key, Keys
from ahpkit.cli.line_editor import LineEditor, lay_out
from ahpkit.cli.output import Output


class Console(Output):
    """Standard input as lines, for pipes and files. `TerminalConsole` is for people."""

    interactive = False

    def __init__(self) -> None:
        super().__init__()
        self._interrupted = asyncio.Event()
        self.asking = asyncio.Lock()
        """Held by whoever asks the person something."""
        self._buffer = b""
        self._ended = False

    def interrupt(self) -> None:
        """Ctrl-C was pressed."""
        self._interrupted.set()

    async def interrupted(self) -> None:
        """Wait for Ctrl-C."""
        await self._interrupted.wait()
        self._interrupted.clear()

    async def line(self, prompt: str, editor: LineEditor | None = None) -> str | None:
        """One line without its end, or None when there is no more input. A terminal goes on with `editor`."""
        while b"\n" not in self._buffer and not self._ended:
            self._buffer += await self._read()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return None if self._ended and not line else line.decode(errors="replace").rstrip("\r")

    async def key(self, prompt: str, keys: Collection[str]) -> str | None:
        """One of `keys`, by a single press on a terminal, else the first letter of a line. None: no more input."""
        while (line := await self.line(prompt)) is not None:
            if (pressed := line.strip()[:1].lower()) in keys:
                self.say(f"{prompt}{pressed}")
                return pressed
        return None

    async def _read(self) -> bytes:
        """What there is to read; nothing when the input has ended. A cancelled read loses nothing."""
        await _readable(sys.stdin.fileno())
        try:
            data = os.read(sys.stdin.fileno(), 65536)
        except OSError:  # The terminal was closed.
            data = b""
        self._ended = not data
        return data


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    except PermissionError:  # A plain file is always ready, and epoll refuses it.
        return
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


class TerminalConsole(Console):
    """A terminal that this program reads key by key, so that what happens elsewhere can be shown above the prompt."""

    interactive = True

    def __init__(self) -> None:
        super().__init__()
        self._decoder = Keys()
        self._keys: deque[Key] = deque()
        self._prompt: tuple[str, LineEditor] | None = None
        self._held: list[tuple[str, str]] = []
        self._row = 0
        """Where the cursor is, in rows below the beginning of the prompt."""

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        """Write a line, above the prompt when there is one."""
        if self._prompt is None:
            return super().say(text, style, error=error)
        self._erase()
        super().say(text, style, error=error)
        return self._draw()

    def stream(self, text: str, style: str = "") -> None:
        """Write a piece of text; once the prompt is gone, because above it there are whole lines only."""
        if self._prompt is None:
            super().stream(text, style)
        else:
            self._held.append((text, style))

    def redraw(self) -> None:
        """The prompt is not on the screen any more."""
        self._row = 0
        self._draw()

    async def line(self, prompt: str, editor: LineEditor | None = None) -> str | None:
        editor = editor or LineEditor()
        with self._prompting(prompt, editor):
            done = None
            while done is None:
                key = await self._key()
                done = "end" if key is None else editor.press(key)
                if not self._keys:
                    self._draw()
            self._finish()
        line = editor.text
        editor.remember(line)
        editor.clear()
        return line if done == "enter" else None

    async def key(self, prompt: str, keys: Collection[str]) -> str | None:
        self._forget_typed()
        answer = LineEditor()
        with self._prompting(prompt, answer):
            while (key := await self._key()) is not None and key != "\x04":
                if isinstance(key, str) and key.lower() in keys:
                    answer.before = key.lower()
                    self._draw()
                    self._finish()
                    return answer.text
        return None

    def _forget_typed(self) -> None:
        """What was typed before a question was shown is no answer to it."""
        import termios

        self._keys.clear()
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def _key(self) -> Key | None:
        while not self._keys and not self._ended:
            self._keys.extend(self._decoder.feed(await self._read()))
        return self._keys.popleft() if self._keys else None

    # The prompt on the screen.

    @contextmanager
    def _prompting(self, prompt: str, editor: LineEditor) -> Generator[None]:
        self.end_line()
        self._prompt = prompt, editor
        self.redraw()
        try:
            yield
        finally:
            self._erase()
            self._prompt = None
            held, self._held = self._held, []
            for text, style in held:
                self.stream(text, style)

    def _draw(self) -> None:
        if self._prompt is None:
            return
        self._erase()
        columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
        text, cursor, end = lay_out(*self._prompt, columns)
        # At the right edge a terminal waits with the next row until something comes.
        wrap = "\n" if end[0] and not end[1] else ""
        up = end[0] - cursor[0]
        self._control(text + wrap + "\r" + (f"\x1b[{up}A" if up else "") + (f"\x1b[{cursor[1]}C" if cursor[1] else ""))
        self._row = cursor[0]

    def _erase(self) -> None:
        if self._prompt is not None:
            self._control("\r" + (f"\x1b[{self._row}A" if self._row else "") + "\x1b[J")
            self._row = 0

    def _finish(self) -> None:
        """Leave what was typed on the screen and go on below it."""
        assert self._prompt is not None
        _, editor = self._prompt
        editor.before, editor.after = editor.text, ""
        self._draw()
        self._prompt = None
        self._control("\n")

    def _control(self, sequence: str) -> None:
        sys.stdout.write(sequence)
        sys.stdout.flush()


@asynccontextmanager
async def console() -> AsyncGenerator[Console]:
    """A console that hears Ctrl-C while the block lasts. Being told to end, or losing the terminal, ends the block."""
    capable = os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    if capable and sys.stdin.isatty() and sys.stdout.isatty():
        made = TerminalConsole()
        with _key_by_key(made):
            async with _signals(made):
                yield made
    else:
        made = Console()
        async with _signals(made):
            yield made


@contextmanager
def _key_by_key(terminal: TerminalConsole) -> Generator[None]:
    """No echo, no line editing by the kernel, pastes marked as such; all as before afterwards."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def enter() -> None:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        sys.stdout.write("\x1b[?2004h")
        terminal.redraw()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCONT, enter)  # After Ctrl-Z and fg.
    try:
        enter()
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCONT)
        with suppress(OSError, termios.error):  # The terminal may be gone.
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
            sys.stdout.write("\x1b[?2004l")
            sys.stdout.flush()


@asynccontextmanager
async def _signals(made: Console) -> AsyncGenerator[None]:
    loop, running = asyncio.get_running_loop(), asyncio.current_task()
    assert running is not None
    handlers = {signal.SIGINT: made.interrupt, signal.SIGTERM: running.cancel, signal.SIGHUP: running.cancel}
    for signum, handler in handlers.items():
        loop.add_signal_handler(signum, handler)
    try:
        yield
    finally:
        for signum in handlers:
            loop.remove_signal_handler(signum)


__all__ = ["Console", "TerminalConsole", "console"]
