"""Converts the output of a terminal to actions, and limits how much of it is kept. Pure.

Text and the time in, actions out: text, and the title, directory and commands in escape sequences. It understands OSC 0
and 2 (title), OSC 7 (directory), and the marks of shell integration, OSC 133 and OSC 633. Marks are removed from the
text; everything else stays.

The reducer keeps all output. To limit it, the host dispatches actions that clear the terminal and repeat its last part.
So every replica, live or from a snapshot, has the same content, and none grows without end.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

from ahpkit.platform.files import local_path
from ahpkit.protocol.terminal import (
    TerminalAction,
    TerminalContentPart,
    terminal_cleared,
    terminal_command_detection_available,
    terminal_command_executed,
    terminal_command_finished,
    terminal_cwd_changed,
    terminal_data,
    terminal_title_changed,
)

_MAX_HELD = 4096
"""Characters of a sequence that may be kept back until its end arrives. Longer ones carry images, not marks."""

_MAX_TITLE = 256
"""Characters of a title."""

_SPOKEN = re.compile(r"\x1b\](0|2|7|133|633);([^\x07\x1b]*)(?:\x07|\x1b\\)")

_UNFINISHED = re.compile(r"\x1b(?:\][^\x07\x1b]*\x1b?|\[[0-?]*[ -/]*|[ -/]*)\Z")

_ESCAPED = re.compile(r"\\(?:\\|x([0-9a-fA-F]{2}))")

_SEQUENCE = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])")


class OutputReader:
    """Reads one terminal's output, however it is cut into pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._ids = count(1)
        self._detects = False
        self._command: tuple[str, int] | None = None
        """The id and the start time of the command that runs."""
        self._command_line = ""
        self._title: str | None = None
        self._cwd: str | None = None

    def feed(self, text: str, *, now: int) -> list[TerminalAction]:
        """Actions for `text`, in order; titles and directories after it, and only the last of each."""
        text = self._held + text
        unfinished = _UNFINISHED.search(text)
        held = unfinished.group() if unfinished else ""
        self._held = held if len(held) <= _MAX_HELD else ""
        return self._actions(text.removesuffix(self._held), now)

    def finish(self, *, now: int) -> list[TerminalAction]:
        """The terminal has ended: actions for text that was kept back, and for the end of a command that was
        running."""
        held, self._held = self._held, ""
        return [*self._actions(held, now), *self._finished("", now)]

    def _actions(self, text: str, now: int) -> list[TerminalAction]:
        actions: list[TerminalAction] = []
        shown, start = "", 0
        for match in _SPOKEN.finditer(text):
            kind, body = match.groups()
            if kind in ("133", "633"):
                shown += text[start : match.start()]
                start = match.end()
                if marked := list(self._mark(body, now)):
                    actions += [*_data(shown), *marked]
                    shown = ""
            elif kind == "7":
                self._cwd = _directory(body) or self._cwd
            else:
                self._title = _printable(body)[:_MAX_TITLE] or self._title
        return [*actions, *_data(shown + text[start:]), *self._news()]

    def _news(self) -> Iterator[TerminalAction]:
        title, self._title = self._title, None
        cwd, self._cwd = self._cwd, None
        if title is not None:
            yield terminal_title_changed(title=title)
        if cwd is not None:
            yield terminal_cwd_changed(cwd=cwd)

    def _mark(self, body: str, now: int) -> Iterator[TerminalAction]:
        mark, _, rest = body.partition(";")
        if not self._detects:
            self._detects = True
            yield terminal_command_detection_available()
        if mark == "E":
            self._command_line = _ESCAPED.sub(_unescape, rest.partition(";")[0])
        elif mark == "C":
            yield from self._finished("", now)
            yield self._executed(now)
        elif mark == "D":
            yield from self._finished(rest.partition(";")[0], now)
        elif mark == "P" and rest.startswith("Cwd="):
            self._cwd = _path_uri(_ESCAPED.sub(_unescape, rest.removeprefix("Cwd="))) or self._cwd

    def _executed(self, now: int) -> TerminalAction:
        id, line = f"command-{next(self._ids)}", self._command_line
        self._command, self._command_line = (id, now), ""
        return terminal_command_executed(command_id=id, command_line=line, timestamp=now)

    def _finished(self, code: str, now: int) -> Iterator[TerminalAction]:
        if self._command is None:
            return
        (id, started), self._command = self._command, None
        exit_code = int(code) if re.fullmatch(r"-?[0-9]{1,10}", code) else None
        yield terminal_command_finished(command_id=id, exit_code=exit_code, duration_ms=max(0, now - started))


def plain(text: str) -> str:
    """Text without escape sequences, with plain newlines: what a pipe would have carried."""
    return _SEQUENCE.sub("", text).replace("\r\n", "\n")


def _data(text: str) -> Iterator[TerminalAction]:
    if text:
        yield terminal_data(data=text)


def _directory(uri: str) -> str | None:
    path = local_path(uri, any_host=True)  # A shell puts its machine's name here.
    return None if path is None else path.as_uri()


def _path_uri(path: str) -> str | None:
    return Path(path).as_uri() if path.startswith("/") else None


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text)).strip()


def _unescape(match: re.Match[str]) -> str:
    code: str | None = match.group(1)
    return chr(int(code, 16)) if code else "\\"


MAX_KEPT = 512 * 1024
"""Characters of a terminal's content at which the oldest is forgotten. As JSON it stays below 4 MiB, even if
every character has to be escaped."""

KEPT = 128 * 1024
"""Characters that remain then. This is more than terminals usually keep, and only a quarter of the limit, so that it
happens rarely."""

_PART = 64
"""Characters that a part counts beside its text."""

_NEAR = 4096
"""Characters that may be dropped so that the content begins with a whole line."""

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
    return [terminal_cleared(), *chain.from_iterable(map(_replayed, [*screen, *kept]))]


def _line_start(text: str, at: int) -> int:
    """The beginning of the next line, if it is near. A cut inside an escape sequence would show the rest of the
    sequence."""
    return text.find("\n", at, at + _NEAR) + 1 or at


def _replayed(part: TerminalContentPart) -> Iterator[TerminalAction]:
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
        """The text, and whether earlier text is missing. Characters are never cut in two."""
        data = "".join(self._pieces).replace("\r\n", "\n").encode()
        cut = len(data) - self._limit
        return data[max(cut, 0) :].decode(errors="ignore"), self._dropped or cut > 0


__all__ = ["KEPT", "MAX_KEPT", "OutputReader", "Tail", "forget_oldest", "plain", "weight"]
