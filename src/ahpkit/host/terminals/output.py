"""Converts what a terminal printed to actions: text, and the title, directory and commands in escape sequences.

Pure: text and the time in, actions out. It understands OSC 0 and 2 (title), OSC 7 (directory), and the marks of shell
integration, OSC 133 and OSC 633. Marks are removed from the text; everything else stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ahpkit.platform.files import local_path
from ahpkit.protocol.terminal import (
    TerminalAction,
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
        """Id and start of the command that runs."""
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
        """The terminal has ended: what was kept back, and the end of a command that was running."""
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


__all__ = ["OutputReader", "plain"]
