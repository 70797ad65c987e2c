"""A terminal read key by key, so that what happens elsewhere can be shown above the prompt. Knows no chat."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from ahpkit.cli.choosing import Choices, Choosing, Chosen, Left, Message, Outcome, Unclear, possible
from ahpkit.cli.completing import complete, utf16_length
from ahpkit.cli.console import Console
from ahpkit.cli.keys import Key, Keys, Paste
from ahpkit.cli.line_editor import LineEditor, lay_out
from ahpkit.cli.race import race
from ahpkit.cli.text import whole_lines
from ahpkit.platform import terminal_mode

_WAITING = "! the agent waits for an answer; send or clear this line first"


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds without a key that tell a decision from a sentence."""

    before: float = 0.3
    """After a question is shown: who still types then did not read it."""
    after: float = 0.35
    """After a key: what follows at once makes it the first letter of a sentence."""


class TerminalConsole(Console):
    """A person at a terminal."""

    interactive = True

    def __init__(self, pauses: Pauses | None = None) -> None:
        super().__init__()
        self._pauses = pauses or Pauses()
        self._decoder = Keys()
        self._keys: deque[Key] = deque()
        self._keyboard = asyncio.Lock()
        """Held by whoever reads keys while other things go on."""
        self._asked = asyncio.Event()
        self._has_keyboard = False
        """Whether the one who asks has it."""
        self._for_line: list[Key] = []
        """Keys that were typed at a question and are no answer to it: the next line begins with them."""
        self._line_goes_on = asyncio.Event()
        self._prompt: tuple[str, LineEditor] | None = None
        self._held = ("", "")
        """Streamed text, and its style, that is not a whole line yet: above a prompt there are whole lines only."""
        self._row = 0
        """Where the cursor is, in rows below the beginning of the prompt."""

    # Writing.

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        """Write a line, above the prompt when there is one."""
        if self._prompt is None:
            return super().say(text, style, error=error)
        self.end_line()
        return self._above(text, style, error=error)

    def stream(self, text: str, style: str = "") -> None:
        """Write a piece of text; while there is a prompt, as soon as it fills a line."""
        if self._prompt is None:
            return super().stream(text, style)
        if style != self._held[1]:
            self.end_line()
        *lines, rest = whole_lines(self._held[0] + text, self._columns)
        self._held = "", ""
        if lines:
            self._above("\n".join(lines), style)
        self._held = rest, style
        return None

    def end_line(self) -> None:
        text, style = self._held
        if self._prompt is None:
            super().end_line()
        elif text:
            self._held = "", ""
            self._above(text, style)

    def _above(self, text: str, style: str, *, error: bool = False) -> None:
        self._erase()
        super().say(text, style, error=error)
        self._draw()

    # Reading.

    async def line(self, prompt: str, editor: LineEditor | None = None) -> str | None:
        editor = editor or LineEditor()
        done = await self._edit(prompt, editor)
        return _taken(editor) if done == "enter" else None

    async def typed(self, prompt: str, editor: LineEditor) -> str:
        """A line typed while something else goes on: the prompt is there as soon as something is typed.

        Who asks the person something waits until the line is sent or empty: a sentence never answers a question.
        """
        while not self._ended:
            async with self._keyboard:
                if self._for_line:
                    self._line_goes_on.set()
                self._keys.extendleft(reversed(self._for_line))
                self._for_line.clear()
                if not await self._begun(editor):
                    continue  # Whoever asks is next.
                if await self._edit(prompt, editor, until_empty=True) == "enter" and (line := _taken(editor)).strip():
                    return line
        return await super().typed(prompt, editor)

    async def _begun(self, editor: LineEditor) -> bool:
        """Wait until something is typed; False when the person is asked something first."""
        while not editor.text and not self._ended:
            if (await race(key=self._wait_key(), asked=self._asked.wait()))[0] == "asked":
                return False
            if (key := await self._key()) is not None:
                editor.press(key)
        return bool(editor.text)

    # Asking.

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None]:
        async with super().asking():
            self._asked.set()
            if self._prompt is not None:
                self.say(_WAITING, "yellow")
            try:
                await self._take_keyboard()
                yield
            finally:
                self._asked.clear()
                self._leave_keyboard()
                self._keys.extendleft(reversed(self._for_line))
                self._for_line.clear()

    async def _take_keyboard(self) -> None:
        await self._keyboard.acquire()
        self._has_keyboard = True

    def _leave_keyboard(self) -> None:
        if self._has_keyboard:
            self._has_keyboard = False
            self._keyboard.release()

    async def settle(self) -> None:
        while await self._typed_within(self._pauses.before):
            keys = [*self._keys]
            self._keys.clear()
            await self._let_write(keys)

    async def _let_write(self, keys: Iterable[Key]) -> None:
        """What was typed is no answer, so it is a message: whoever reads messages goes on with it, then we do."""
        typed = list(keys)
        if any(isinstance(key, Paste) or (len(key) == 1 and key.isprintable()) for key in typed):
            self._for_line += typed
            if "\r" not in typed:
                self.say(_WAITING, "yellow")
            self._leave_keyboard()
            await self._line_goes_on.wait()
            self._line_goes_on.clear()
            await self._take_keyboard()

    async def choose(self, prompt: str, choices: Choices) -> str | None:
        while True:
            await self.settle()
            match await self._choose(prompt, choices):
                case Message(keys):
                    await self._let_write(keys)
                case Chosen(name):
                    return name
                case _:
                    return None

    async def _choose(self, prompt: str, choices: Choices) -> Outcome:
        """One prompt: until the person chooses, leaves, or writes something else."""
        shown, choosing = LineEditor(), Choosing(choices)
        with self._prompting(prompt, shown):
            while True:
                outcome = await self._next_outcome(choosing)
                shown.before = choosing.text
                self._draw()
                match outcome:
                    case Unclear(text):
                        self.say(f"  {possible(choices, text)}", "yellow")
                    case Chosen():
                        self._finish()
                        return outcome
                    case Message() | Left():
                        return outcome
                    case None:
                        pass

    async def _next_outcome(self, choosing: Choosing) -> Outcome | None:
        if choosing.undecided and not await self._typed_within(self._pauses.after):
            return choosing.quiet()
        key = await self._key()
        if key is None:
            return Left()
        outcome = choosing.press(key)
        if isinstance(outcome, Message):
            outcome = Message((*outcome.keys, *self._keys))
            self._keys.clear()
        return outcome

    async def _edit(self, prompt: str, editor: LineEditor, *, until_empty: bool = False) -> str:
        """Let the person edit: "enter" or "end", or "empty" when that is to be noticed."""
        with self._prompting(prompt, editor):
            done = None
            while done is None:
                key = await self._key()
                if key == "\t" and editor.completer is not None:
                    await self._complete(editor)
                else:
                    done = "end" if key is None else editor.press(key)
                if until_empty and not editor.text:
                    return "empty"
                if not self._keys:
                    self._draw()
            self._finish()
        return done

    async def _complete(self, editor: LineEditor) -> None:
        assert editor.completer is not None
        items = await editor.completer(editor.text, utf16_length(editor.before))
        for line in complete(editor, items):
            self.say(line, "dim")

    async def _key(self) -> Key | None:
        await self._wait_key()
        return self._keys.popleft() if self._keys else None

    async def _wait_key(self) -> None:
        """Until there is a key, or none will come any more."""
        while not self._keys and not self._ended:
            self._keys.extend(self._decoder.feed(await self._read()))

    async def _typed_within(self, seconds: float) -> bool:
        """Whether a key comes in that time. A slow machine looks once more before it says no."""
        try:
            async with asyncio.timeout(seconds):
                await self._wait_key()
        except TimeoutError:
            if terminal_mode.has_typed():
                self._keys.extend(self._decoder.feed(await self._read()))
        return bool(self._keys)

    # The prompt on the screen.

    def redraw(self) -> None:
        """The prompt is not on the screen any more."""
        self._row = 0
        self._draw()

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
            (text, style), self._held = self._held, ("", "")
            self.stream(text, style)

    @property
    def _columns(self) -> int:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80

    def _draw(self) -> None:
        if self._prompt is None:
            return
        self._erase()
        text, cursor, end = lay_out(*self._prompt, self._columns)
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


def _taken(editor: LineEditor) -> str:
    line = editor.text
    editor.remember(line)
    editor.clear()
    return line


@contextmanager
def key_by_key(terminal: TerminalConsole) -> Generator[None]:
    """No echo, no line editing by the kernel, pastes marked as such; all as before afterwards."""

    def enter() -> None:
        sys.stdout.write("\x1b[?2004h")
        terminal.redraw()

    def leave() -> None:
        sys.stdout.write("\x1b[?2004l")
        sys.stdout.flush()

    with terminal_mode.key_by_key(enter, leave):
        yield


__all__ = ["Pauses", "TerminalConsole", "key_by_key"]
