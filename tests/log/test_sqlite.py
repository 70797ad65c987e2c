"""What only a file can do: modes, permissions, full disks, a schema from before."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from zlib import crc32

import pytest

from ahpkit.log.entry import RESERVED, Batch, ChannelRemoval, ChannelSnapshot, Entry, Recovery, Step, Value
from ahpkit.log.errors import ContentRefused, StorageError
from ahpkit.log.log import Log
from ahpkit.log.migrations import MIGRATIONS, migrate
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.testing.storage import divided
from support import requirement
from support.records import entries, entry, opening, seqs, unprivileged
from support.waiting import BOUND

FIRST_SCHEMA = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
    CREATE TABLE channels (id INTEGER PRIMARY KEY AUTOINCREMENT, uri TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL,
        checksum INTEGER NOT NULL, state BLOB NOT NULL);
    CREATE TABLE entries (seq INTEGER PRIMARY KEY, channel INTEGER NOT NULL, client_id TEXT, client_seq INTEGER,
        at INTEGER NOT NULL, total INTEGER NOT NULL, checksum INTEGER NOT NULL, payload BLOB NOT NULL);
    CREATE INDEX entries_by_channel ON entries (channel);
    CREATE INDEX entries_by_client ON entries (client_id, client_seq) WHERE client_id IS NOT NULL;
    CREATE TABLE clients (id TEXT PRIMARY KEY, client_seq INTEGER NOT NULL);
    CREATE TABLE keyed (key TEXT PRIMARY KEY, checksum INTEGER NOT NULL, data BLOB NOT NULL);
    INSERT INTO meta VALUES ('floor', 6), ('schema', 1);
    INSERT INTO channels VALUES (3, 'ahp-chat:/old', 6, 1843636833, x'7b7d');
    INSERT INTO entries VALUES (7, 3, 'me', 4, 1700000000000, 100, 4011033743, x'7b2261223a317d');
    INSERT INTO clients VALUES ('me', 3);
    INSERT INTO keyed VALUES ('key', 744252496, x'31');
"""
"""A log as the first schema wrote it. Never change this: such files exist."""


def loaded(path: Path, **options: object) -> SqliteStorage:
    storage = SqliteStorage(path, **options)  # pyright: ignore[reportArgumentType]  # Options of any kind.
    storage.load()
    return storage


def pragma(storage: SqliteStorage, name: str) -> object:
    """A setting of the writing connection, which nobody else can see."""
    (writer, *_readers) = storage._connections  # pyright: ignore[reportPrivateUsage]  # Its connections are not public.
    return writer.execute(f"PRAGMA {name}").fetchone()[0]


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
def test_durability_is_how_often_the_disk_is_waited_for(tmp_path: Path, durability: str, synchronous: int) -> None:
    storage = loaded(tmp_path / "log.db", durability=durability)

    assert pragma(storage, "synchronous") == synchronous
    assert pragma(storage, "journal_mode") == "wal"
    storage.close()


def test_a_client_that_waits_for_one_action_waits_for_one_row_and_three_pages(tmp_path: Path) -> None:
    """The entry and its two indexes."""
    storage, wal = loaded(tmp_path / "log.db"), tmp_path / "log.db-wal"
    storage.commit([opening()])
    storage.commit([entry(1, client=("me", 1))])
    statements: list[str] = []
    (writer, *_readers) = storage._connections  # pyright: ignore[reportPrivateUsage]  # Its connections are not public.
    writer.set_trace_callback(statements.append)
    before = wal.stat().st_size
    storage.commit([entry(2, client=("me", 2))])
    assert wal.stat().st_size - before == 3 * (24 + 4096)
    assert [statement.split()[0] for statement in statements] == ["INSERT"]
    assert [one.client_seq for one in storage.read(0)] == [1, 2]
    storage.close()


def test_what_was_written_moves_into_the_main_file_bit_by_bit(tmp_path: Path) -> None:
    """Not all at once, during a commit that everybody waits for."""
    storage = loaded(tmp_path / "log.db", durability="normal")
    storage.commit([opening()])
    storage.tidy()
    before = (tmp_path / "log.db").stat().st_size
    storage.commit([entry(1)._replace(payload=b"x" * (600 << 10))])
    assert (tmp_path / "log.db").stat().st_size == before
    storage.tidy()
    assert (tmp_path / "log.db").stat().st_size > 600 << 10
    storage.close()


