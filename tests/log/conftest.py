"""Every kind of storage, empty and loaded."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from ahpkit.log.storage import Storage
from support.records import StorageHolder, shelf_of


@pytest.fixture(params=["memory", "sqlite"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[StorageHolder]:
    shelf = shelf_of(request.param, tmp_path)
    yield shelf
    shelf.storage.close()


@pytest.fixture
def storage(shelf: StorageHolder) -> Storage:
    return shelf.storage
