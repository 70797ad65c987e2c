"""Shows the progress of long work on a terminal; writes nothing elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_LONG = 3.0
"""Seconds after which something may hang."""

_PATIENCE = 0.5
"""Seconds before a person wonders what is going on."""


@contextmanager
def progress(doing: str) -> Generator[Callable[[str], None]]:
    """Show what is being done while the block lasts; call what it gives with how far it is."""
    if not sys.stderr.isatty():
        yield lambda how_far: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{doing} …") as status:
        yield lambda how_far: status.update(f"{doing} … {how_far}")


async def patiently(work: Coroutine[Any, Any, T], doing: str, *, hint: str = "", after: float = _LONG) -> T:
    """Wait for work that is quick most of the time; say what is going on when it is not, and `hint` when it hangs."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        if not done:
            with progress(doing) as tell:
                done, _ = await asyncio.wait([task], timeout=after)
                if not done and hint:
                    tell(hint)
                    if not sys.stderr.isatty():
                        sys.stderr.write(f"{doing} … {hint}\n")
                await asyncio.wait([task])
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])


__all__ = ["patiently", "progress"]
