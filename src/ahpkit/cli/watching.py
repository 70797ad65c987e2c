"""Shows a list once, or with `--watch` again whenever it changes, until Ctrl-C."""

from __future__ import annotations

import asyncio
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

_CLEAR = "\x1b[H\x1b[2J"

_CALM = 0.2
"""Seconds in which several changes are shown as one."""

LOOK = 2.0
"""Seconds between two checks of something that does not report its changes."""

Lines = Callable[[], Awaitable[str]]
"""What to show now."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def watch_option(function: F) -> F:
    """The option `--watch` of a command that shows a list."""
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
    """Show a list; when it is watched, again after each change. On a terminal it replaces the previous one.

    It is made again when a session of `client` changes, and `every` so many seconds.
    """
    output, changed = Output(), asyncio.Event()
    async with nullcontext() if client is None or not watching else client.session_list(changed.set):
        shown: str | None = None
        while True:
            changed.clear()
            text = await lines()
            if text != shown:
                _make_room(clear=clear and watching)
                output.say(text)
                shown = text
            if not watching:
                return
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
    """Show the result of a check; when it is watched, check every two seconds and show it when it differs."""
    shown = look()
    show(shown)
    try:
        while watching:
            time.sleep(LOOK)
            if content(now := look()) != content(shown):
                _make_room(clear=clear)
                show(now)
                shown = now
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None
    return shown


def json_text(data: Any, *, watching: bool) -> str:
    """A list as JSON: for people over several lines, and on one line each time when a program watches."""
    return encode(data).decode() if watching else as_json(data)


def _make_room(*, clear: bool) -> None:
    if clear and sys.stdout.isatty():
        sys.stdout.write(_CLEAR)
        sys.stdout.flush()


__all__ = ["LOOK", "Lines", "json_text", "repeat", "show", "watch_option"]
