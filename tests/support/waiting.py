"""Waiting in tests: one bound for everything that must happen, and polling for what nobody announces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from ahpkit.changes.attribution import COARSE

BOUND = 60.0
"""Seconds anything that must happen may take. It only says when to give up, so it costs a test that passes nothing:
far longer than a busy machine needs, shorter than the suite's own limit for a test."""


async def until(condition: Callable[[], object]) -> None:
    """Wait for what nobody announces: a line in a log, a file, what another process does."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  # Nothing wakes us.
            await asyncio.sleep(0.005)


async def a_moment() -> None:
    """Wait until the time of a file that is written now can be told from the time of one written before."""
    now = time.time_ns()
    await until(lambda: time.time_ns() > now + 3 * COARSE)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def gone(pid: int) -> None:
    """Wait until a process has ended that need not be a child of ours."""
    await until(lambda: not is_alive(pid))


__all__ = ["BOUND", "a_moment", "gone", "is_alive", "until"]
