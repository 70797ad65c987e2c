"""The exceptions of a log.

AhpError
└── LogError
    ├── OutOfOrder            our own code broke the order of the log (also a LocalProtocolError)
    ├── NotInLog              the log does not reach back (or forward) to that number: after, oldest_seq, head_seq
    ├── ContentRefused        the storage works, but cannot hold this: reason
    ├── StorageError          the storage cannot be opened, read or written now: reason
    │   └── SchemaTooNew      written by a newer ahpkit: found, known
    └── DataDirectoryError    the data directory cannot be used: path
        └── DataDirectoryInUse    another host has it: pid
"""

from __future__ import annotations

from pathlib import Path

from ahpkit.protocol.errors import AhpError, LocalProtocolError


class LogError(AhpError):
    """Base of everything the log raises on purpose."""


class OutOfOrder(LogError, LocalProtocolError):
    """A gap or a step back in the numbers, or an entry for a channel that is not open."""


class NotInLog(LogError):
    """A replay from here would have a hole: send snapshots instead."""

    def __init__(self, after: int, *, oldest_seq: int, head_seq: int) -> None:
        super().__init__(f"the log holds {oldest_seq} to {head_seq}, so it cannot replay what came after {after}")
        self.after = after
        self.oldest_seq = oldest_seq
        self.head_seq = head_seq


class ContentRefused(LogError):
    """A value cannot be stored: a number is too large, or a text is not Unicode.

    Trying again does not help. The batch is written without the step that causes it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StorageError(LogError):
    """The storage failed in a way a person has to look at; `reason` says what and where."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SchemaTooNew(StorageError):
    """Refused, because an older program would damage what it does not understand."""

    def __init__(self, path: Path, *, found: int, known: int) -> None:
        super().__init__(
            f"{path} was written by a newer ahpkit (schema {found}, this one knows up to {known}): "
            "update ahpkit or use another data directory"
        )
        self.found = found
        self.known = known


class DataDirectoryError(LogError):
    """The data directory is missing, not a directory, or not ours to write."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"data directory {path}: {reason}")
        self.path = path


class DataDirectoryInUse(DataDirectoryError):
    """Two hosts on one log would give the same number twice."""

    def __init__(self, path: Path, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(path, f"in use by {owner}: stop that host or choose another --data-dir")
        self.pid = pid


__all__ = [
    "ContentRefused",
    "DataDirectoryError",
    "DataDirectoryInUse",
    "LogError",
    "NotInLog",
    "OutOfOrder",
    "SchemaTooNew",
    "StorageError",
]