@pytest.mark.parametrize(("is_idle", "most"), [(True, 400 << 10), (False, 1200 << 10)])
def test_never_much_is_moved_at_once(tmp_path: Path, is_idle: bool, most: int) -> None:
    """A commit that comes meanwhile waits for all of it."""
    storage = loaded(tmp_path / "log.db", durability="normal")
    storage.commit([opening()])
    for number in range(1, 60):
        storage.commit([entry(number)._replace(payload=b"x" * (64 << 10))])
        if is_idle:
            storage.tidy()
        assert (tmp_path / "log.db-wal").stat().st_size < most
    storage.close()


def test_what_is_left_of_a_removed_channel_is_deleted_bit_by_bit(tmp_path: Path) -> None:
    """Overwriting a large state takes as long as writing it did; and a host that is killed goes on with it."""
    path = tmp_path / "log.db"
    storage = loaded(path)
    parts, snapshot = divided("a", 0, *[b"x" * 1000] * 11)
    storage.commit([opening("a", RESERVED, b""), *parts, snapshot, opening("b"), ChannelRemoval("a")])
    with closing(sqlite3.connect(path)) as db:
        for left in (9, 8, 7):
            assert storage.tidy()
            assert db.execute("SELECT count(*) FROM parts").fetchone() == (left,)
        storage.close()
        storage = loaded(path)
        assert not storage.tidy(), "it looks for what is left with its first commit"
        storage.commit([entry(1, "b")])
        while storage.tidy():
            pass
        assert db.execute("SELECT count(*) FROM parts").fetchone() == (0,)
    storage.close()


def test_only_one_connection_can_write(tmp_path: Path) -> None:
    storage = loaded(tmp_path / "log.db")
    _writer, *readers = storage._connections  # pyright: ignore[reportPrivateUsage]  # Its connections are not public.

    assert readers
    for reader in readers:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM entries")
    storage.close()


def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    storage = loaded(tmp_path / "log.db")
    storage.commit([opening(), entry(1)])

    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    storage.close()

    assert modes == {"log.db": 0o600, "log.db-wal": 0o600, "log.db-shm": 0o600}


def test_a_clean_end_leaves_one_file(tmp_path: Path) -> None:
    storage = loaded(tmp_path / "log.db")
    storage.commit([opening(), *entries(1, 100)])
    storage.read(0)
    storage.seen("me", 1)
    storage.close()

    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


def test_a_name_with_special_characters_is_only_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=ro#%41" / "log.db"
    path.parent.mkdir()
    storage = loaded(path)
    storage.commit([opening(), entry(1)])
    storage.close()

    assert path.exists()


def test_a_log_of_the_first_schema_is_converted_and_the_file_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FIRST_SCHEMA)
    found = Recovery(
        head_seq=7,
        oldest_seq=7,
        snapshots={"ahp-chat:/old": opening("ahp-chat:/old", 6)},
        tail=[Entry(7, "ahp-chat:/old", b'{"a":1}', "me", 4, 1_700_000_000_000)],
        values={"key": b"1"},
        clients={"me": 4},
    )

    def convert(old: Recovery) -> Recovery:
        assert old == found
        snapshots = {"ahp-chat:/old": opening("ahp-chat:/old", 8)}
        return Recovery(head_seq=8, oldest_seq=9, snapshots=snapshots, values=old.values, clients=old.clients)

    with closing(SqliteStorage(path)) as old_one, pytest.raises(StorageError, match="written by an older ahpkit"):
        old_one.load()
    storage = SqliteStorage(path, convert=convert)
    assert storage.load() == convert(found)
    assert storage.seen("me", 4) == 0
    storage.commit([entry(9, "ahp-chat:/old")])
    storage.close()
    assert (tmp_path / "log.db.old-1").exists()
    again = SqliteStorage(path)
    assert again.load().head_seq == 9
    again.close()


