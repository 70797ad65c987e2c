"""Runs the SQL of a log on one SQLite connection.

Errors of SQLite pass through. A row whose checksum does not match raises `Damaged`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, TypeGuard, cast
from zlib import crc32

from ahpkit.log.entry import (
    MAX_PAGE,
    Batch,
    ChannelRemoval,
    ChannelSnapshot,
    Entry,
    LogPosition,
    Recovery,
    StatePart,
    Statistics,
    Step,
    Value,
    up_to,
)
from ahpkit.log.errors import NotInLog
from ahpkit.log.migrations import transaction
from ahpkit.log.storage import head_after

_COLUMNS = "e.seq, c.uri, e.payload, e.client_id, e.client_seq, e.at, e.channel, e.checksum"
_READ_ALL = f"""
    SELECT {_COLUMNS} FROM entries e CROSS JOIN channels c ON c.id = e.channel
    WHERE e.seq > ? ORDER BY e.seq LIMIT ?"""
# CROSS JOIN fixes the order of the loops: each wanted channel, then its own part of the index. Only numbers are sorted;
# the entries follow one by one, so that a page costs no more than what is on it.
_NUMBERS = """
    SELECT e.seq FROM json_each(?) w CROSS JOIN entries e INDEXED BY entries_by_channel
    ON e.channel = w.value AND e.seq > ? ORDER BY e.seq LIMIT ?"""
_READ_NUMBERS = f"""
    SELECT {_COLUMNS} FROM json_each(?) w CROSS JOIN entries e ON e.seq = w.value
    CROSS JOIN channels c ON c.id = e.channel"""
_TAIL = f"""
    SELECT {_COLUMNS} FROM channels c CROSS JOIN entries e INDEXED BY entries_by_channel
    ON e.channel = c.id AND e.seq > c.seq ORDER BY e.seq"""
# The same without the index, for a part at the end.
_RECENT_TAIL = """
    SELECT e.seq FROM entries e CROSS JOIN channels c ON c.id = e.channel
    WHERE e.seq > ? AND e.seq > c.seq ORDER BY e.seq"""
# Hops from client to client in the index instead of visiting every entry.
_CLIENTS = """
    WITH RECURSIVE logged (id) AS (
        SELECT min(client_id) FROM entries WHERE client_id IS NOT NULL
        UNION ALL
        SELECT (SELECT min(client_id) FROM entries WHERE client_id > logged.id) FROM logged WHERE id IS NOT NULL)
    SELECT id, max(client_seq) FROM (
        SELECT id, client_seq FROM clients
        UNION ALL
        SELECT id, (SELECT max(client_seq) FROM entries WHERE client_id = logged.id) FROM logged WHERE id IS NOT NULL)
    GROUP BY id"""
_FIRST_NEEDED = """
    SELECT e.seq FROM entries e CROSS JOIN channels c ON c.id = e.channel
    WHERE e.seq < ? AND e.seq > c.seq ORDER BY e.seq LIMIT 1"""
# NOT INDEXED: by number, not through every entry of every client.
_REMEMBER_CLIENTS = """
    INSERT INTO clients
    SELECT client_id, max(client_seq) FROM entries NOT INDEXED WHERE seq < ? AND client_id IS NOT NULL
    GROUP BY client_id ON CONFLICT DO UPDATE SET client_seq = max(client_seq, excluded.client_seq)"""

_ROWS_AT_ONCE = (128, 16, 1)
"""Entries in one statement. Around each statement Python's module releases the interpreter lock, and while the event
loop is busy it takes milliseconds to get it back. Row by row, a commit under load took four times as long."""
_INSERT = {
    size: f"INSERT INTO entries VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?, ?)'] * size)}" for size in _ROWS_AT_ONCE
}

_SET_STATE = """
    INSERT INTO channels (uri, seq, checksum, state) VALUES (?, ?, ?, ?) ON CONFLICT (uri) DO UPDATE
    SET seq = excluded.seq, checksum = excluded.checksum, state = excluded.state RETURNING id"""
_SET_PART = "INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)"
_DELETE_PARTS = "DELETE FROM parts WHERE channel = ? AND seq = ? AND number >= ?"
_PARTS = "SELECT data FROM parts WHERE channel = ? AND seq = ? ORDER BY number"
_FORGET_A_PART = """
    DELETE FROM parts WHERE rowid = (
        SELECT p.rowid FROM parts p CROSS JOIN channels c ON c.id = p.channel
        WHERE p.channel = ? AND p.seq <> c.seq AND p.seq <> ? LIMIT 1)"""
_FORGET_REMOVED = """
    DELETE FROM parts WHERE rowid = (SELECT rowid FROM parts WHERE channel = ? LIMIT 1) RETURNING length(data)"""

_SET_VALUE = """
    INSERT INTO keyed VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET checksum = excluded.checksum, data = excluded.data"""

_PART = 1 << 20
"""Bytes of a state that are written in one piece."""

_PORTION = 64
"""Numbers of entries that are looked up first; more are looked up when these were not enough."""

_CHECKED_ENTRIES = 20_000
"""How far back a restart checks the index: as far as tails reach when snapshots keep up, for a few milliseconds."""
_NO_CHANNEL = 0
"""The channel of an entry whose channel is not open: the entry only keeps its number, and is never returned."""


class Damaged(Exception):
    """The data that were read are not what was written."""


DAMAGE = (Damaged, UnicodeDecodeError)
"""Exceptions that reading a damaged database raises, in addition to SQLite's own."""


