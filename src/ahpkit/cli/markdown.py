"""Renders streamed Markdown on a terminal, block by block.

A block can be rendered by itself: a paragraph, a heading, a list, a table, fenced code. A finished block never changes.
The block that is being written is rendered again with every piece of text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ahpkit.cli.text import printable

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST = re.compile(r" {0,3}([-*+]|\d{1,9}[.)])\s")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_FIRST_HEADING = re.compile(r"\A#(?=\s)")
"""A heading of the first level. The renderer would centre it."""
_PADDING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$")


_LONG_CODE = 40
"""Lines of code in one block. Longer code is split into several blocks, so that no line is rendered too often."""


_LONG_LINE = 4_000
"""Characters of one line of prose in one block, for the same reason."""


class Block(NamedTuple):
    """A piece of Markdown, and whether it continues the block before it."""

    text: str
    continues: bool = False


class Blocks:
    """Splits a growing text into blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        """The complete lines of the block that is being written."""
        self._pieces: list[str] = []
        """The pieces of the line that is being written."""
        self._length = 0
        """The number of characters in these pieces."""
        self._fence = ""
        self._blank = False
        self.continues = False
        """Whether the block that is being written continues the one before it."""

    @property
    def rest(self) -> str:
        """The block that is being written, so far."""
        line = "".join(self._pieces)
        return "\n".join([*self._lines, line] if line else self._lines)

    def feed(self, text: str) -> list[Block]:
        """Add a piece of text; returns the blocks that it finished."""
        if "\n" not in text:
            self._pieces.append(text)
            self._length += len(text)
            return self._split_line()
        *lines, line = ("".join(self._pieces) + text).split("\n")
        self._pieces, self._length = [line], len(line)
        return [block for line in lines for block in self._take(line) if block.text]

    def end(self) -> Block:
        """The last block, when no more text comes."""
        self._lines = [self.rest] if self.rest else []
        self._pieces, self._length = [], 0
        return self._finish()

    def _take(self, line: str) -> list[Block]:
        """Add a complete line; returns the blocks that it ended."""
        if self._fence:
            self._lines.append(line)
            closes = line.strip().startswith(self._fence) and not line.strip().strip("`~")
            return [self._finish()] if closes else self._split_code()
        if not line.strip():
            self._blank = bool(self._lines)
            return [] if self._is_list else [self._finish()]
        ended = [self._finish()] if self._begins(line) else []
        self._lines += ["", line] if self._blank and self._lines else [line]
        self._blank = False
        if (fence := _FENCE.match(line)) is not None and len(self._lines) == 1:
            self._fence = fence[1]
        elif _HEADING.match(line):
            ended.append(self._finish())
        return ended

    def _begins(self, line: str) -> bool:
        """Whether a line begins another block."""
        if self._is_list and self._blank:
            return not (line.startswith(" ") or _LIST.match(line))
        return bool(_FENCE.match(line) or _HEADING.match(line)) and not (self._is_list and line.startswith(" "))

    @property
    def _is_list(self) -> bool:
        return bool(self._lines) and _LIST.match(self._lines[0]) is not None

    def _split_line(self) -> list[Block]:
        """Split a very long line of prose: return the part that is complete. The rest continues in the next block."""
        if self._length <= _LONG_LINE or self._fence or self._lines:
            return []
        line = "".join(self._pieces)
        at = line.rfind(" ")
        if at < _LONG_LINE // 2 or line[0] in "|>" or _LIST.match(line) or _HEADING.match(line):
            return []
        self._lines, self._pieces, self._length = [line[:at]], [line[at + 1 :]], len(line) - at - 1
        block = self._finish()
        self.continues = True
        return [block]

    def _split_code(self) -> list[Block]:
        if len(self._lines) <= _LONG_CODE:
            return []
        opening, fence = self._lines[0], self._fence
        self._lines.append(fence)
        block = self._finish()
        self._lines, self._fence, self.continues = [opening], fence, True
        return [block]

    def _finish(self) -> Block:
        block = Block("\n".join(self._lines), self.continues)
        self._lines, self._fence, self._blank, self.continues = [], "", False, False
        return block


def rendered(block: str, columns: int) -> list[str]:
    """A block as styled lines for a terminal. Control characters in it are made harmless."""
    from rich.console import Console  # Imported here, because only a person at a terminal needs it.
    from rich.markdown import Markdown

    console = Console(width=max(columns - 1, 10), force_terminal=True, highlight=False, emoji=False)
    with console.capture() as captured:
        text = _FIRST_HEADING.sub("##", printable(block))
        console.print(Markdown(text, code_theme="ansi_dark", hyperlinks=False))
    lines = [_PADDING.sub(r"\1", line) for line in captured.get().split("\n")]
    while lines and not _visible(lines[-1]):
        lines.pop()
    while lines and not _visible(lines[0]):
        lines.pop(0)
    return lines


def _visible(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line).strip()


__all__ = ["Blocks", "rendered"]
