"""Asks one question at the terminal and waits for the answer. One Ctrl-C or Ctrl-D ends the command.

The module also reads files and pipes that may have no end, and has the types of numbers and paths for options.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Any, AnyStr

import click

from ahpkit.platform.terminal_mode import forget_typed

_INTERRUPTED = 130


@contextmanager
def interruptible() -> Generator[None]:
    """Let Ctrl-C end the command at once. asyncio's own handler would wait for the event loop, which the question
    blocks."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except click.Abort:
        click.echo(err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGINT, before)


def read_whole(file: IO[AnyStr], name: str, most: int = 8_000_000, advice: str = "") -> AnyStr:
    """The whole content of a file or a pipe. It is an error if it has more than `most` bytes, because some pipes never
    end."""
    content = file.read(most + 1)
    if len(content) > most:
        raise click.ClickException(f"{name} has more than {most / 1e6:.0f} MB{advice}")
    return content


def confirm(question: str, *, error: bool = False) -> bool:
    """Ask a yes-or-no question; Enter means no. Keys that were typed before the question was shown do not answer it."""
    forget_typed()
    with interruptible():
        return click.confirm(question, default=False, err=error)


def confirm_deletion(question: str) -> None:
    """Ask before something is deleted. Every answer but yes ends the command, and so does a terminal where nobody can
    answer."""
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask at; --yes deletes without asking")
    if not confirm(question):
        raise click.ClickException("nothing was deleted")


def ask(question: str, **options: Any) -> Any:
    """Ask for a text or a number, with the options of `click.prompt`."""
    with interruptible():
        return click.prompt(question, **options)


class WholeNumber(click.IntRange):
    """A whole number within bounds. Error messages call it by `name`."""

    name = "whole number"


class Number(click.FloatRange):
    """A number within bounds. Error messages call it by `name`."""

    name = "number"


class Place(click.Path):
    """A file or folder. `~` is the home directory, also where the shell leaves it as it is (`--plugin=~/x`).

    An empty path is refused: usually it is a shell variable that is not set. Otherwise it would mean this folder, and
    the folder would be trusted.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty; name a file or folder.", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)


__all__ = ["Number", "Place", "WholeNumber", "ask", "confirm", "confirm_deletion", "read_whole"]