def test_a_log_of_the_second_schema_goes_on_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, MIGRATIONS[:2])
        checksum = crc32(b"{}", crc32(b"0 a"))
        db.execute("INSERT INTO channels (uri, seq, checksum, state) VALUES ('a', 0, ?, x'7b7d')", (checksum,))
    storage = loaded(path)
    parts, snapshot = divided("a", 1, b"1", b"2")
    storage.commit([entry(1), *parts])
    storage.commit([snapshot])
    storage.close()
    again = SqliteStorage(path)
    assert again.load().snapshots == {"a": ChannelSnapshot("a", 1, b"12")}
    again.close()
    assert [each.name for each in tmp_path.iterdir()] == ["log.db"]


def test_a_log_is_not_converted_when_the_disk_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FIRST_SCHEMA)

    def full(place: object) -> SimpleNamespace:
        return SimpleNamespace(free=1)

    monkeypatch.setattr(shutil, "disk_usage", full)
    with pytest.raises(StorageError, match="make room and start again"):
        SqliteStorage(path, convert=lambda old: old).load()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() == (1,)


def test_room_that_an_interrupted_conversion_took_is_free_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun = tmp_path / "log.db", tmp_path / "log.db.part"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FIRST_SCHEMA)
    begun.write_bytes(b"half")

    def nearly_full(place: object) -> SimpleNamespace:
        return SimpleNamespace(free=1 if begun.exists() else 1 << 30)

    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    with closing(SqliteStorage(path, convert=lambda old: old)) as storage:
        assert storage.load().snapshots.keys() == {"ahp-chat:/old"}


@pytest.mark.parametrize(
    ("file_mode", "directory_mode"), [(0o400, 0o700), (0o000, 0o700), (0o600, 0o500)], ids=["read-only", "none", "dir"]
)
def test_missing_permission_is_not_damage(file_mode: int, directory_mode: int) -> None:
    with unprivileged() as directory:
        path = directory / "log.db"
        loaded(path).close()
        before = path.read_bytes()
        path.chmod(file_mode)
        directory.chmod(directory_mode)
        storage = SqliteStorage(path)
        try:
            with pytest.raises(StorageError, match=r"log\.db: .*(ermission|readonly)"):
                storage.load()
        finally:
            storage.close()
            directory.chmod(0o700)
            path.chmod(0o600)
        assert [found.name for found in directory.iterdir()] == ["log.db"]
        assert path.read_bytes() == before


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"missing/log\.db: No such file or directory"):
        SqliteStorage(tmp_path / "missing" / "log.db").load()


def test_a_call_after_close_is_an_error_of_the_storage(tmp_path: Path) -> None:
    storage = loaded(tmp_path / "log.db")
    storage.close()

    with pytest.raises(StorageError, match="closed database"):
        storage.commit([opening()])
    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


def test_a_file_that_another_program_holds_locked_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    storage = loaded(path)
    (writer, *_readers) = storage._connections  # pyright: ignore[reportPrivateUsage]  # Its connections are not public.
    writer.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="another process holds it locked"):
            storage.commit([opening()])
    storage.commit([opening(), entry(1)])
    storage.close()


def limit_pages(storage: SqliteStorage, extra: int) -> None:
    """A disk with room for that many more pages."""
    pragma(storage, f"max_page_count = {int(str(pragma(storage, 'page_count'))) + extra}")


def test_a_full_disk_refuses_a_batch_as_a_whole(tmp_path: Path) -> None:
    storage = loaded(tmp_path / "log.db")
    storage.commit([opening(), entry(1)])
    limit_pages(storage, 10)

    with pytest.raises(StorageError, match=r"log\.db: the disk is full"):
        storage.commit([opening("b", 1), *(entry(seq, "b", payload=b"x" * 10_000) for seq in range(2, 10))])

    assert seqs(storage.read(0)) == [1]
    limit_pages(storage, 1000)
    storage.commit([opening("b", 1), *(entry(seq, "b", payload=b"x" * 10_000) for seq in range(2, 10))])
    assert seqs(storage.read(0, channels=["b"])) == list(range(2, 10))
    assert storage.mark(9).total == 2 + 8 * 10_000
    storage.close()


