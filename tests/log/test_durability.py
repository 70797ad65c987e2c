from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.log.durability import Durability, open_storage
from ahpkit.log.memory import MemoryStorage
from support.records import entry, opening


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_durable_storage_is_a_file_in_the_data_directory(durability: Durability, tmp_path: Path) -> None:
    storage = open_storage(tmp_path, durability)
    storage.load()
    storage.commit([opening(), entry(1)])
    storage.close()

    again = open_storage(tmp_path, "full")
    assert again.load().head_seq == 1
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


def test_memory_leaves_no_trace(tmp_path: Path) -> None:
    storage = open_storage(tmp_path, "memory")
    storage.load()
    storage.commit([opening(), entry(1)])
    storage.close()

    assert isinstance(storage, MemoryStorage)
    assert not list(tmp_path.iterdir())
