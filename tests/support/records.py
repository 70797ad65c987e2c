"""For tests of the log: records with everything that does not matter filled in, and a storage that can be restarted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ahpkit.log.memory import MemoryStorage
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.log.storage import Storage
from ahpkit.testing.storage import StorageHolder, entries, entry, opening, seqs


def holder_of(kind: Literal["memory", "sqlite"], directory: Path) -> StorageHolder:
    """A storage that can be restarted; what is only in memory is kept by the shelf."""
    memory = MemoryStorage()
    return StorageHolder(lambda place: memory if kind == "memory" else _sqlite(place), directory)


def _sqlite(directory: Path) -> Storage:
    return SqliteStorage(directory / "log.db", durability="normal")


@contextmanager
def unprivileged() -> Generator[Path]:
    """Make a directory of a user who is not root, and be that user for a moment: root ignores permissions."""
    user, nobody = os.geteuid(), 65534
    with tempfile.TemporaryDirectory() as directory:
        if user == 0:
            os.chown(directory, nobody, nobody)
            os.seteuid(nobody)
        try:
            yield Path(directory)
        finally:
            os.seteuid(user)


__all__ = ["StorageHolder", "entries", "entry", "holder_of", "opening", "seqs", "unprivileged"]