async def test_a_log_on_a_full_disk_goes_on_when_there_is_room(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "log.db")
    reported: list[int] = []
    failed = asyncio.Event()
    async with (
        asyncio.timeout(BOUND),
        Log(storage, on_commit=lambda found: reported.extend(seqs(found)), on_error=lambda _: failed.set()) as log,
    ):
        log.snapshot(opening())
        await log.flush()
        limit_pages(storage, 5)
        for seq in range(1, 51):
            log.append(entry(seq, payload=b"x" * 10_000))
        await failed.wait()

        assert log.failing is not None
        assert "the disk is full" in log.failing
        assert seqs(await log.read(0)) == reported
        limit_pages(storage, 10_000)
        await log.flush()

        assert log.failing is None
        assert reported == list(range(1, 51)) == seqs(await log.read(0))


@requirement("core:hardening:a-bad-entry-costs-itself")
@pytest.mark.parametrize(
    "step",
    [
        Entry(1, "a", b"{}", "me", 1 << 63, 0),
        Entry(1, "a", b"{}", "\ud800", 1, 0),
        Entry(1, "a", b"{}", cast("str", {}), 1, 0),
        Entry(1, "a", b"{}", "me", cast("int", 7.5), 0),
        ChannelSnapshot("\ud800", 0, b"{}"),
        Value("\ud800", b"{}"),
    ],
    ids=["too large", "surrogate", "object", "fraction", "channel", "key"],
)
def test_what_cannot_be_held_is_told_from_a_disk_that_fails(tmp_path: Path, step: Step) -> None:
    storage = SqliteStorage(tmp_path / "log.db")
    storage.load()
    storage.commit([ChannelSnapshot("a", 0, b"{}")])
    with pytest.raises(ContentRefused):
        storage.commit([step])
    storage.commit([Entry(1, "a", b"{}", "me", 1, 0)])
    storage.close()


@pytest.mark.parametrize(
    "deleted", [["log.db-wal"], ["log.db-wal", "log.db-shm"], ["log.db"], ["log.db", "log.db-wal"]]
)
def test_a_file_deleted_under_the_host_is_put_back_before_the_commit_is_reported(
    tmp_path: Path, deleted: list[str]
) -> None:
    storage = SqliteStorage(tmp_path / "log.db")
    storage.load()
    storage.commit([opening(), *entries(1, 10)])
    for name in deleted:
        (tmp_path / name).unlink()
    storage.commit([entry(11)])
    storage.commit([entry(12)])
    assert seqs(storage.read(0)) == list(range(1, 13))
    assert storage.seen("nobody", 1) is None
    # As after a crash: nothing is closed, another process looks at the files.
    copy = tmp_path / "copy"
    copy.mkdir()
    for part in ("log.db", "log.db-wal"):
        if (tmp_path / part).exists():
            shutil.copy(tmp_path / part, copy)
    again = SqliteStorage(copy / "log.db")
    recovery = again.load()
    assert (recovery.problems, seqs(recovery.tail)) == ([], list(range(1, 13)))
    again.close()
    storage.close()


def test_a_directory_deleted_under_the_host_is_put_back(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "data" / "log.db")
    (tmp_path / "data").mkdir()
    storage.load()
    storage.commit([opening(), entry(1)])
    shutil.rmtree(tmp_path / "data")
    storage.commit([entry(2)])
    storage.close()
    again = SqliteStorage(tmp_path / "data" / "log.db")
    assert seqs(again.load().tail) == [1, 2]
    again.close()


def test_another_file_in_the_place_of_the_log_is_said_loudly(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "log.db")
    storage.load()
    storage.commit([opening(), entry(1)])
    (tmp_path / "log.db").rename(tmp_path / "old.db")
    (tmp_path / "log.db").write_bytes(b"")
    with pytest.raises(StorageError, match="another file is in its place"):
        storage.commit([entry(2)])
    storage.close()


