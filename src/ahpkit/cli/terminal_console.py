"""Reads a terminal key by key, so that what happens elsewhere can be shown above the prompt.

The module is long because the keys, the prompt and what is drawn above it depend on one state of the screen.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from ahpkit.cli.choosing import Choices, Choosing, Chosen, Message, Outcome, QuestionLeft, UnclearChoice, possible
from ahpkit.cli.console import Console
from ahpkit.cli.line_editor import Key, Keys, LineEditor, Paste, complete, lay_out, utf16_length
from ahpkit.cli.markdown import Block, Blocks, rendered
from ahpkit.cli.text import fitting, printable, styled, whole_lines, wrapped
from ahpkit.platform import terminal_mode
from ahpkit.wire.tasks import wait_first

_ROOM = 6
"""Rows of the screen that are reserved for the status line and the line that is typed."""

_NARROW = 40
"""On a screen with fewer columns no status line is shown."""

_QUICK = 0.02
"""Seconds that rendering may take each time something comes."""

_SELDOM = 5
"""Rendering that takes longer than this many seconds gets at most one fifth of the time."""

_WAITING = "! the agent waits for an answer; send or clear this line first"


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds without other keys around a key press. They distinguish a decision by one key from the beginning of a
    sentence."""

    before: float = 0.3
    """Keys that come sooner than this after a question was shown were typed before the person read it."""
    after: float = 0.35
    """A key that is followed by another one sooner than this is the first letter of a sentence."""


@dataclass(frozen=True, slots=True)
class _Area:
    """What is drawn below the finished output, up to the cursor."""

    rows: list[str]
    widest: int
    """The number of columns of the widest row."""
    cursor: int | None
    """The column of the cursor in the line below the rows; None if the cursor is at the end of the last row."""

    def above(self, columns: int) -> int:
        """The number of rows from the beginning of the area to the cursor. On a terminal that became narrower, lines
        take more rows."""
        heights = len(self.rows) if columns >= self.widest else sum(_height(row, columns) for row in self.rows)
        return heights - 1 if self.cursor is None else heights + self.cursor // columns


