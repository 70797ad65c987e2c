"""Edits a line: key presses, text, cursor, history, completion, and its layout on the screen. Pure.

The keys are those of every shell: arrows, Home, End, Ctrl-A E B F U K W, Backspace, Delete, and Ctrl-D at the end. A
key is a character, a control character, a name such as "left", or a `Paste`. Unknown sequences are dropped.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from ahpkit.cli.text import printable, shorten
from ahpkit.protocol.chat.commands import CompletionItem

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O\x1b])", re.DOTALL)
"""One complete escape sequence: CSI, SS3, or Alt with a key. Two Esc characters are not Alt with Esc, because the
second one may begin a sequence."""

_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")

_NAMES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[4~": "end", "[7~": "home", "[8~": "end", "[3~": "delete",
    "[1;5C": "word-right", "[1;5D": "word-left", "f": "word-right", "b": "word-left",
}  # fmt: skip

_AT_ONCE = 0.5
"""Seconds within which a terminal sends the rest of a sequence. An Esc with nothing after it is a key that does
nothing."""

_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"


@dataclass(frozen=True, slots=True)
class Paste:
    """Text that was pasted. Line ends in it belong to the text."""

    text: str


Key = str | Paste


class Keys:
    """Reads keys from the bytes of a terminal. Incomplete sequences are kept for the next read."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._fed = 0.0

    def feed(self, data: bytes, now: float) -> list[Key]:
        """Add bytes that came at `now` (in seconds); returns the keys that are complete."""
        if self._rest == "\x1b" and now - self._fed > _AT_ONCE:
            self._rest = ""
        self._fed = now
        self._rest += self._decoder.decode(data)
        keys: list[Key] = []
        while self._rest and (step := self._next()) is not None:
            length, key = step
            self._rest = self._rest[length:]
            if key is not None:
                keys.append(key)
        return keys

    def _next(self) -> tuple[int, Key | None] | None:
        """The next key and how many characters it takes; None if more bytes are needed."""
        if self._rest.startswith(_PASTE_BEGIN):
            return self._paste()
        if self._rest[0] != "\x1b":
            return 1, self._rest[0]
        if (sequence := _SEQUENCE.match(self._rest)) is None:
            return None if _UNFINISHED.fullmatch(self._rest) else (1, None)
        return sequence.end(), _NAMES.get(sequence.group()[1:])

    def _paste(self) -> tuple[int, Key] | None:
        end = self._rest.find(_PASTE_END)
        if end < 0:
            return None
        text = self._rest[len(_PASTE_BEGIN) : end].replace("\r\n", "\n").replace("\r", "\n")
        return end + len(_PASTE_END), Paste(text)


Completer = Callable[[str, int], Awaitable[Sequence[CompletionItem]]]
"""Returns completions for a place in a text. The place is counted in UTF-16 code units."""

_END_OF_INPUT = "\x04"

_LAST_WORD = re.compile(r"\S*\s*\Z")
_FIRST_WORD = re.compile(r"\A\s*\S*")


class LineEditor:
    """The line that a person is typing. `press` returns when the person is done; `text` stays until `clear`."""

    def __init__(self, completer: Completer | None = None) -> None:
        """`completer` finds what the Tab key completes. Without a completer, Tab types a space."""
        self.before = ""
        """The text before the cursor."""
        self.after = ""
        self.history: list[str] = []
        self._place = 0
        """The index of the line of the history that is shown. The length of the history stands for the new line."""
        self._new = ""
        self.completer = completer

    @property
    def text(self) -> str:
        return self.before + self.after

    def clear(self) -> None:
        self._show("")
        self._place = len(self.history)

    def remember(self, line: str) -> None:
        """Add a line to the history."""
        if line.strip() and self.history[-1:] != [line]:
            self.history.append(line)
        self._place = len(self.history)

    def press(self, key: Key) -> str | None:
        """Take a key. Returns "enter" or "end" when the person is done, else None."""
        if isinstance(key, Paste):
            self.before += key.text.rstrip("\n")
        elif key in "\r\n":
            return "enter"
        elif key == _END_OF_INPUT and not self.text:
            return "end"
        elif key in _ACTIONS:
            _ACTIONS[key](self)
        elif len(key) == 1 and key >= " " and key != "\x7f":
            self.before += key
        elif key == "\t":
            self.before += " "
        return None

    # What each key does.

    def _show(self, text: str) -> None:
        self.before, self.after = text, ""

    def _left(self) -> None:
        self.before, self.after = self.before[:-1], self.before[-1:] + self.after

    def _right(self) -> None:
        self.before, self.after = self.before + self.after[:1], self.after[1:]

    def _home(self) -> None:
        self.before, self.after = "", self.text

    def _end(self) -> None:
        self.before, self.after = self.text, ""

    def _word_left(self) -> None:
        word = _last_word(self.before)
        self.before, self.after = self.before[: len(self.before) - len(word)], word + self.after

    def _word_right(self) -> None:
        found = _FIRST_WORD.match(self.after)
        word = found.group() if found else ""
        self.before, self.after = self.before + word, self.after[len(word) :]

    def _backspace(self) -> None:
        self.before = self.before[:-1]

    def _delete(self) -> None:
        self.after = self.after[1:]

    def _delete_before(self) -> None:
        self.before = ""

    def _delete_after(self) -> None:
        self.after = ""

    def _delete_word(self) -> None:
        self.before = self.before[: len(self.before) - len(_last_word(self.before))]

    def _older(self) -> None:
        if self._place == len(self.history):
            self._new = self.text
        self._go(self._place - 1)

    def _newer(self) -> None:
        self._go(self._place + 1)

    def _go(self, place: int) -> None:
        if 0 <= place <= len(self.history):
            self._place = place
            self._show(self._new if place == len(self.history) else self.history[place])