def test_what_was_written_before_another_file_took_the_place_is_kept_beside_it(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "log.db")
    storage.load()
    storage.commit([opening(), entry(1)])
    for part in ("log.db", "log.db-wal"):
        (tmp_path / part).unlink()
    (tmp_path / "log.db").write_bytes(b"somebody else's")
    batch: Batch = [entry(2)]
    for _ in range(3):  # As the writer tries again: the reason stays the same.
        with pytest.raises(StorageError, match=r"Everything up to now is in log.db.replaced"):
            storage.commit(batch)
    kept = SqliteStorage(tmp_path / "log.db.replaced")
    assert seqs(kept.load().tail) == [1, 2]
    kept.close()
    (tmp_path / "log.db").unlink()
    storage.commit(batch)
    storage.commit([entry(3)])
    storage.close()
    again = SqliteStorage(tmp_path / "log.db")
    assert seqs(again.load().tail) == [1, 2, 3]
    again.close()


@pytest.mark.parametrize("left", [0, 2, 32, 9_000, 0.5])
@pytest.mark.parametrize("moved", [False, True])
def test_a_write_ahead_log_cut_off_under_the_host_is_made_again(tmp_path: Path, left: float, moved: bool) -> None:
    storage = loaded(tmp_path / "log.db")
    storage.commit([opening(), Value("key", b"1")])
    if moved:
        storage.tidy(at_rest=True)
    for number in range(1, 11):
        storage.commit([entry(number), Value("key", b"%d" % number)])
    wal = tmp_path / "log.db-wal"
    os.truncate(wal, left if isinstance(left, int) else int(wal.stat().st_size * left))
    storage.commit([entry(11)])
    storage.commit([entry(12)])
    assert seqs(storage.read(0)) == list(range(1, 13))
    storage.close()
    again = SqliteStorage(tmp_path / "log.db")
    recovery = again.load()
    assert (recovery.problems, seqs(recovery.tail), recovery.values) == ([], list(range(1, 13)), {"key": b"10"})
    again.close()


@pytest.mark.parametrize("lost", ["log.db", "log.db-wal"])
def test_what_was_lost_under_the_host_is_put_back_when_it_stops(tmp_path: Path, lost: str) -> None:
    storage = loaded(tmp_path / "log.db")
    storage.commit([opening(), entry(1)])
    if lost == "log.db":
        (tmp_path / lost).unlink()
    else:
        os.truncate(tmp_path / lost, 0)
    storage.close()
    again = SqliteStorage(tmp_path / "log.db")
    recovery = again.load()
    assert (recovery.problems, seqs(recovery.tail)) == ([], [1])
    again.close()


def test_at_rest_nothing_depends_on_the_write_ahead_log(tmp_path: Path) -> None:
    storage = loaded(tmp_path / "log.db")
    storage.commit([opening(), entry(1)])
    storage.tidy(at_rest=True)
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "log.db", tmp_path / "copy")  # As after a crash, and the write-ahead log is lost.
    again = SqliteStorage(tmp_path / "copy" / "log.db")
    assert seqs(again.load().tail) == [1]
    again.close()
    storage.close()


def test_nothing_of_a_large_state_is_held_once_it_is_stored(tmp_path: Path) -> None:
    storage = loaded(tmp_path / "log.db", durability="normal")
    storage.commit([opening()])
    before = resident()
    storage.commit([ChannelSnapshot("ahp-chat:/large", 0, b"x" * (48 << 20))])
    storage.tidy(at_rest=True)
    assert resident() - before < 16 << 20
    storage.close()


def test_a_large_state_is_replaced_by_larger_and_smaller_ones(tmp_path: Path) -> None:
    sizes = [(3 << 20) + 7, 2 << 20, (5 << 20) + 1, 10, 1 << 20, 4 << 20]
    storage = loaded(tmp_path / "log.db", durability="normal")
    for number, size in enumerate(sizes):
        state = bytes([65 + number]) * size
        storage.commit([ChannelSnapshot("ahp-chat:/large", 0, state)])
        with closing(SqliteStorage(tmp_path / "log.db")) as reader:
            assert reader.load().snapshots == {"ahp-chat:/large": ChannelSnapshot("ahp-chat:/large", 0, state)}
    ahead, last = divided("ahp-chat:/large", 1, b"a" * 100, b"b" * (2 << 20))
    storage.commit([entry(1, "ahp-chat:/large"), *ahead, last])
    storage.close()
    with closing(SqliteStorage(tmp_path / "log.db")) as reader:
        assert reader.load().snapshots["ahp-chat:/large"].state == b"a" * 100 + b"b" * (2 << 20)