def checksum(data: bytes | memoryview, place: str) -> int:
    """SQLite does not notice flipped bits in a row. `place` binds the data to its row."""
    return crc32(data, crc32(place.encode()))


def is_seq(value: object) -> TypeGuard[int]:
    """Whether this can be a number of the log: one that JSON carries safely."""
    return isinstance(value, int) and 0 <= value < 1 << 53


def _integer(value: float) -> int:
    """The integer that a row will return. SQLite converts `7.0` to 7, so we convert it before."""
    if value != int(value):
        raise ValueError(f"{value!r} is not a whole number")
    return int(value)


def place_of(entry: Entry, channel_id: int) -> str:
    """Everything in an entry's row except its payload."""
    return f"{entry.seq} {channel_id} {entry.client_id} {entry.client_seq} {entry.at}"


def place_of_state(uri: str, seq: int, parts: Iterable[int]) -> str:
    """Everything of a stored state except its last piece, including the checksums of the `parts` before it."""
    return " ".join((f"{seq} {uri}", *map(str, parts)))


def whole_snapshot(uri: str, seq: int, parts: Sequence[object], rest: object, expected: object) -> ChannelSnapshot:
    """The snapshot in these rows; raises `Damaged` when a part is missing, extra or wrong."""
    intact = [part for part in parts if isinstance(part, bytes)]
    check(f"the snapshot of {uri}", rest, place_of_state(uri, seq, map(crc32, intact)), expected)
    return ChannelSnapshot(uri, seq, b"".join((*intact, cast("bytes", rest))))


def check(what: str, data: object, place: str, expected: object) -> None:
    """Raise `Damaged` unless this was written there; in a damaged file a column can hold any type."""
    if not isinstance(data, bytes) or checksum(data, place) != expected:
        raise Damaged(f"{what} is not what was written")


