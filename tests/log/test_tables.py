"""The plans SQLite makes of our statements: what must stay fast in a log of a million entries."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from ahpkit.log.entry import Batch
from ahpkit.log.migrations import migrate
from ahpkit.log.tables import Damaged, Tables, check, checksum
from support.records import entry, opening

COUNT = 30_000


class Counted:
    """The work of SQLite's machine, in thousands of instructions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.work = 0
        db.set_progress_handler(self._count, 1000)

    def _count(self) -> int:
        self.work += 1
        return 0


@pytest.fixture(scope="module")
def db() -> Generator[sqlite3.Connection]:
    """Thirty thousand entries of three channels and two clients, with snapshots near the end."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db, Path())
        batch: Batch = [
            *map(opening, "abc"),
            *(entry(seq, "abc"[seq % 3], client=("you" if seq % 2 else "me", seq)) for seq in range(1, COUNT + 1)),
            *(opening(channel, COUNT - 10) for channel in "abc"),
        ]
        Tables(db).commit(batch)
        yield db


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("seen", ("me", COUNT // 2)),
        ("seen", ("stranger", 1)),
        ("mark", (COUNT // 2,)),
        ("statistics", (0,)),
        ("read", (COUNT - 100, None, None)),
        ("read", (COUNT - 100, ["a", "b"], None)),
        ("read", (0, ["never opened"], None)),
        ("read", (0, None, 100)),
    ],
)
def test_the_work_does_not_grow_with_the_log(db: sqlite3.Connection, name: str, arguments: tuple[object, ...]) -> None:
    counted = Counted(db)

    getattr(Tables(db), name)(*arguments)

    assert counted.work < 10


def test_a_restart_looks_at_a_bounded_part_of_the_log(db: sqlite3.Connection) -> None:
    counted = Counted(db)

    recovery = Tables(db, checked_entries=100).recover()

    assert (len(recovery.tail), recovery.clients) == (10, {"me": COUNT, "you": COUNT - 1})
    assert counted.work < 10


def test_trimming_looks_only_at_what_it_forgets(db: sqlite3.Connection) -> None:
    counted = Counted(db)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        db.backup(copy)
        counted = Counted(copy)
        assert Tables(copy).trim(51) == 51

    assert counted.work < 10


def test_a_checksum_belongs_to_the_data_and_its_place() -> None:
    expected = checksum(b"data", "place")

    check("it", b"data", "place", expected)
    for data, place in ((b"Data", "place"), (b"data", "elsewhere"), ("data", "place"), (None, "place")):
        with pytest.raises(Damaged, match="it is not what was written"):
            check("it", data, place, expected)


def test_a_missing_entry_is_damage_and_no_mark(db: sqlite3.Connection) -> None:
    with pytest.raises(Damaged):
        Tables(db).mark(COUNT + 1)
