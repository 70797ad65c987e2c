"""Reads and writes a small private JSON file of the host's owner in the data directory.

The file is replaced as a whole, and read again when it has changed. The command line and the running host share such
files: anybody who may write the data directory counts as the owner. Clients cannot reach the data directory, because it
is excluded from every root.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from ahpkit.platform.files import CLOSE_ON_EXEC, wait_lock, write_private
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError


class OwnerFileError(AhpError):
    """The file cannot be used; the text says which one and why."""


class OwnerFile:
    """A file with one JSON object. Several threads and processes may use it. Reading and writing block for a moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: JsonObject = {}
        self._stamp: tuple[int, ...] | None = None
        self._lock = threading.Lock()

    @property
    def stamp(self) -> tuple[int, ...] | None:
        """A value that changes whenever the content may have changed; None while there is no file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def read(self) -> JsonObject:
        """The present content; empty while there is no file. Do not change this object."""
        with self._lock:
            stamp = self.stamp
            if stamp != self._stamp:
                self._known = {} if stamp is None else self._load()
                self._stamp = stamp
            return self._known

    def change(self, work: Callable[[JsonObject], JsonObject]) -> JsonObject:
        """Replace the content by the result of `work(content)`. Meanwhile the file is locked for other changes."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._alone():
            content = work(dict(self._load()))
            text = json.dumps(content, ensure_ascii=False, indent=1)
            # The bytes of a name that is not UTF-8 are written as JSON writes them: `\udcfc`.
            write_private(self.path, text.encode(errors="backslashreplace"))
        return content

    def _load(self) -> JsonObject:
        try:
            found: object = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise OwnerFileError(f"{self.path} cannot be read: {error}; repair or remove it") from error
        if not isinstance(found, dict):
            raise OwnerFileError(f"{self.path} does not contain a JSON object; repair or remove it")
        return cast("JsonObject", found)

    @contextmanager
    def _alone(self) -> Generator[None]:
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | CLOSE_ON_EXEC, 0o600)
        try:
            wait_lock(lock)
            yield
        finally:
            os.close(lock)


__all__ = ["OwnerFile", "OwnerFileError"]
