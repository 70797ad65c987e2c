"""Limits how much output of a terminal is kept: in its state, and for the agent that runs it. Pure.

The reducer keeps all output. To limit it, the host dispatches actions that clear the terminal and repeat its last part.
So every replica, live or from a snapshot, holds the same, and none grows without end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain

from ahpkit.host.terminals.output import plain
from ahpkit.protocol.terminal import (
    TerminalAction,
    TerminalContentPart,
    terminal_cleared,
    terminal_command_executed,
    terminal_command_finished,
    terminal_data,
)

MAX_KEPT = 512 * 1024
"""Characters of a terminal's content at which the oldest is forgotten. As JSON it stays below 4 MiB, even if
every character has to be escaped."""

KEPT = 128 * 1024
"""Characters that are left then: more lines than terminals usually keep, and only a quarter, so that this happens
rarely."""

_PART = 64
"""Characters that a part counts beside its text."""

_NEAR = 4096
"""Characters given up to begin with a whole line."""

_ENTER, _LEAVE = "\x1b[?1049h", "\x1b[?1049l"
"""A full-screen program takes the alternate screen, and gives it back."""


def weight(action: TerminalAction) -> int:
    """What an action adds to a terminal's content."""
    if action["type"] == "terminal/data":
        return len(action["data"])
    return _PART + len(action["commandLine"]) if action["type"] == "terminal/commandExecuted" else 0


def forget_oldest(content: list[TerminalContentPart], *, keep: int = KEPT) -> list[TerminalAction]:
    """Actions after which a terminal shows only the last `keep` characters of `content`."""
    kept: deque[TerminalContentPart] = deque()
    dropped = list(content)
    while dropped and keep > 0:
        part = dropped.pop()
        text = _text(part)
        if len(text) > keep:
            start = _line_start(text, len(text) - keep)
            dropped.append({"type": "unclassified", "value": text[:start]})
            part = _cut(part, text[start:])
        keep -= len(text) + _PART
        kept.appendleft(part)
    screen: list[TerminalContentPart] = (
        [{"type": "unclassified", "value": _ENTER}] if _on_alternate_screen(dropped) else []
    )
    return [terminal_cleared(), *chain.from_iterable(map(_said_again, [*screen, *kept]))]


def _line_start(text: str, at: int) -> int:
    """Where the next line begins, if that is near: a cut inside an escape sequence would show its rest."""
    return text.find("\n", at, at + _NEAR) + 1 or at


def _said_again(part: TerminalContentPart) -> Iterator[TerminalAction]:
    if part["type"] == "command":
        id, line = part["commandId"], part["commandLine"]
        yield terminal_command_executed(command_id=id, command_line=line, timestamp=part["timestamp"])
    if text := _text(part):
        yield terminal_data(data=text)
    if part["type"] == "command" and part["isComplete"]:
        code, took = part.get("exitCode"), part.get("durationMs")
        yield terminal_command_finished(command_id=part["commandId"], exit_code=code, duration_ms=took)


def _cut(part: TerminalContentPart, text: str) -> TerminalContentPart:
    """The part with less text."""
    if part["type"] == "command":
        return {**part, "output": text}
    return {**part, "value": text}


def _text(part: TerminalContentPart) -> str:
    return str(part["output"] if part["type"] == "command" else part["value"])


def _on_alternate_screen(dropped: list[TerminalContentPart]) -> bool:
    for part in reversed(dropped):
        entered, left = _text(part).rfind(_ENTER), _text(part).rfind(_LEAVE)
        if entered != left:
            return entered > left
    return False


class Tail:
    """The last bytes of a terminal's output as plain text."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[str] = deque()
        self._size = 0
        self._dropped = False

    def add(self, text: str) -> None:
        """Take output that is not cut inside an escape sequence."""
        self._pieces.append(plain(text))
        self._size += len(self._pieces[-1])
        while self._size - len(self._pieces[0]) > self._limit:
            self._size -= len(self._pieces.popleft())
            self._dropped = True

    def clear(self) -> None:
        """Drop the text: nobody will read it."""
        self._pieces.clear()
        self._size = 0

    def read(self) -> tuple[str, bool]:
        """The text, and whether something before it is missing. A character is never cut."""
        data = "".join(self._pieces).replace("\r\n", "\n").encode()
        cut = len(data) - self._limit
        return data[max(cut, 0) :].decode(errors="ignore"), self._dropped or cut > 0


__all__ = ["KEPT", "MAX_KEPT", "Tail", "forget_oldest", "weight"]
