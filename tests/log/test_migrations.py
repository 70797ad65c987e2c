from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from ahpkit.log.errors import SchemaTooNew
from ahpkit.log.migrations import MIGRATIONS, migrate, transaction, version
from ahpkit.log.sqlite import SqliteStorage
from support.records import entry, opening

PATH = Path("log.db")


@pytest.fixture
def db() -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        yield db


def tables(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def second(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE entries ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'")


def failing(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE half (done)")
    raise ZeroDivisionError


def test_a_new_database_gets_the_newest_schema(db: sqlite3.Connection) -> None:
    migrate(db, PATH)

    assert version(db) == len(MIGRATIONS)
    assert {"meta", "channels", "entries", "clients", "keyed"} <= tables(db)


def test_an_older_schema_is_brought_up_to_date_and_keeps_its_rows(db: sqlite3.Connection) -> None:
    migrate(db, PATH, MIGRATIONS[:1])
    db.execute("INSERT INTO entries VALUES (1, 0, NULL, NULL, 0, 2, 0, x'7b7d')")

    migrate(db, PATH, [*MIGRATIONS[:1], second])

    assert version(db) == 2
    assert db.execute("SELECT seq, payload, colour FROM entries").fetchall() == [(1, b"{}", "blue")]


def test_migrating_again_changes_nothing(db: sqlite3.Connection) -> None:
    migrate(db, PATH)
    before = db.execute("SELECT sql FROM sqlite_schema").fetchall()

    migrate(db, PATH)

    assert db.execute("SELECT sql FROM sqlite_schema").fetchall() == before


def test_a_migration_that_fails_leaves_the_old_schema(db: sqlite3.Connection) -> None:
    migrate(db, PATH, MIGRATIONS[:1])

    with pytest.raises(ZeroDivisionError):
        migrate(db, PATH, [*MIGRATIONS[:1], second, failing])

    assert version(db) == 1
    assert "half" not in tables(db)
    assert "colour" not in db.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries'").fetchone()[0]


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    storage = SqliteStorage(path)
    storage.load()
    storage.commit([opening(), entry(1)])
    storage.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = 99 WHERE key = 'schema'")

    newer = SqliteStorage(path)
    with pytest.raises(SchemaTooNew) as caught:
        newer.load()
    newer.close()

    assert str(caught.value) == (
        f"{path} was written by a newer ahpkit (schema 99, this one knows up to {len(MIGRATIONS)}): "
        "update ahpkit or use another data directory"
    )
    assert (caught.value.found, caught.value.known) == (99, len(MIGRATIONS))
    assert [found.name for found in tmp_path.iterdir()] == ["log.db"]


def test_a_transaction_that_fails_is_undone(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE things (name)")

    with pytest.raises(ZeroDivisionError), transaction(db):
        db.execute("INSERT INTO things VALUES ('x')")
        raise ZeroDivisionError

    assert not db.in_transaction
    assert db.execute("SELECT * FROM things").fetchall() == []
