"""Waiting in tests: one bound for everything that must happen, and polling for what nobody announces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from ahpkit.changes.attribution import COARSE

BOUND = 60.0
"""How many seconds to wait for something that must happen. It only limits tests that fail. It is far longer than a busy
machine needs, and shorter than the suite's limit for a test."""


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that is not announced: a line in a log, a file, an effect of another process."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  # Nothing wakes us.
            await asyncio.sleep(0.005)


async def a_moment() -> None:
    """Wait until a file that is written now gets another time than a file written before."""
    now = time.time_ns()
    await until(lambda: time.time_ns() > now + 3 * COARSE)


def is_alive(pid: int) -> bool:
    """Whether a process runs. A zombie does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def gone(pid: int) -> None:
    """Wait until a process has ended, which may be any process, not only a child."""
    await until(lambda: not is_alive(pid))


__all__ = ["BOUND", "a_moment", "gone", "is_alive", "until"]
