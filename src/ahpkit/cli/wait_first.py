"""Waits for the first of several coroutines to end, and cancels the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def wait_first(**runners: Coroutine[Any, Any, Any]) -> tuple[str, Any]:
    """The name and the result of the first to end; the others are cancelled. If several end together, the first named
    counts."""
    tasks = {asyncio.create_task(runner): name for name, runner in runners.items()}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    winner = next(task for task in tasks if task in done)
    return tasks[winner], winner.result()


__all__ = ["wait_first"]
