"""Creates the file of an SQLite log: a new one, one from the intact parts of a damaged one, or one that is upgraded.
Also looks for damage in the write-ahead log, which a crash left behind.

A file is built beside its place and swapped in when it is complete. What it replaces is kept as `NAME.corrupt-N`, or as
`NAME.old-N` when an older ahpkit wrote it. A crash at any point leaves either the old state or a swap that `finish`
completes. An upgrade converts the states of the old file, but not its history; the caller says how.

SQLite treats the first commit in its write-ahead log that it cannot read as the end, and silently drops what follows.
That is right for a commit that was being written. It is wrong when bytes changed on the disk: later commits were
reported as safe. A write-ahead log is a header and frames. A frame holds one page; the last frame of a commit says how
many pages the database has. Frames of this log carry the two numbers ("salts") of its header: others are left over from
an earlier log.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ahpkit.log.entry import Batch, ChannelSnapshot, Entry, Recovery, Value
from ahpkit.log.errors import StorageError
from ahpkit.log.migrations import migrate, transaction
from ahpkit.log.tables import DAMAGE, Damaged, Tables, check, is_seq, place_of, whole_snapshot

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_BYTE_ORDERS = {0x377F0682: "<", 0x377F0683: ">"}
"""The byte order of the checksum, by the first number of the file."""
_WRAP = 0xFFFFFFFF

_Sum = tuple[int, int]


class _Frame(NamedTuple):
    salts: tuple[int, int]
    ends_commit: bool
    expected: _Sum
    summed: bytes
    """The bytes that its checksum covers."""


def wal_damage(wal: Path) -> str | None:
    """Why commits of this file are lost; None when it is whole, or when only its end was still being written."""
    try:
        file = wal.open("rb")
    except FileNotFoundError:
        return None
    with file:
        head = file.read(_HEADER.size)
        if not head.strip(b"\0"):  # All zeros is a log whose first commit never reached the disk.
            return None
        if len(head) < _HEADER.size:
            return f"the write-ahead log {wal.name} was cut off, the newest entries may be lost"
        magic, _version, page_size, _number, *salts, sum1, sum2 = _HEADER.unpack(head)
        order = _BYTE_ORDERS.get(magic, "<")
        running = _add((0, 0), head[:24], order)
        if magic not in _BYTE_ORDERS or running != (sum1, sum2):
            return f"the write-ahead log {wal.name} is damaged, the newest entries may be lost"
        lost = _lost_commits(file, page_size, (salts[0], salts[1]), running, order)
        if not lost:
            return None
        return f"the write-ahead log {wal.name} is damaged, {lost} of the newest commits may be lost"


def _lost_commits(file: BinaryIO, page_size: int, salts: tuple[int, int], running: _Sum, order: str) -> int:
    """Commits of this log from the first damaged frame on. 0 if it is the last frame: a crash leaves the frame that was
    being written in the same form, its beginning over older bytes."""
    lost, broken, is_last = 0, False, True
    for frame in _frames(file, page_size):
        ours = frame.salts == salts
        is_last = is_last and not (broken and ours)
        if not broken and ours:
            running = _add(running, frame.summed, order)
            broken = running != frame.expected
        else:
            broken = True
        lost += broken and frame.ends_commit and ours
    return 0 if is_last else lost


def _frames(file: BinaryIO, page_size: int) -> Iterator[_Frame]:
    while len(data := file.read(_FRAME.size + page_size)) == _FRAME.size + page_size:
        _page, pages, salt1, salt2, sum1, sum2 = _FRAME.unpack_from(data)
        yield _Frame((salt1, salt2), pages > 0, (sum1, sum2), data[:8] + data[_FRAME.size :])


def _add(running: _Sum, data: bytes, order: str) -> _Sum:
    """SQLite's checksum of these bytes, continued from an earlier one."""
    first, second = running
    numbers = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, two in zip(numbers, numbers, strict=True):
        first = (first + one + second) & _WRAP
        second = (second + two + first) & _WRAP
    return first, second


_PARTS = ("", "-wal", "-shm")
"""The endings of an SQLite database's files: the file itself, its write-ahead log, and the index of that log."""
_SAFETY = 1_000_000
"""How far the numbers jump after damage, because the newest entries may be lost: more than a write-ahead log ever
holds. When nothing is left of a file, the clock in milliseconds is used instead: it is ahead of every host with less
than a thousand entries a second."""

_NEW, _UPGRADED = ".new", ".upgraded"
"""Complete files that wait to be swapped in: for a damaged one, and for one of an older ahpkit."""

_NAMED = 20
"""The number of lost entries that a report names."""


def create(path: Path, content: Recovery, *, upgraded: bool = False) -> None:
    """Put a new database in place of the present one. Its numbers go on after `content.head_seq`.

    What it replaces is kept: as damaged, or with `upgraded` as the file of an older ahpkit.
    """
    with (
        _built(path, _UPGRADED if upgraded else _NEW) as part,
        closing(sqlite3.connect(part, isolation_level=None)) as db,
    ):
        db.execute("PRAGMA synchronous = FULL")
        migrate(db, part)
        tables = Tables(db)
        with transaction(db):
            tables.apply(content.snapshots.values())
            tables.apply(content.tail)
            tables.apply(Value(key, data) for key, data in content.values.items())
            tables.remember_clients(content.clients)
            tables.set_floor(content.head_seq)


