"""Turns the bytes of a terminal into key presses. Pure.

A key is a character, a control character, a name such as "left", or a `Paste`. Sequences nobody knows are dropped.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])", re.DOTALL)
"""A whole escape sequence: CSI, SS3, or Alt with a key."""

_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")

_NAMES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[4~": "end", "[7~": "home", "[8~": "end", "[3~": "delete",
    "[1;5C": "word-right", "[1;5D": "word-left", "f": "word-right", "b": "word-left",
}  # fmt: skip

_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"


@dataclass(frozen=True, slots=True)
class Paste:
    """Text that was pasted: its line ends are part of it."""

    text: str


Key = str | Paste


class Keys:
    """Remembers what is incomplete between two reads."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""

    def feed(self, data: bytes) -> list[Key]:
        """The keys that are complete now."""
        self._rest += self._decoder.decode(data)
        keys: list[Key] = []
        while self._rest and (step := self._next()) is not None:
            length, key = step
            self._rest = self._rest[length:]
            if key is not None:
                keys.append(key)
        return keys

    def _next(self) -> tuple[int, Key | None] | None:
        """The next key and how much it takes; None: wait for more."""
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


__all__ = ["Key", "Keys", "Paste"]
