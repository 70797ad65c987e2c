"""The three levels of durability by name, and the storage that each one gets."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ahpkit.log.memory import MemoryStorage
from ahpkit.log.salvage import Convert
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.log.storage import Storage

Durability = Literal["full", "normal", "memory"]
"""full: survives a power cut. normal: survives a crash; a power cut may take the last commits. memory: neither."""


def open_storage(directory: Path, durability: Durability, *, convert: Convert | None = None) -> Storage:
    """The storage of a data directory, not yet loaded. `convert` takes over what an older ahpkit left there."""
    if durability == "memory":
        return MemoryStorage()
    return SqliteStorage(directory / "log.db", durability=durability, convert=convert)


__all__ = ["Durability", "open_storage"]