def _last_word(text: str) -> str:
    found = _LAST_WORD.search(text)
    return found.group() if found else ""


_ACTIONS: dict[str, Callable[[LineEditor], None]] = {
    name: getattr(LineEditor, method)
    for method, names in {
        "_left": ("left", "\x02"),
        "_right": ("right", "\x06"),
        "_home": ("home", "\x01"),
        "_end": ("end", "\x05"),
        "_word_left": ("word-left",),
        "_word_right": ("word-right",),
        "_backspace": ("\x7f", "\x08"),
        "_delete": ("delete", "\x04"),
        "_delete_before": ("\x15",),
        "_delete_after": ("\x0b",),
        "_delete_word": ("\x17",),
        "_older": ("up", "\x10"),
        "_newer": ("down", "\x0e"),
    }.items()
    for name in names
}


class Layout(NamedTuple):
    """The rows and columns that a prompt and a line take on a screen, counted from the beginning of the prompt."""

    text: str
    cursor: tuple[int, int]
    end: tuple[int, int]


def lay_out(prompt: str, editor: LineEditor, columns: int) -> Layout:
    """Compute the layout of a line on a screen with that many columns. A line end that was pasted is shown as a
    sign."""
    before, after = (printable(text.replace("\n", "⏎")) for text in (prompt + editor.before, editor.after))
    cursor = _advance((0, 0), before, columns)
    return Layout(before + after, cursor, _advance(cursor, after, columns))


def _advance(position: tuple[int, int], text: str, columns: int) -> tuple[int, int]:
    from rich.cells import cell_len  # Imported here, because only interactive use needs it.

    row, column = position
    for char in text:
        width = cell_len(char)
        if column + width > columns:
            row, column = row + 1, 0
        column += width
        if column == columns:
            row, column = row + 1, 0
    return row, column


_SHOWN = 40
"""Choices that are shown at once. Of the others, only the number is shown."""

_LONGEST = 70
"""Characters of a description, so that it fits into one line of most screens."""


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def complete(editor: LineEditor, items: Sequence[CompletionItem]) -> Sequence[str]:
    """Insert the text that all completions have in common. If there is none, return the choices to show."""
    if not items:
        return ()
    start, end = _range(editor, items[0])
    common = _common_beginning([item["insertText"] for item in items])
    typed = editor.text[start : len(editor.before)]
    certain = typed.lstrip("/@#").lower() in common.lower() and len(common) > len(typed)
    if len(items) > 1 and not certain:
        more = len(items) - _SHOWN
        said = [f"  … and {more} more: type on, and press Tab again"] if more > 0 else []
        return [*(_describe(item) for item in items[:_SHOWN]), *said]
    editor.before, editor.after = editor.text[:start] + common, editor.text[end:]
    return ()


def _range(editor: LineEditor, item: CompletionItem) -> tuple[int, int]:
    cursor = utf16_length(editor.before)
    start, end = item.get("rangeStart", cursor), item.get("rangeEnd", cursor)
    return _characters(editor.text, start), _characters(editor.text, end)


def _characters(text: str, offset: int) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")[: offset * 2].decode("utf-16-le", "ignore"))


def _common_beginning(texts: Sequence[str]) -> str:
    # In alphabetical order the first and the last text differ most, so comparing these two is enough.
    same = takewhile(lambda pair: pair[0] == pair[1], zip(min(texts), max(texts), strict=False))
    return "".join(char for char, _ in same)


def _describe(item: CompletionItem) -> str:
    about = str(item["attachment"].get("_meta", {}).get("description", ""))
    return f"  {item['insertText'].strip():16}  {shorten(about, _LONGEST)}".rstrip()


__all__ = ["Completer", "Key", "Keys", "Layout", "LineEditor", "Paste", "complete", "lay_out", "utf16_length"]