class Tables:
    """The log's tables. Only one connection at a time may `commit` and `trim`."""

    def __init__(self, db: sqlite3.Connection, *, checked_entries: int = _CHECKED_ENTRIES) -> None:
        self._db = db
        self._checked_entries = checked_entries
        self._head = 0
        self._total = 0
        self._part_bytes = 0
        """Bytes of the parts of states in the last commit."""
        self._ids: dict[str, int] = {}
        self._divided: set[int] = set()
        """The channels that have parts, of the stored state or left over."""
        self._removed: set[int] = set()
        """Those among them that are gone. Nobody finds their parts any more."""
        self._current = False
        """Whether the knowledge about the file is valid. It is not before the first commit, and not after a failed
        one."""

    # Writing

    def commit(self, batch: Batch) -> int:
        """Write a batch; returns the bytes of its payloads and parts."""
        if not self._current:
            self._refresh()
        head_after(self._head, batch)
        self._current = False
        before, self._part_bytes = self._total, 0
        if len(batch) == 1 and type(batch[0]) is Entry:  # One row is a separate transaction.
            self.apply(batch)
        else:
            with transaction(self._db):
                self.apply(batch)
        self._current = True
        return self._total - before + self._part_bytes

    def apply(self, steps: Iterable[Step]) -> None:
        """Write steps inside the caller's transaction, without checking their numbers."""
        values: dict[str, Value] = {}
        ordered: list[Step] = []
        for step in steps:
            if type(step) is Value:
                values[step.key] = step  # Only the last one of each is written, and no row of entries is cut in two.
            else:
                ordered.append(step)
        for kind, group in groupby((*ordered, *values.values()), type):
            if kind is Entry:
                self._insert(cast("Iterator[Entry]", group))
            else:
                for step in group:
                    self._apply(step)

    def set_floor(self, seq: int) -> None:
        self._db.execute("UPDATE meta SET value = max(value, ?) WHERE key = 'floor'", (seq,))

    def remember_clients(self, clients: dict[str, int]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO clients VALUES (?, ?)", clients.items())

    @property
    def has_removed(self) -> bool:
        """Whether parts of a channel that is gone may be left."""
        return bool(self._removed)

    def forget_removed(self) -> int:
        """Delete one part of a channel that is gone; returns its size, 0 when there is none.

        Deleting all of them at once would delay commits for as long as writing them took.
        """
        while self._removed and self._current:
            id_ = next(iter(self._removed))
            if (size := self._one(_FORGET_REMOVED, id_)) is not None:
                return max(1, size)
            self._removed.discard(id_)
            self._divided.discard(id_)
        return 0

    def trim(self, before_seq: int) -> int:
        with transaction(self._db):
            needed = self._one(_FIRST_NEEDED, before_seq)
            before = min(before_seq, self._head_seq() + 1) if needed is None else needed
            self._db.execute(_REMEMBER_CLIENTS, (before,))
            self._db.execute("DELETE FROM entries WHERE seq < ?", (before,))
            self.set_floor(before - 1)
            return self._floor() + 1

    def _refresh(self) -> None:
        self._head = self._head_seq()
        self._total = self._one("SELECT total FROM entries ORDER BY seq DESC LIMIT 1") or 0
        self._ids = dict(self._db.execute("SELECT uri, id FROM channels"))
        self._divided = self._with_parts()
        self._removed = self._divided.difference(self._ids.values())

    def _insert(self, entries: Iterable[Entry]) -> None:
        rows = self._rows(entries)
        done = 0
        for size in _ROWS_AT_ONCE:
            while len(rows) - done >= size:
                self._db.execute(_INSERT[size], [*chain.from_iterable(rows[done : done + size])])
                done += size

    def _rows(self, entries: Iterable[Entry]) -> list[tuple[object, ...]]:
        ids, head, total = self._ids, self._head, self._total
        rows: list[tuple[object, ...]] = []
        for head, channel, payload, client_id, client_seq, at, _, _ in entries:
            if type(client_seq) is float or type(at) is float:
                client_seq, at = None if client_seq is None else _integer(client_seq), _integer(at)
            total += len(payload)
            id_ = ids.get(channel, _NO_CHANNEL)
            place = f"{head} {id_} {client_id} {client_seq} {at}"  # As `place_of` has it: there are many of them.
            checked = crc32(payload, crc32(place.encode()))
            rows.append((head, id_, client_id, client_seq, at, total, checked, payload))
        self._head, self._total = head, total
        return rows

    def _apply(self, step: Step) -> None:
        match step:
            case StatePart(channel, seq, number, data):
                if (id_ := self._ids.get(channel)) is not None:
                    self._db.execute(_SET_PART, (id_, seq, number, data))
                    self._divided.add(id_)
                    self._part_bytes += len(data)
                    self._forget_a_part(id_, seq)
            case ChannelSnapshot():
                self._set_state(step)
            case ChannelRemoval(channel):
                self._db.execute("DELETE FROM channels WHERE uri = ?", (channel,))
                if (id_ := self._ids.pop(channel, None)) in self._divided:
                    self._removed.add(id_)
            case Value(key, data):
                if data is None:
                    self._db.execute("DELETE FROM keyed WHERE key = ?", (key,))
                else:  # An existing row is updated in place: that writes fewer pages than a new one.
                    self._db.execute(_SET_VALUE, (key, checksum(data, key), data))
            case Entry():
                self._insert((step,))

    def _set_state(self, snapshot: ChannelSnapshot) -> None:
        """Write a state, a large one in parts: SQLite keeps a copy of what a statement wrote until it is used again."""
        channel, seq, state, ahead = snapshot
        parts = [memoryview(state)[at : at + _PART] for at in range(0, len(state) - _PART, _PART)]
        rest = memoryview(state)[len(parts) * _PART :]
        checksums = (*(part.checksum for part in ahead), *map(crc32, parts))
        expected = checksum(rest, place_of_state(channel, seq, checksums))
        id_ = self._ids[channel] = self._one(_SET_STATE, channel, seq, expected, rest)
        for number, part in enumerate(parts, len(ahead)):
            self._db.execute(_SET_PART, (id_, seq, number, part))
        if parts:
            self._divided.add(id_)
        if id_ in self._divided:
            self._db.execute(_DELETE_PARTS, (id_, seq, len(checksums)))
            self._forget_a_part(id_, seq)

    def _forget_a_part(self, id_: int, newest: int) -> None:
        """Delete one part of a replaced state. Deleting all at once would take as long as writing them did."""
        self._db.execute(_FORGET_A_PART, (id_, newest))

    # Reading

    def check_structure(self) -> None:
        """Let SQLite look at every page; takes about two milliseconds for a mebibyte."""
        result = self._one("PRAGMA integrity_check(1)")
        if result != "ok":
            raise Damaged(str(result).splitlines()[-1])

    def recover(self) -> Recovery:
        """Everything a restart needs. The work grows with the channels and their tails, not with the log."""
        with transaction(self._db, "DEFERRED"):
            oldest = self._floor() + 1
            if self._one("SELECT min(seq) FROM entries WHERE seq >= ?", oldest) not in (None, oldest):
                raise Damaged(f"entry {oldest} is missing")
            return Recovery(
                head_seq=self._head_seq(),
                oldest_seq=oldest,
                snapshots={snapshot.channel: snapshot for snapshot in self._snapshots()},
                tail=self._tail(),
                values=dict(self._values()),
                clients=dict(self._db.execute(_CLIENTS)),
            )

    def read(
        self, after: int, channels: Collection[str] | None, limit: int | None, max_bytes: int | None = None
    ) -> list[Entry]:
        limit = -1 if limit is None else limit
        with transaction(self._db, "DEFERRED"):
            floor, head = self._floor(), self._head_seq()
            if not floor <= after <= head:
                raise NotInLog(after, oldest_seq=floor + 1, head_seq=head)
            if channels is None:
                return up_to(self._found(_READ_ALL, after, limit), max_bytes)
            # Not by name: SQLite's JSON ends a text at its first NUL.
            found = (self._one("SELECT id FROM channels WHERE uri = ?", uri) for uri in set(channels))
            ids = json.dumps([id_ for id_ in found if id_ is not None])
            return up_to(self._in_channels(ids, after, limit), max_bytes)

    def seen(self, client_id: str, client_seq: int) -> int | None:
        found = self._one("SELECT max(seq) FROM entries WHERE client_id = ? AND client_seq = ?", client_id, client_seq)
        if found is not None:
            return found
        return self._one("SELECT 0 FROM clients WHERE id = ? AND client_seq >= ?", client_id, client_seq)

    def mark(self, seq: int) -> LogPosition:
        found = self._db.execute("SELECT at, total FROM entries WHERE seq = ?", (seq,)).fetchone()
        if found is None:
            raise Damaged(f"entry {seq} is missing")
        return LogPosition(*found)

    def statistics(self, disk_bytes: int) -> Statistics:
        with transaction(self._db, "DEFERRED"):
            oldest = self._floor() + 1
            before = self._one(
                "SELECT total - length(payload) FROM entries WHERE seq >= ? ORDER BY seq LIMIT 1", oldest
            )
            total = self._one("SELECT total FROM entries ORDER BY seq DESC LIMIT 1")
            return Statistics(
                head_seq=self._head_seq(),
                oldest_seq=oldest,
                channels=self._one("SELECT count(*) FROM channels"),
                payload_bytes=0 if before is None else total - before,
                disk_bytes=disk_bytes,
            )

    def _head_seq(self) -> int:
        return max(self._floor(), self._one("SELECT max(seq) FROM entries") or 0)

    def _floor(self) -> int:
        floor = self._one("SELECT value FROM meta WHERE key = 'floor'")
        if not is_seq(floor):
            raise Damaged("the oldest number is lost")
        return floor

    def _in_channels(self, ids: str, after: int, limit: int) -> Iterator[Entry]:
        """The entries of some channels, looked up in growing portions, so that a small page is cheap."""
        portion = _PORTION
        while limit:
            most = portion if limit < 0 else min(portion, limit)
            seqs: list[int] = [seq for (seq,) in self._db.execute(_NUMBERS, (ids, after, most))]
            yield from self._found(_READ_NUMBERS, json.dumps(seqs))
            if len(seqs) < most:
                return
            after, limit, portion = seqs[-1], limit - len(seqs) if limit > 0 else limit, min(2 * portion, MAX_PAGE)

    def _found(self, sql: str, *parameters: object) -> Iterator[Entry]:
        for seq, uri, payload, client_id, client_seq, at, id_, expected in self._db.execute(sql, parameters):
            place = f"{seq} {id_} {client_id} {client_seq} {at}"  # As `place_of` has it: a tail has many of them.
            if type(payload) is not bytes or crc32(payload, crc32(place.encode())) != expected:
                raise Damaged(f"entry {seq} is not what was written")
            yield Entry(seq, uri, payload, client_id, client_seq, at)

    def _tail(self) -> list[Entry]:
        """The entries after the snapshots, found through the index. The last part is also read without it, because a
        damaged index would hide entries."""
        tail = list(self._found(_TAIL))
        recent = self._head_seq() - self._checked_entries
        found = [entry.seq for entry in tail if entry.seq > recent]
        if found != [seq for (seq,) in self._db.execute(_RECENT_TAIL, (recent,))]:
            raise Damaged("the index of the entries does not match them")
        return tail

    def _snapshots(self) -> Iterator[ChannelSnapshot]:
        divided = self._with_parts()
        for id_, uri, seq, state, expected in self._db.execute("SELECT id, uri, seq, state, checksum FROM channels"):
            parts = [data for (data,) in self._db.execute(_PARTS, (id_, seq))] if id_ in divided else []
            yield whole_snapshot(uri, seq, parts, state, expected)

    def _with_parts(self) -> set[int]:
        if not self._one("SELECT 1 FROM sqlite_schema WHERE name = 'parts'"):  # The file is of an older ahpkit.
            return set()
        return {id_ for (id_,) in self._db.execute("SELECT DISTINCT channel FROM parts")}

    def _values(self) -> Iterator[tuple[str, bytes]]:
        for key, data, expected in self._db.execute("SELECT key, data, checksum FROM keyed"):
            check(f"the value {key}", data, key, expected)
            yield key, data

    def _one(self, sql: str, *parameters: object) -> Any:
        rows = self._db.execute(sql, parameters).fetchall()
        return rows[0][0] if rows else None


__all__ = ["DAMAGE", "Damaged", "Tables", "check", "is_seq", "place_of", "whole_snapshot"]
