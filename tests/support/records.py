"""For tests of the log: records with everything that does not matter filled in, and a storage that can be restarted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.log.storage import Storage


def entry(
    seq: int, channel: str = "a", *, payload: bytes = b"{}", client: tuple[str, int] | None = None, at: int = 0
) -> Entry:
    client_id, client_seq = client or (None, None)
    return Entry(seq, channel, payload, client_id, client_seq, at)


def entries(first: int, last: int, channel: str = "a") -> list[Entry]:
    """The entries `first` to `last`, both included."""
    return [entry(seq, channel) for seq in range(first, last + 1)]


def opening(channel: str = "a", seq: int = 0, state: bytes = b"{}") -> ChannelSnapshot:
    return ChannelSnapshot(channel, seq, state)


def seqs(found: list[Entry]) -> list[int]:
    return [each.seq for each in found]


class Shelf:
    """Holds one storage. `restart` is what a host's end and new start do to it."""

    def __init__(self, kind: Literal["memory", "sqlite"], directory: Path) -> None:
        self._directory = directory
        self._memory = MemoryStorage() if kind == "memory" else None
        self.storage: Storage = self._make()
        self.recovery: Recovery = self.storage.load()

    def _make(self) -> Storage:
        return self._memory or SqliteStorage(self._directory / "log.db", durability="normal")

    def restart(self) -> Recovery:
        self.storage.close()
        self.storage = self._make()
        self.recovery = self.storage.load()
        return self.recovery


@contextmanager
def unprivileged() -> Generator[Path]:
    """A directory of somebody who is not root, and be that for a moment: permissions mean nothing to root."""
    user, nobody = os.geteuid(), 65534
    with tempfile.TemporaryDirectory() as directory:
        if user == 0:
            os.chown(directory, nobody, nobody)
            os.seteuid(nobody)
        try:
            yield Path(directory)
        finally:
            os.seteuid(user)


__all__ = ["Shelf", "entries", "entry", "opening", "seqs", "unprivileged"]