def rebuild(path: Path, batches: Sequence[Batch]) -> None:
    """Replace a database whose write-ahead log is lost by the main file and the batches that followed.

    The first batches may already be in the main file.
    """
    with _built(path, _NEW) as part:
        shutil.copyfile(path, part)
        with closing(sqlite3.connect(part, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous = FULL")
            tables = Tables(db)
            for batch in _missing(batches, tables.recover().head_seq):
                tables.commit(batch)
        _sync(part)


def _missing(batches: Sequence[Batch], head_seq: int) -> Sequence[Batch]:
    """The batches after the last one whose entries are there. States and values may be written once more."""
    known = (
        number
        for number, batch in enumerate(batches, 1)
        if any(type(step) is Entry and step.seq <= head_seq for step in batch)
    )
    return batches[max(known, default=0) :]


@contextmanager
def _built(path: Path, suffix: str) -> Generator[Path]:
    """An empty file beside its place, for its owner only, in which a database is built. It is swapped in when it is
    complete. If it cannot be completed, it is removed, because the disk may be full."""
    _remove_part(path)
    part = _part(path)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield part
    except BaseException:
        _remove_part(path)
        raise
    os.replace(part, _beside(path, suffix))
    finish(path)


def _part(path: Path) -> Path:
    return _beside(path, ".part")


def _remove_part(path: Path) -> None:
    """Remove a file that was begun and not completed, by this process or by an earlier one."""
    for suffix in (*_PARTS, "-journal"):
        _beside(_part(path), suffix).unlink(missing_ok=True)


def finish(path: Path) -> None:
    """Swap in a complete file, also one that an earlier process did not swap in any more."""
    for suffix, kept_as in ((_NEW, "corrupt"), (_UPGRADED, "old")):
        _swap_in(path, _beside(path, suffix), kept_as)


def _swap_in(path: Path, new: Path, kept_as: str) -> None:
    if not new.exists():
        return
    aside = _free_name(path, kept_as)
    for suffix in _PARTS:
        with suppress(FileNotFoundError):
            os.replace(_beside(path, suffix), _beside(aside, suffix))
    os.replace(new, path)
    _sync(path.parent)


def repair(path: Path, reason: str, *, now: int) -> list[str]:
    """Replace a damaged database by its intact parts; says what was found and kept."""
    aside = _free_name(path)
    # With a damaged write-ahead log, pages of the main file may be newer than what is left of that log.
    found = [_saved(path, options) for options in ("mode=ro", "mode=ro&immutable=1")]
    content = max((one for one in found if one is not None), key=lambda one: one.head_seq, default=Recovery())
    content.problems.insert(0, f"{path}: {reason}")
    content.head_seq = max(content.head_seq + _SAFETY, now)
    content.problems.append(
        f"saved {len(content.snapshots)} channels, {len(content.tail)} entries after their snapshots and "
        f"{len(content.values)} values; the damaged file is kept as {aside}; numbers go on after {content.head_seq}"
    )
    create(path, content)
    return content.problems


def _saved(path: Path, options: str) -> Recovery | None:
    """What can be read: with the write-ahead log, or with `immutable` from the main file alone."""
    if not path.is_file():
        return None
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True)) as db:
        db.execute("PRAGMA writable_schema = ON")  # otherwise SQLite refuses the whole of a truncated file
        try:
            db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        except (*DAMAGE, sqlite3.DatabaseError):
            return None
        content = Recovery()
        _Salvage(db, content).run()
        return content


_Types = dict[str, type | tuple[type, ...]]
_OPTIONAL_TEXT, _OPTIONAL_INTEGER = (str, type(None)), (int, type(None))
_CHANNELS: _Types = {"rowid": int, "uri": str, "seq": int, "state": bytes, "checksum": int}
_STATE_PARTS: _Types = {"rowid": int, "channel": int, "seq": int, "number": int, "data": bytes}
_KEYED: _Types = {"rowid": int, "key": str, "data": bytes, "checksum": int}
_CLIENTS: _Types = {"rowid": int, "id": str, "client_seq": int}
_META: _Types = {"rowid": int, "key": str, "value": int}
_ORIGIN: _Types = {"client_id": _OPTIONAL_TEXT, "client_seq": _OPTIONAL_INTEGER}
_ENTRIES: _Types = {"rowid": int, "channel": int, "payload": bytes, **_ORIGIN, "at": int, "checksum": int}


