"""Stores a log in one SQLite file. Repairs are in `salvage`, SQL is in `tables`.

One connection writes and checkpoints, the others are read-only: SQLite before 3.51.3 can damage a database whose
write-ahead log is reset by one connection while another one writes.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, cast

from ahpkit.log.entry import Batch, Entry, LogPosition, Recovery, Statistics, Step
from ahpkit.log.errors import ContentRefused, StorageError
from ahpkit.log.migrations import MIGRATIONS, OLD_STATES, is_intact, migrate, version
from ahpkit.log.salvage import Convert, create, finish, rebuild, repair, upgrade, wal_damage
from ahpkit.log.tables import DAMAGE, Damaged, Tables

_log = logging.getLogger(__name__)

_MOVE_BYTES = 1 << 20
"""Bytes in the write-ahead log at which they are moved into the main file even if commits wait. This is rare, so it
costs little, and the bytes are few, so the commits do not wait for long."""
_TIDY_BYTES = 256 << 10
"""Bytes in the write-ahead log above which they are moved into the main file when nothing is waiting. That costs two
syncs, and a commit that comes meanwhile waits for it: with four times as many, an even stream had gaps of 12 ms."""
_COMMIT_BYTES = 16 << 10
"""Bytes that a commit writes in addition to its entries: the pages of four trees."""
_WAL_LIMIT = 64 << 20
"""If a long read made the write-ahead log larger than this, the room is given back afterwards."""
_CHECK_WHOLE_BYTES = 16 << 20
"""A file up to this size is checked as a whole at the start; that takes some 30 ms. Of a larger one, only the parts
that a start needs are checked."""
_CONTENT = (
    ValueError,  # also text with a lone surrogate
    TypeError,
    OverflowError,  # an integer beyond 64 bits
    sqlite3.DataError,  # longer than SQLite takes
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,  # a value of a type that it does not know
    sqlite3.NotSupportedError,
)
"""Errors of a write that are caused by the values."""
Stored = tuple[int, str, bytes, str | None, int | None, int]
"""The stored members of an entry. The other forms for readers are not stored; they may be several times as large."""
_HEADER_VERSIONS = (b"\1\1", b"\2\2")
_DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR_SHORT_READ}
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_READONLY: "it cannot be written: check its permissions",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the permissions of the file and its directory",
    sqlite3.SQLITE_BUSY: "another process holds it locked",
}


class SqliteStorage:
    """The storage interface over a file and its write-ahead log. The directory must be held by one host.

    `durability` full: what is committed survives a power cut. normal: it survives a crash of the process; a power cut
    may take the last commits. `convert` converts the states of an older ahpkit; without it, a file of an older ahpkit
    is refused.
    """

    def __init__(
        self,
        path: Path,
        *,
        durability: Literal["full", "normal"] = "full",
        clock: Callable[[], int] | None = None,
        convert: Convert | None = None,
        check_whole_bytes: int = _CHECK_WHOLE_BYTES,
    ) -> None:
        self._path = path
        self._wal = path.with_name(path.name + "-wal")
        self._names = str(path), str(self._wal)
        """The two paths as texts, because each commit looks at the files."""
        self._check_whole_bytes = check_whole_bytes
        self._convert = convert
        self._durability = durability
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self._connections: list[sqlite3.Connection] = []
        self._written = 0
        """About the number of bytes that were written since the write-ahead log was last moved into the main file."""
        self._unmoved: list[list[Step | Stored]] = []
        """All batches since the write-ahead log was last moved into the main file. The write-ahead log can be written
        again from them."""
        self._wal_size = 0
        """How long the write-ahead log was after we last wrote. SQLite makes it shorter only when we ask for it."""
        self._files: tuple[int | None, ...] | None = None
        """The inodes of the file and of its write-ahead log, once both are there."""
        self._kept: Batch | None = None
        """The last batch in the copy that is kept beside another program's file."""
        self._unplaced: Batch | None = None
        """A batch that was written, but to a file that is no longer in its place. Putting the file back is tried again;
        the batch is not written again."""
        self._replay_lock = threading.Lock()
        self._lookup_lock = threading.Lock()

    def load(self) -> Recovery:
        with self._explained():
            finish(self._path)
            if not self._there():
                create(self._path, Recovery())
            try:
                self._refuse_what_sqlite_ignores()
                return self._open_converted()
            except (*DAMAGE, sqlite3.DatabaseError) as exc:
                # SQLITE_ERROR: the statements are right, so a table is missing.
                if not _is_damage(exc) and _code(exc) != sqlite3.SQLITE_ERROR:
                    raise
                self._disconnect()
                problems = repair(self._path, str(exc), now=self._clock())
            self._marker.unlink(missing_ok=True)
            recovery = self._open_converted(saved=True)
            recovery.problems = problems
            return recovery

    def _open_converted(self, *, saved: bool = False) -> Recovery:
        """Open it with the states that this ahpkit keeps. What was saved from damage may be of either kind."""
        recovery, found = self._open()
        if found != OLD_STATES and not saved:
            return recovery
        if self._convert is None:
            if saved:
                return recovery
            raise StorageError(f"{self._path} was written by an older ahpkit; start a host on it, which converts it")
        self._disconnect()
        if not upgrade(self._path, recovery, self._convert) and found == OLD_STATES:
            create(self._path, recovery, upgraded=True)
        return self._open()[0]

    def commit(self, batch: Batch) -> None:
        with self._explained():
            if self._unplaced is not batch:
                self._check_wal()
                self._write(batch)
                self._unmoved.append([step[:6] if type(step) is Entry else step for step in batch])
            self._unplaced = batch
            self._check_files()
            self._unplaced = None
            if self._written >= _MOVE_BYTES:
                with suppress(sqlite3.Error, OSError):  # The batch is durable. Only this is tried again.
                    self._move()

    def _write(self, batch: Batch) -> None:
        try:
            self._written += _COMMIT_BYTES + self._writer.commit(batch)
        except _CONTENT as exc:
            if not self._connections:  # The log is closed, so the values did not cause this.
                raise
            raise ContentRefused(f"{self._path} cannot hold it: {exc}") from exc

    def trim(self, before_seq: int) -> int:
        with self._explained():
            self._check_wal()
            return self._writer.trim(before_seq)

    def tidy(self, *, at_rest: bool = False) -> bool:
        """Delete what is left of removed channels, and move what was written into the main file, a little at a time.
        All at once, a commit would wait for it.

        `at_rest`: move all of it. From then on nothing depends on the write-ahead log.
        """
        with self._explained():
            forgotten = 0
            if self._writer.has_removed:
                self._check_wal()
                forgotten = self._writer.forget_removed()
                self._written += forgotten
            if self._written >= _TIDY_BYTES:
                self._move()
            if at_rest and self._wal_size and not forgotten:
                self._move("TRUNCATE")
            return forgotten > 0

    def _move(self, how: Literal["PASSIVE", "TRUNCATE"] = "PASSIVE") -> None:
        self._check_wal()
        self._written = 0
        _busy, written, moved = self._connections[0].execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        if written == moved:  # Otherwise somebody was reading: the rest is moved the next time.
            self._unmoved.clear()
        found = _stat(self._names[1])
        self._wal_size = found.st_size if found else 0

    def mark(self, seq: int) -> LogPosition:
        with self._explained():
            return self._writer.mark(seq)

    def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        with self._explained(), self._replay_lock:
            return self._replay.read(after, channels, limit, max_bytes)

    def seen(self, client_id: str, client_seq: int) -> int | None:
        with self._explained(), self._lookup_lock:
            return self._lookup.seen(client_id, client_seq)

    def statistics(self) -> Statistics:
        with self._explained(), self._replay_lock:
            sizes = (part.stat().st_size for part in (self._path, self._wal) if part.exists())
            return self._replay.statistics(sum(sizes))

    def close(self) -> None:
        if self._files is not None and self._path.parent.exists():
            try:
                with self._explained():
                    self._check_wal()
                    self._check_files()
            except StorageError as exc:
                _log.error("the log was closed, but %s", exc)
        self._disconnect()

    def _disconnect(self) -> None:
        """Close all connections. The writer is closed last: this moves everything into the main file and removes the
        write-ahead log."""
        while self._connections:
            self._connections.pop().close()
        self._files, self._wal_size = None, 0
        self._unmoved.clear()

    @property
    def _marker(self) -> Path:
        """A file that marks damage found after the start, in a part that `load` does not check: the next start repairs
        it."""
        return self._path.with_name(self._path.name + ".damaged")

    def _there(self) -> bool:
        """Whether some file of the database exists: one whose main file was deleted is not a new database."""
        return os.path.lexists(self._path) or self._wal.exists()

    def _open(self) -> tuple[Recovery, int]:
        """Open the database; returns what is stored, and the schema that the file had."""
        db = self._connect("rw")
        found = version(db)  # before anything is changed, in case the file is not a log
        if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StorageError(f"{self._path}: the file system does not support a write-ahead log")
        db.execute(f"PRAGMA synchronous = {self._durability.upper()}")
        db.execute("PRAGMA wal_autocheckpoint = 0")  # We do it ourselves, to know what was moved.
        db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        if found != OLD_STATES:
            migrate(db, self._path)
        if not is_intact(db, found if found == OLD_STATES else len(MIGRATIONS)):
            raise Damaged("the definitions of its tables are not what was written")
        self._writer = Tables(db)
        if self._path.stat().st_size <= self._check_whole_bytes:
            self._writer.check_structure()
        self._replay = Tables(self._connect("ro"))
        self._lookup = Tables(self._connect("ro"))
        return self._writer.recover(), found

    def _check_files(self) -> None:
        """Check that our files are still in their place. A deleted file can still be written to, but is lost with the
        process.

        While it is open nothing is lost: it is put back before the commit is reported.
        """
        main, wal = _stat(self._names[0]), _stat(self._names[1])
        present = None if main is None else main.st_ino, None if wal is None else wal.st_ino
        self._wal_size = wal.st_size if wal else 0
        if self._files is None:
            self._files = present
        elif present != self._files:
            self._put_back(present)

    def _check_wal(self) -> None:
        """If the write-ahead log was cut off while we use it, write what is not yet in the main file again."""
        found = _stat(self._names[1])
        if found is None or found.st_size >= min(self._wal_size, _WAL_LIMIT):
            return
        _log.warning("%s: it was cut off while it was in use; it is made again", self._wal)
        with self._replay_lock, self._lookup_lock:
            rebuild(self._path, [[_as_step(stored) for stored in batch] for batch in self._unmoved])
            # SQLite leaves the new file alone: it sees that it is not the one that it has open.
            self._disconnect()
            self._marker.unlink(missing_ok=True)
            self._open()

    def _put_back(self, present: tuple[int | None, ...]) -> None:
        assert self._files is not None
        if present[0] == self._files[0]:
            self._connections[0].execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        elif present[0] is None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._connections[0].execute("VACUUM INTO ?", (str(self._path),))
        else:
            kept = self._keep_copy()
            raise StorageError(
                f"{self._path}: another file is in its place. Everything up to now is in {kept.name} beside it: stop "
                f"the host, and put the right one of the two there"
            )
        _log.warning("%s: a file of the log was deleted or replaced while it was in use; it was put back", self._path)
        with self._replay_lock, self._lookup_lock:
            self._disconnect()
            self._wal.unlink(missing_ok=True)
            self._open()

    def _keep_copy(self) -> Path:
        """Save our data beside the other program's file: our own file has no name any more, and would be lost with the
        process."""
        kept = self._path.with_name(self._path.name + ".replaced")
        if self._kept is not self._unplaced:
            kept.unlink(missing_ok=True)
            self._connections[0].execute("VACUUM INTO ?", (str(kept),))
            kept.chmod(0o600)
            self._kept = self._unplaced
        return kept

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        self._connections.append(db)
        return db

    def _refuse_what_sqlite_ignores(self) -> None:
        """Refuse files that SQLite would accept: an empty one as a new database, a read-only one, and one whose
        write-ahead log cannot be read."""
        if self._marker.exists():
            raise Damaged(self._marker.read_text())
        if not self._path.is_file():
            raise Damaged("is not a file" if self._path.exists() else "is missing, only its write-ahead log is there")
        with self._path.open("r+b") as file:
            header = file.read(20)
        if not header:
            raise Damaged("the file is empty")
        if header[18:] not in _HEADER_VERSIONS:
            raise Damaged("the header is damaged")
        if (reason := wal_damage(self._wal)) is not None:
            raise Damaged(reason)

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (*DAMAGE, sqlite3.Error) as exc:
            if _is_damage(exc):
                with suppress(OSError):
                    self._marker.write_text(str(exc))
                raise StorageError(f"{self._path}: damaged ({exc}): restart the host to save what is intact") from exc
            reason = _REASONS.get(_code(exc) & 0xFF)
            raise StorageError(f"{self._path}: {reason} ({exc})" if reason else f"{self._path}: {exc}") from exc
        except OSError as exc:
            raise StorageError(f"{self._path}: {exc.strerror or exc}") from exc


def _stat(path: str) -> os.stat_result | None:
    """The status of the path itself. Links are not followed, because SQLite does not open a write-ahead log through a
    link."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _as_step(stored: Step | Stored) -> Step:
    return Entry(*stored) if type(stored) is tuple else cast("Step", stored)


def _code(exc: Exception) -> int:
    # Errors that Python's module raises by itself have no code: text that is not UTF-8, or a call after `close`.
    misuse = isinstance(exc, sqlite3.ProgrammingError)
    return getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_MISUSE if misuse else sqlite3.SQLITE_CORRUPT)


def _is_damage(exc: Exception) -> bool:
    return not _DAMAGE_CODES.isdisjoint({_code(exc), _code(exc) & 0xFF})


__all__ = ["SqliteStorage"]
