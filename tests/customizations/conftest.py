"""A host over memory with the customizations feature, in a workspace of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from customizations.desk import Desk


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / ".git").mkdir(parents=True)
    return root


@pytest.fixture
async def desk(workspace: Path, tmp_path: Path) -> AsyncGenerator[Desk]:
    desk = Desk(workspace, tmp_path / "home")
    try:
        yield desk
    finally:
        await desk.stop()