class _Salvage:
    """Reads every readable row and keeps what leads to a state that really existed."""

    def __init__(self, db: sqlite3.Connection, content: Recovery) -> None:
        self._db = db
        self._content = content
        self._channels: dict[int, ChannelSnapshot] = {}

    def run(self) -> None:
        parts = defaultdict[tuple[int, int], dict[int, bytes]](dict)
        for _row, channel, seq, number, data in self._rows("parts", _STATE_PARTS):
            parts[channel, seq][number] = data
        for row, uri, seq, state, expected in self._rows("channels", _CHANNELS):
            with self._noting_damage():
                ahead = [data for _, data in sorted(parts.get((row, seq), {}).items())]
                self._channels[row] = self._content.snapshots[uri] = whole_snapshot(uri, seq, ahead, state, expected)
                self._reached(seq)
        for _row, key, data, expected in self._rows("keyed", _KEYED):
            with self._noting_damage():
                check(f"the value {key}", data, key, expected)
                self._content.values[key] = data
        for _row, client_id, client_seq in self._rows("clients", _CLIENTS):
            self._content.clients[client_id] = client_seq
        self._read_entries()

    def _read_entries(self) -> None:
        """Read every intact entry after the snapshot of its channel. A lost entry does not affect the others."""
        meta = {key: value for _row, key, value in self._rows("meta", _META)}
        floor = meta.get("floor")
        last, lost = floor if is_seq(floor) else None, list[int]()
        for entry, snapshot in self._intact_entries():
            if last is not None:
                lost += range(last + 1, min(entry.seq, last + 1 + _NAMED))
            last = max(entry.seq, last or 0)
            if snapshot and entry.seq > snapshot.seq:
                self._content.tail.append(entry)
            self._remember(entry.client_id, entry.client_seq)
        self._reached(last or 0)
        if lost:
            named = ", ".join(map(str, lost[:_NAMED])) + (" …" if len(lost) > _NAMED else "")
            self._content.problems.append(f"entries that cannot be read: {named}")

    def _intact_entries(self) -> Iterator[tuple[Entry, ChannelSnapshot | None]]:
        """Entries and the snapshots of their channels, if those are open."""
        for seq, id_, payload, client_id, client_seq, at, expected in self._rows("entries", _ENTRIES):
            snapshot = self._channels.get(id_)
            entry = Entry(seq, snapshot.channel if snapshot else "", payload, client_id, client_seq, at)
            with suppress(Damaged):
                check(f"entry {seq}", payload, place_of(entry, id_), expected)
                yield entry, snapshot

    def _remember(self, client_id: str | None, client_seq: int | None) -> None:
        if client_id is not None and client_seq is not None:
            self._content.clients[client_id] = max(client_seq, self._content.clients.get(client_id, -1))

    def _reached(self, seq: int) -> None:
        self._content.head_seq = max(self._content.head_seq, seq)

    @contextmanager
    def _noting_damage(self) -> Generator[None]:
        try:
            yield
        except Damaged as exc:
            self._content.problems.append(str(exc))

    def _rows(self, table: str, types: _Types) -> Iterator[tuple[Any, ...]]:
        """Rows by rowid. At an unreadable page it skips ahead, farther each time, until rows can be read again or none
        are left."""
        sql = f"SELECT {', '.join(types)} FROM {table} WHERE rowid > ? ORDER BY rowid"
        last, leap = -1, 1
        while leap < 1 << 53:
            try:
                for row in self._db.execute(sql, (last,)):
                    if not isinstance(row[0], int) or row[0] <= last:
                        raise Damaged("the rows are not in order")
                    last, leap = row[0], 1
                    if all(isinstance(value, kind) for value, kind in zip(row, types.values(), strict=True)):
                        yield row
                return
            except (*DAMAGE, sqlite3.DatabaseError, OverflowError):
                last, leap = last + leap, leap * 2


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _free_name(path: Path, kept_as: str = "corrupt") -> Path:
    names = (_beside(path, f".{kept_as}-{number}") for number in range(1, 1 << 20))
    return next(name for name in names if not any(_beside(name, suffix).exists() for suffix in _PARTS))


_log = logging.getLogger(__name__)

Convert = Callable[[Recovery], Recovery | None]
"""Converts what an older ahpkit stored, without a tail; returns None when it is up to date already."""

_ROOM = 2
"""The room for the converted states on the disk, as a multiple of their size: the tables and their write-ahead log."""

_SPARE = 16 << 20
"""Bytes that have to stay free in addition."""


def upgrade(path: Path, content: Recovery, convert: Convert) -> bool:
    """Replace a file by one with converted states; False when there is nothing to convert."""
    _log.info("%s was written by an older ahpkit: converting %d channels", path, len(content.snapshots))
    converted = convert(content)
    if converted is None:
        return False
    _remove_part(path)
    needed = _ROOM * sum(len(snapshot.state) for snapshot in converted.snapshots.values()) + _SPARE
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise StorageError(
            f"{path} has to be converted, which needs {needed >> 20} MiB, and the disk has {free >> 20} MiB: make room"
            " and start again; nothing was changed"
        )
    create(path, converted, upgraded=True)
    _log.info("%s is converted; the file as it was is kept beside it as %s.old-N", path, path.name)
    return True


__all__ = ["Convert", "create", "finish", "rebuild", "repair", "upgrade", "wal_damage"]
