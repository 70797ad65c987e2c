"""A host over memory with one canvas provider that does as told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from ahpkit.canvas import Canvases, PythonProvider
from support.bench import Bench
from support.canvases import Board, board_provider
from support.waiting import BOUND


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def provider(board: Board) -> PythonProvider:
    return board_provider(board)


@pytest.fixture
def canvases(provider: PythonProvider) -> Canvases:
    return Canvases([provider], timeout=BOUND, max_instances=4)


@pytest.fixture
async def bench(tmp_path: Path, canvases: Canvases) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    made.features = [canvases]
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
