"""Scripted agents over real pipes. Each test ends in time and with nothing left running, or fails."""

import asyncio
import functools
import inspect
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.scripted_acp import Scripted
from support.waiting import BOUND, until

_REAL = 2.5 * BOUND
"""Agents of other people need seconds to start, and their tests have a dozen turns."""


@pytest.fixture
async def scripted(tmp_path: Path) -> AsyncGenerator[Scripted]:
    made = Scripted(tmp_path)
    yield made
    async with asyncio.timeout(BOUND):
        for agent in made.agents:
            await agent.aclose()
    await until(lambda: not made.running())  # Those that were killed need a moment to be gone.


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound every test here: a process that never answers must not hold up the suite."""
    here = str(Path(__file__).parent) + os.sep  # Comparing paths takes ten times as long, for every test of the suite.
    for item in items:
        ours = str(item.path).startswith(here)
        if ours and isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = _bounded(item.obj, _REAL if "real_agents" in item.path.name else BOUND)


def _bounded(test: Callable[..., Awaitable[Any]], seconds: float) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(seconds):
            await test(*args, **kwargs)

    return run
