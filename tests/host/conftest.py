"""The host fixture: see `support.bench`; and what all its clients are sent is checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from support.bench import Bench, running_bench
from support.frames import all_frames_fit


@pytest.fixture(autouse=True)
def _frames() -> Generator[None]:
    with all_frames_fit():
        yield


@pytest.fixture
async def sockets(tmp_path: Path) -> AsyncGenerator[Bench]:
    """A host that clients connect to by WebSocket."""
    async with running_bench(tmp_path, sockets=True) as made:
        yield made


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    async with running_bench(tmp_path) as made:
        yield made
