"""Shows a list again whenever the host says that it changed, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from ahpkit.cli.output import Output
from ahpkit.client import Client

_CLEAR = "\x1b[H\x1b[2J"

_CALM = 0.2
"""Seconds in which several changes are shown as one."""

Lines = Callable[[], Awaitable[str]]
"""What to show now."""


async def watch(client: Client, lines: Lines, output: Output, *, clear: bool = True) -> None:
    """Show a list now, and again after every change of a session. On a terminal it takes the place of the last one."""
    changed = asyncio.Event()
    shown: str | None = None
    async with client.session_list(changed.set):
        while True:
            changed.clear()
            text = await lines()
            if text != shown:
                shown = text
                if clear and sys.stdout.isatty():
                    sys.stdout.write(_CLEAR)
                output.say(text)
            await changed.wait()
            await asyncio.sleep(_CALM)


__all__ = ["Lines", "watch"]
