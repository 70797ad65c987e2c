"""Makes text of hosts and agents safe to print, and shortens it. Pure."""

from __future__ import annotations

import json
from typing import Any

from ahpkit.protocol.common.state import StringOrMarkdown

_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that change the direction of the text around them. With them a command could look different from what it
is."""

_BLANK = "\u034f\u115f\u1160\u180e\u200b\u2028\u2029\u2060\u2061\u2062\u2063\u2064\u3164\ufeff\uffa0"
"""Characters that are invisible. With them a command could contain more than a person sees. Joiners are not among them,
because words need them."""

_TAGS = range(0xE0000, 0xE01F0)
"""Tag characters and variation selectors that no terminal draws. Whole sentences were hidden in them."""

_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    **{ord(kept): kept for kept in "\t\n"},
    ord("\r"): "",
    0x7F: "\u2421",
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    **{ord(char): f"\\u{ord(char):04x}" for char in _BIDI + _BLANK},
    **{code: f"\\U{code:08x}" for code in _TAGS},
}


_ESCAPED = {
    **{code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *map(ord, _BIDI + _BLANK))},
    **{code: json.dumps(chr(code))[1:-1] for code in _TAGS},
}


def printable(text: str) -> str:
    """The text with all those characters made visible that could control a terminal or deceive the reader."""
    return text.translate(_VISIBLE)


def plain(text: StringOrMarkdown | None) -> str:
    """The text of a string of the protocol that may be Markdown."""
    return text["markdown"] if isinstance(text, dict) else text or ""


def shorten(text: str, length: int) -> str:
    """At most `length` characters of the text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: max(length - 1, 0)]}…"


def whole_lines(text: str, columns: int) -> list[str]:
    """The lines of an unfinished text; the last one is incomplete. Full lines are broken between words."""
    *lines, rest = text.split("\n")
    while place := _full(rest, columns):
        lines.append(rest[:place].rstrip(" "))
        rest = rest[place:].lstrip(" ")
    return [*lines, rest]


def _full(line: str, columns: int) -> int:
    """The index at which a line has to be broken; 0 if it fits."""
    from rich.cells import cell_len  # Imported here, because only interactive use needs it.

    width = 0
    for place, char in enumerate(line):
        width += cell_len(char)
        if width > columns:
            return line.rfind(" ", 0, place + 1) + 1 or max(place, 1)
    return 0


_OWN_TEXT = 4
"""Spaces at the beginning of a line. A line that begins with at least this many is not prose but a diff, a command or a
file."""


def wrapped(text: str, columns: int) -> str:
    """Prose broken between words, with the same indentation. Lines that are indented further stay as they are."""
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, columns))


def _wrapped(line: str, columns: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip(" "))]
    if len(indent) >= _OWN_TEXT:
        return [line]
    return [indent + part for part in whole_lines(line[len(indent) :], max(columns - len(indent), 1))]


def fitting(text: str, columns: int) -> str:
    """The part of a line that fits into this many columns."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= columns else f"{set_cell_size(text, max(columns - 1, 0))}…"


def styled(text: str, style: str) -> str:
    """A line in a style, if this terminal has colours."""
    from rich.console import Console
    from rich.text import Text

    console = Console(force_terminal=True, highlight=False, width=10_000)
    with console.capture() as captured:
        console.print(Text(text, style=style or ""), end="", soft_wrap=True)
    return captured.get()


def as_json(value: Any) -> str:
    """Readable JSON. JSON escapes only some of the characters that could control a terminal; this function escapes all
    of them."""
    return json.dumps(value, indent=2, ensure_ascii=False).translate(_ESCAPED)


__all__ = ["as_json", "fitting", "plain", "printable", "shorten", "styled", "whole_lines", "wrapped"]
