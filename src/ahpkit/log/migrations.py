"""Creates the tables of an SQLite log, and migrates older ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ahpkit.log.errors import SchemaTooNew

Migration = Callable[[sqlite3.Connection], None]
"""Migrates from one schema to the next, inside a transaction. The number of the schema is the place in the table."""


def _first(db: sqlite3.Connection) -> None:
    # AUTOINCREMENT never uses an id twice, so a channel that is removed and opened again has nothing of the old one,
    # and removing a channel takes one row: entries whose channel is gone are found by nobody and leave with the trim.
    db.execute(
        "CREATE TABLE channels (id INTEGER PRIMARY KEY AUTOINCREMENT, uri TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL,"
        " checksum INTEGER NOT NULL, state BLOB NOT NULL)"
    )
    # total: payload bytes logged up to and including this entry, so that sizes of ranges need no scan.
    db.execute(
        "CREATE TABLE entries (seq INTEGER PRIMARY KEY, channel INTEGER NOT NULL, client_id TEXT, client_seq INTEGER,"
        " at INTEGER NOT NULL, total INTEGER NOT NULL, checksum INTEGER NOT NULL, payload BLOB NOT NULL)"
    )
    db.execute("CREATE INDEX entries_by_channel ON entries (channel)")  # and by seq: the rowid is part of it
    db.execute("CREATE INDEX entries_by_client ON entries (client_id, client_seq) WHERE client_id IS NOT NULL")
    # The highest clientSeq of each client among the entries that were trimmed.
    db.execute("CREATE TABLE clients (id TEXT PRIMARY KEY, client_seq INTEGER NOT NULL)")
    db.execute("CREATE TABLE keyed (key TEXT PRIMARY KEY, checksum INTEGER NOT NULL, data BLOB NOT NULL)")
    # floor: the highest number that was trimmed.
    db.execute("INSERT INTO meta VALUES ('floor', 0)")


def _second(db: sqlite3.Connection) -> None:
    """The tables are the same. The states in them are of AHP 1.0.0, which an older ahpkit would misread.

    Files of schema 1 are not migrated here: `ahpkit.log.salvage` builds a new file.
    """


def _third(db: sqlite3.Connection) -> None:
    # A large state is written in several commits. Its row in `channels` has what follows these parts of the same `seq`.
    db.execute(
        "CREATE TABLE parts (channel INTEGER NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL,"
        " data BLOB NOT NULL, PRIMARY KEY (channel, seq, number))"
    )


MIGRATIONS: Sequence[Migration] = (_first, _second, _third)

OLD_STATES = 1
"""The schema of files whose states are of AHP 0.4.0."""


@contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Generator[None]:
    """All or nothing. Some errors end the transaction by themselves, so there may be nothing left to roll back."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def migrate(db: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the tables up to date in one transaction; refuse a schema from the future."""
    with transaction(db):
        db.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL)")
        found = version(db)
        if found > len(migrations):
            raise SchemaTooNew(path, found=found, known=len(migrations))
        for step in migrations[found:]:
            step(db)
        if found < len(migrations):
            db.execute("INSERT OR REPLACE INTO meta VALUES ('schema', ?)", (len(migrations),))


def is_intact(db: sqlite3.Connection, schema: int = len(MIGRATIONS)) -> bool:
    """Whether the tables are the ones that the migrations up to a schema make, each with its own pages.

    SQLite trusts its schema page: a flipped bit there can make a full table look empty.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrate(model, Path(), MIGRATIONS[:schema])
        expected = _definitions(model)
    roots = [root for (root,) in db.execute("SELECT rootpage FROM sqlite_schema")]
    return _definitions(db) == expected and len(set(roots)) == len(roots)


def _definitions(db: sqlite3.Connection) -> set[tuple[str, ...]]:
    rows = db.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema")
    return {(kind, name, table, " ".join(sql.split())) for kind, name, table, sql in rows}


def version(db: sqlite3.Connection) -> int:
    """The number of migrations these tables went through."""
    row = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    return row[0] if row else 0


__all__ = ["MIGRATIONS", "OLD_STATES", "Migration", "is_intact", "migrate", "transaction", "version"]
