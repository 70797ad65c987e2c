"""Writes lines and streamed text: coloured on a terminal, plain elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from ahpkit.cli.text import printable

Writer = Callable[[str, str], None]
"""Writes a text in a style at once."""


class Output:
    """Standard output and standard error of one command. A line always begins on a line of its own."""

    def __init__(self) -> None:
        self._out = _writer(sys.stdout)
        self._err = _writer(sys.stderr)
        self._inside_line = False

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        """Write a whole line. An error does not disturb what is streamed into a pipe or a file."""
        if not error or sys.stdout.isatty():
            self.end_line()
        (self._err if error else self._out)(f"{text}\n", style)

    def stream(self, text: str, style: str = "") -> None:
        """Write a piece of text that goes on."""
        if text:
            self._out(text, style)
            self._inside_line = not text.endswith("\n")

    def stream_markdown(self, text: str) -> None:
        """Write a piece of Markdown that goes on. Only a terminal renders it."""
        self.stream(text)

    def status(self, text: str | None) -> None:
        """Show in one line what is going on, on a terminal; None takes it away."""

    def panel(self, lines: Sequence[str]) -> bool:
        """Show lines that change, in one place, while something goes on; False where that cannot be done."""
        return False

    def end_line(self) -> None:
        """End what was streamed, unless it ended by itself."""
        if self._inside_line:
            self.stream("\n")


def _writer(stream: TextIO) -> Writer:
    return _terminal_writer(stream) if stream.isatty() else _plain_writer(stream)


def _plain_writer(stream: TextIO) -> Writer:
    def write(text: str, style: str) -> None:
        stream.write(text)
        stream.flush()

    return write


def _terminal_writer(stream: TextIO) -> Writer:
    from rich.console import Console  # Here: what is piped into a file needs no colours.
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)

    def write(text: str, style: str) -> None:
        console.print(Text(printable(text)), style=style or None, end="", soft_wrap=True)
        stream.flush()

    return write


__all__ = ["Output"]