def _height(row: str, columns: int) -> int:
    """The number of rows that a styled line takes on a screen."""
    from rich.text import Text  # Imported here: only a window that becomes narrower needs it.

    return max(-(-Text.from_ansi(row).cell_len // columns), 1)


class TerminalConsole(Console):
    """A person at a terminal."""

    interactive = True

    def __init__(self, pauses: Pauses | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._pauses = pauses or Pauses()
        self._decoder = Keys()
        self._keys: deque[Key] = deque()
        self._keyboard = asyncio.Lock()
        """Held by the task that reads keys while other things go on."""
        self._asked = asyncio.Event()
        self._has_keyboard = False
        """Whether a question reads the keys now."""
        self._for_line: list[Key] = []
        """Keys that were typed at a question but do not answer it. The next line begins with them."""
        self._line_goes_on = asyncio.Event()
        self._came_back = asyncio.Event()
        """Set when the person comes back from elsewhere (Ctrl-Z, then `fg`). Then a question may no longer be
        visible."""
        self._prompt: tuple[str, LineEditor] | None = None
        self._status: str | None = None
        self._panel: list[str] = []
        """Lines that change in place, above the status line."""
        self._held = ("", "")
        """A streamed text that is not a complete line yet, and its style."""
        self._blocks: Blocks | None = None
        """The blocks of the Markdown text that is being streamed."""
        self._live: list[str] = []
        """The rendered lines of the unfinished block."""
        self._written = 0
        """The number of lines of that block that are already written permanently."""
        self._between = False
        """Whether a block was written before, so that an empty line is needed before the next one."""
        self._next_look = 0.0
        """The time at which that block is rendered again, if rendering takes long."""
        self._later: asyncio.TimerHandle | None = None
        """The timer that renders the text that came meanwhile."""
        self._width = 0
        """The number of columns for which the unfinished text is broken into lines."""
        self._area: _Area | None = None
        """What is drawn now; None if nothing is."""

    # Writing. Below the finished output is an area that is redrawn: unfinished text, status line and prompt.

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        """Write a line above the area."""
        self.end_line()
        self._erase()
        (self._err if error else self._out)(f"{wrapped(text, self._columns)}\n", style)
        self._draw()

    def stream(self, text: str, style: str = "") -> None:
        """Write a piece of text. The area shows a line that is not complete."""
        if not text:
            return
        if style != self._held[1] or self._blocks is not None:
            self.end_line()
        self._width = self._columns
        *lines, rest = whole_lines(self._held[0] + text, self._width)
        self._held = rest, style
        self._erase()
        if lines:
            self._out("".join(f"{line}\n" for line in lines), style)
        self._draw()

    def stream_markdown(self, text: str) -> None:
        """Write a piece of Markdown. Finished blocks are written permanently; the area shows the unfinished one."""
        if self._blocks is None:
            self.end_line()
            self._blocks = Blocks()
        finished = self._blocks.feed(text)
        if finished or self._clock() >= self._next_look:
            self._show_markdown(self._blocks, finished)
        elif self._later is None:
            wait = self._next_look - self._clock()
            self._later = asyncio.get_running_loop().call_later(wait, self._catch_up)

    def _show_markdown(self, blocks: Blocks, finished: Sequence[Block]) -> None:
        """Show the new blocks. A block whose rendering takes long is rendered less often, so that keys and Ctrl-C are
        handled in time."""
        begun = self._clock()
        self._erase()
        for block in finished:
            self._write_block(block)
        rest = blocks.rest
        self._live = rendered(rest, self._block_width()) if rest.strip() else []
        self._keep_area_small()
        self._draw()
        took = self._clock() - begun
        self._next_look = begun + took * _SELDOM if took > _QUICK else 0.0

    def _catch_up(self) -> None:
        self._later = None
        if self._blocks is not None:
            self._show_markdown(self._blocks, ())

    def _write_block(self, block: Block) -> None:
        lines = rendered(block.text, self._block_width())[self._written :]
        if self._between and not self._written and not block.continues:
            self._raw("\n")
        self._raw("".join(f"{line}\n" for line in lines))
        self._between, self._written = True, 0

    def _block_width(self) -> int:
        """The number of columns of a block. It stays the same once the first lines are written, because other widths
        would break the lines at other words."""
        if not self._written:
            self._width = self._columns
        return self._width

    def _keep_area_small(self) -> None:
        """Write the first lines of a long block permanently, because the area must fit on the screen."""
        too_many = len(self._live) - self._written - max(self._lines - _ROOM, 1)
        if too_many > 0:
            if self._has_gap():
                self._raw("\n")
            self._raw("".join(f"{line}\n" for line in self._live[self._written : self._written + too_many]))
            self._written += too_many

    def _has_gap(self) -> bool:
        """Whether an empty line is above the block that is being written."""
        return self._between and not self._written and not (self._blocks is not None and self._blocks.continues)

    def status(self, text: str | None) -> None:
        self._erase()
        self._status = text
        if text is None and self._panel:  # The last state of the panel stays on the screen.
            self.end_line()
            self._erase()
            self._out("".join(f"{line}\n" for line in self._panel), "cyan")
            self._panel = []
        self._draw()

    def panel(self, lines: Sequence[str]) -> bool:
        if self._status is None:
            return False
        self._erase()
        self._panel = list(lines)
        self._draw()
        return True

    def end_line(self) -> None:
        """End the unfinished line of text."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        self._erase()
        if self._blocks is not None:
            rest, self._blocks, self._live = self._blocks.end(), None, []
            if rest.text.strip():
                self._write_block(rest)
            self._between, self._written = False, 0
        (text, style), self._held = self._held, ("", "")
        if text:
            self._out(f"{text}\n", style)
        self._draw()

    def _raw(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    # Reading lines.

    async def line(self, prompt: str, editor: LineEditor | None = None) -> str | None:
        editor = editor or LineEditor()
        done = await self._edit(prompt, editor)
        return _taken(editor) if done == "enter" else None

    async def typed(self, prompt: str, editor: LineEditor) -> str:
        """A line that is typed while something else goes on. The prompt appears as soon as something is typed.

        Questions wait until the line is sent or empty, so that a sentence never answers a question.
        """
        while not self._ended:
            async with self._keyboard:
                if told := bool(self._for_line):
                    self._line_goes_on.set()
                self._keys.extendleft(reversed(self._for_line))
                self._for_line.clear()
                if not await self._begun(editor):
                    continue  # Let the question read the keys.
                if self._asked.is_set() and not told:  # A key and a question came at the same moment.
                    self.say(_WAITING, "yellow")
                if await self._edit(prompt, editor, until_empty=True) == "enter" and (line := _taken(editor)).strip():
                    return line
        return await super().typed(prompt, editor)

    async def _begun(self, editor: LineEditor) -> bool:
        """Wait until something is typed. Returns False if the person is asked something first."""
        while not editor.text and not self._ended:
            if (await wait_first(key=self._wait_key(), asked=self._asked.wait()))[0] == "asked":
                return False
            if (key := await self._key()) is not None:
                editor.press(key)
        return bool(editor.text)

    # Asking questions.

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None]:
        async with super().asking():
            self._asked.set()
            if self._prompt is not None:
                self.say(_WAITING, "yellow")
            else:
                self._draw()
            try:
                await self._take_keyboard()
                yield
            finally:
                self._asked.clear()
                self._leave_keyboard()
                self._draw()
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
            await self._let_write(self._taken_keys())

    async def _let_write(self, keys: Iterable[Key]) -> None:
        """Let the person finish a message, because the typed text does not answer the question. After the message the
        question is asked again."""
        typed = list(keys)
        if any(isinstance(key, Paste) or (len(key) == 1 and key.isprintable()) for key in typed):
            self._for_line += typed
            if "\r" not in typed:
                self.say(_WAITING, "yellow")
            self._leave_keyboard()
            await self._line_goes_on.wait()
            self._line_goes_on.clear()
            await self._take_keyboard()

    async def choose(self, prompt: str, choices: Choices, show: Callable[[], object] = lambda: None) -> str | None:
        self._came_back.clear()
        while True:
            if self._came_back.is_set():
                self._came_back.clear()
                show()
            await self.settle()
            match await self._choose(prompt, choices):
                case Message(keys):
                    await self._let_write(keys)
                case Chosen(name):
                    return name
                case _:
                    return None

    async def _choose(self, prompt: str, choices: Choices) -> Outcome:
        """Show one prompt until the person chooses, leaves, or types something else."""
        shown, choosing = LineEditor(), Choosing(choices)
        with self._prompting(prompt, shown):
            while True:
                outcome = await self._next_outcome(choosing)
                shown.before = choosing.text
                self._draw()
                match outcome:
                    case UnclearChoice(text):
                        self.say(f"  {possible(choices, text)}", "yellow")
                    case Chosen():
                        self._finish()
                        return outcome
                    case Message() | QuestionLeft():
                        return outcome
                    case None:
                        pass

    async def _next_outcome(self, choosing: Choosing) -> Outcome | None:
        quiet = choosing.undecided and not await self._typed_within(self._pauses.after)
        if not quiet:
            await wait_first(came_back=self._came_back.wait(), key=self._wait_key())
        # The question may be out of sight, so keys that were typed meanwhile do not answer it.
        if self._came_back.is_set():
            return Message((*choosing.text, *self._taken_keys()))
        if quiet:
            return choosing.quiet()
        key = await self._key()
        if key is None:
            return QuestionLeft()
        if key in ("\r", "\n") and choosing.text and self._keys:
            return Message((self._pasted(f"{choosing.text}\n"),))
        outcome = choosing.press(key)
        if isinstance(outcome, Message):
            outcome = Message((*outcome.keys, *self._taken_keys()))
        return outcome

    def _taken_keys(self) -> list[Key]:
        """Remove the keys that wait, and return them."""
        keys = [*self._keys]
        self._keys.clear()
        return keys

    def _pasted(self, begun: str) -> Paste:
        """Treat keys that came together and continue after the end of a line as a paste, even if the terminal does not
        mark pastes."""
        texts = [key.text if isinstance(key, Paste) else key for key in self._taken_keys()]
        text = "".join(text for text in texts if len(text) == 1 or "\n" in text).replace("\r", "\n")
        return Paste(begun + text.rstrip("\n"))

    async def _edit(self, prompt: str, editor: LineEditor, *, until_empty: bool = False) -> str:
        """Let the person edit a line. Returns "enter" or "end"; with `until_empty` also "empty" when the line became
        empty."""
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
        """Wait until there is a key, or until no more can come."""
        while not self._keys and not self._ended:
            self._keys.extend(self._decoder.feed(await self._read(), self._clock()))

    async def _typed_within(self, seconds: float) -> bool:
        """Whether a key comes within these seconds. On a slow machine the keys are looked at once more before the
        answer is no."""
        try:
            async with asyncio.timeout(seconds):
                await self._wait_key()
        except TimeoutError:
            if terminal_mode.has_typed():
                self._keys.extend(self._decoder.feed(await self._read(), self._clock()))
        return bool(self._keys)

    # The area on the screen.

    def lose_sight(self) -> None:
        """The area is no longer where it was drawn, because the shell wrote below it. A new area is begun with the next
        drawing."""
        self._area = None

    def redraw(self) -> None:
        """Draw the area again, because the person has come back."""
        self._came_back.set()
        self._draw()

    @contextmanager
    def _prompting(self, prompt: str, editor: LineEditor) -> Generator[None]:
        self._erase()
        self._prompt = prompt, editor
        self._draw()
        try:
            yield
        finally:
            self._erase()
            self._prompt = None
            self._draw()

    @property
    def _columns(self) -> int:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80

    @property
    def _lines(self) -> int:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24

    def _rows(self) -> list[str]:
        """The rows above the prompt: unfinished text, panel and status line."""
        rows = [*([""] if self._live and self._has_gap() else []), *self._live[self._written :]]
        if self._held[0]:
            rows.append(styled(printable(self._held[0]), self._held[1]))
        room = max(self._lines - _ROOM - len(rows), 1)
        shown = self._panel if len(self._panel) <= room else [*self._panel[: room - 1], "  …"]
        rows += [styled(printable(fitting(line, self._columns - 1)), "cyan") for line in shown]
        if self._status is not None and not self._asked.is_set() and self._columns >= _NARROW:
            rows.append(styled(printable(fitting(self._status, self._columns - 1)), "dim"))
        return rows

    def _draw(self) -> None:
        self._erase()
        rows, columns = self._rows(), self._columns
        widest = max(self._width, columns)
        if self._prompt is None:
            if rows:
                self._raw("\n".join(rows))
                self._area = _Area(rows, widest, None)
            return
        text, cursor, end = lay_out(*self._prompt, columns)
        # At the right edge a terminal does not begin the next row before it gets another character.
        wrap = "\n" if end[0] and not end[1] else ""
        up = end[0] - cursor[0]
        place = "\r" + (f"\x1b[{up}A" if up else "") + (f"\x1b[{cursor[1]}C" if cursor[1] else "")
        self._raw("".join(f"{row}\n" for row in rows) + text + wrap + place)
        self._area = _Area(rows, widest, cursor[0] * columns + cursor[1])

    def _erase(self) -> None:
        if self._area is not None:
            above = self._area.above(self._columns)
            self._raw("\r" + (f"\x1b[{above}A" if above else "") + "\x1b[J")
            self._area = None

    def _finish(self) -> None:
        """Leave the typed line on the screen and continue below it."""
        assert self._prompt is not None
        prompt, editor = self._prompt
        editor.before, editor.after = editor.text, ""
        self._erase()
        self._prompt = None
        self.end_line()
        self._erase()
        self._raw(lay_out(prompt, editor, self._columns).text + "\n")
        self._draw()


def _taken(editor: LineEditor) -> str:
    line = editor.text
    editor.remember(line)
    editor.clear()
    return line


@contextmanager
def key_by_key(terminal: TerminalConsole) -> Generator[None]:
    """Switch off echo and the kernel's line editing, and have pastes marked. At the end of the block everything is
    restored."""

    def enter() -> None:
        sys.stdout.write("\x1b[?2004h")
        terminal.redraw()

    def leave() -> None:
        sys.stdout.write("\x1b[?2004l")
        sys.stdout.flush()

    with terminal_mode.key_by_key(enter, leave, terminal.lose_sight):
        yield


__all__ = ["Pauses", "TerminalConsole", "key_by_key"]
