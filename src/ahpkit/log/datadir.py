"""The directory in which a host keeps its data: makes, checks and locks it, and opens the storage of its log.

The kernel holds the lock, on the file `lock`, so it ends with the process however that ends. The process id
in the file is for people.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from ahpkit.log.errors import DataDirectoryError, DataDirectoryInUse
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.salvage import Convert
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.log.storage import Storage
from ahpkit.platform.files import try_lock
from ahpkit.platform.processes import is_alive

LOG_FILE = "log.db"
"""The name of the log's file. Every host that stores anything has it in its data directory."""

_TRIES, _BREAK_S = 250, 0.02
"""How often, and how many seconds apart, a lock is tried that a host which was killed seems to hold."""


@contextmanager
def data_directory(path: Path, *, sleep: Callable[[float], None] = time.sleep) -> Generator[Path]:
    """Inside the `with`, `path` is a directory that this host can write to and no other host uses."""
    lock = _open(path)
    try:
        _take(path, lock, sleep)
        yield path
        # The file stays: if it were removed, two hosts could each lock a file of that name.
        os.ftruncate(lock, 0)
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except (FileExistsError, NotADirectoryError):
        raise DataDirectoryError(path, "there is a file in the way") from None
    except PermissionError:
        raise DataDirectoryError(path, "not writable: check its owner and permissions") from None
    except OSError as exc:
        raise DataDirectoryError(path, exc.strerror or str(exc)) from None


def _take(path: Path, lock: int, sleep: Callable[[float], None]) -> None:
    """Lock the directory. A program that a killed host was just starting may hold the lock a moment longer than the
    host lived, so it is tried again for a while."""
    for _ in range(_TRIES):
        if try_lock(lock):
            break
        owner = _owner(lock)
        if owner is None or is_alive(owner):
            raise DataDirectoryInUse(path, owner)
        sleep(_BREAK_S)
    else:
        raise DataDirectoryInUse(path, _owner(lock))
    os.ftruncate(lock, 0)
    with suppress(OSError):  # A full disk: the lock holds without the number.
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _owner(lock: int) -> int | None:
    written = os.pread(lock, 32, 0).strip()
    return int(written) if written.isdigit() else None


Durability = Literal["full", "normal", "memory"]
"""full: survives a power cut. normal: survives a crash; a power cut may take the last commits. memory: neither."""


def open_storage(directory: Path, durability: Durability, *, convert: Convert | None = None) -> Storage:
    """The storage of a data directory, not yet loaded. `convert` takes over what an older ahpkit left there."""
    if durability == "memory":
        return MemoryStorage()
    return SqliteStorage(directory / LOG_FILE, durability=durability, convert=convert)


__all__ = ["LOG_FILE", "Durability", "data_directory", "open_storage"]
