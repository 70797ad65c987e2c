"""The host fixture: see `support.bench`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from support.bench import Bench, running_bench


@pytest.fixture
async def sockets(tmp_path: Path) -> AsyncGenerator[Bench]:
    """A host that clients connect to by WebSocket."""
    async with running_bench(tmp_path, sockets=True) as made:
        yield made


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    async with running_bench(tmp_path) as made:
        yield made
