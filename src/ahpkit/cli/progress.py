"""Shows the progress of long work on a terminal; writes nothing elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

Tell = Callable[[str], None]
"""Shows how far the work is."""

Explain = Callable[[Tell], Coroutine[Any, Any, None]]
"""Explains what is waited for, and again when that changes. It is cancelled when the work ends."""

_LONG = 3.0
"""Seconds after which something may hang."""

_PATIENCE = 0.5
"""Seconds after which a person is told what is going on."""


@contextmanager
def progress(doing: str) -> Generator[Callable[[str], None]]:
    """Show what is being done while the block lasts; call what it gives with how far it is."""
    if not sys.stderr.isatty():
        yield lambda how_far: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{doing} …") as status:
        yield lambda how_far: status.update(f"{doing} … {how_far}")


@contextmanager
def bar(doing: str) -> Generator[Callable[[int, int], None]]:
    """Show a bar while the block lasts; call what it gives with how much is done, and of how much."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as shown:
        task = shown.add_task(doing, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


async def patiently(
    work: Coroutine[Any, Any, T],
    doing: str,
    *,
    explain: Explain | None = None,
    patience: float = _PATIENCE,
    long: float = _LONG,
) -> T:
    """Wait for work that is quick most of the time. When it is not, say what is done; when it takes long, `explain`."""
    task = asyncio.create_task(work)
    explaining: asyncio.Task[None] | None = None
    try:
        done, _ = await asyncio.wait([task], timeout=patience)
        if not done:
            with progress(doing) as tell:
                done, _ = await asyncio.wait([task], timeout=long)
                if not done and explain is not None:
                    shown = tell if sys.stderr.isatty() else _written(doing)
                    explaining = asyncio.create_task(explain(shown))
                await asyncio.wait([task])
        return task.result()
    finally:
        tasks = [one for one in (task, explaining) if one is not None]
        for one in tasks:
            one.cancel()
        await asyncio.wait(tasks)


def _written(doing: str) -> Tell:
    """For a log, where nothing can be shown in place: one line each time."""

    def write(text: str) -> None:
        sys.stderr.write(f"{doing} … {text}\n")
        sys.stderr.flush()

    return write


__all__ = ["Explain", "Tell", "bar", "patiently", "progress"]
