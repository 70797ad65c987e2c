"""Every kind of storage, empty and loaded."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from ahpkit.log.storage import Storage
from support.records import StorageHolder, holder_of


@pytest.fixture(params=["memory", "sqlite"])
def holder(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[StorageHolder]:
    holder = holder_of(request.param, tmp_path)
    yield holder
    holder.storage.close()


@pytest.fixture
def storage(holder: StorageHolder) -> Storage:
    return holder.storage
