"""Shows a list once. With `--watch` the list is shown again whenever it changes, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import click

from ahpkit.cli.connection import EXIT_INTERRUPTED
from ahpkit.cli.output import Output
from ahpkit.cli.text import as_json
from ahpkit.client import Client
from ahpkit.wire.codec import encode
from ahpkit.wire.tasks import wait_first

_CLEAR = "\x1b[H\x1b[2J"

_CALM = 0.2
"""Seconds within which several changes are shown together."""

LOOK = 2.0
"""Seconds between two checks of something that does not report its changes."""

Lines = Callable[[], Awaitable[str]]
"""Returns the text to show now."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def watch_option(function: F) -> F:
    """Adds the option `--watch` to a command that shows a list."""
    return click.option("--watch", "watching", is_flag=True, help="Show the list again when it changes, until Ctrl-C.")(
        function
    )


async def show(
    lines: Lines,
    *,
    watching: bool,
    client: Client | None = None,
    every: float | None = None,
    clear: bool = True,
    calm: float = _CALM,
) -> None:
    """Show a list; with `--watch` show it again after each change.

    On a terminal the new list replaces the previous one. The list is made again when a session of `client` changes, and
    every `every` seconds.
    """
    if not watching:
        Output().say(await lines())
        return
    changed = asyncio.Event()
    async with nullcontext() if client is None else client.session_list(changed.set):
        await wait_first(showing=_show_changes(lines, changed, every, clear=clear, calm=calm), unread=unread())


async def _show_changes(lines: Lines, changed: asyncio.Event, every: float | None, *, clear: bool, calm: float) -> None:
    output, shown = Output(), None
    while True:
        changed.clear()
        text = await lines()
        if text != shown:
            _make_room(clear=clear)
            output.say(text)
            shown = text
        await _next(changed, every)
        await asyncio.sleep(calm)


async def _next(changed: asyncio.Event, every: float | None) -> None:
    try:
        await asyncio.wait_for(changed.wait(), every)
    except TimeoutError:
        return


def repeat(
    look: Callable[[], T],
    show: Callable[[T], object],
    *,
    watching: bool,
    clear: bool = True,
    content: Callable[[T], object] = lambda found: found,
) -> T:
    """Show the result of a check. With `--watch` check again every two seconds, and show a result that differs."""
    shown = look()
    show(shown)
    try:
        while watching and not _unread_within(LOOK):
            if content(now := look()) != content(shown):
                _make_room(clear=clear)
                show(now)
                shown = now
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None
    return shown


# The writing end of a pipe never has anything to read. It becomes ready when the pipe has no reader any more.


def _is_pipe() -> bool:
    return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)


async def unread() -> None:
    """Returns when the reader of our pipe is gone. Otherwise this would be noticed at the next change only, which may
    be hours away."""
    gone = asyncio.Event()
    if _is_pipe():
        asyncio.get_running_loop().add_reader(sys.stdout.fileno(), gone.set)
    await gone.wait()


def _unread_within(seconds: float) -> bool:
    """Wait for some time, or until the reader of our pipe is gone. Returns whether the reader is gone."""
    if not _is_pipe():
        time.sleep(seconds)
        return False
    return bool(select.select([sys.stdout.fileno()], [], [], seconds)[0])


def json_text(data: Any, *, watching: bool) -> str:
    """A list as JSON: on several lines for people, on one line if a program watches."""
    return encode(data).decode() if watching else as_json(data)


def _make_room(*, clear: bool) -> None:
    if clear and sys.stdout.isatty():
        sys.stdout.write(_CLEAR)
        sys.stdout.flush()


__all__ = ["LOOK", "Lines", "json_text", "repeat", "show", "unread", "watch_option"]
