"""Damaged databases: the host starts with what is intact, says so, and keeps the file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery, Value
from ahpkit.log.errors import StorageError
from ahpkit.log.salvage import create, finish
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.testing.storage import divided
from support import requirement
from support.records import entry, opening, seqs

NOW = 1_800_000_000_000
HEAD = 600
PAGE = 4096
CHANNELS = ("a", "b", "c")
ENTRIES = [
    Entry(seq, CHANNELS[seq % 3], f"payload {seq} ".encode() * 20, "me" if seq % 2 else None, seq, NOW - HEAD + seq)
    for seq in range(1, HEAD + 1)
]


def state(channel: str, seq: int) -> bytes:
    return f"state of {channel} at {seq} ".encode() * 50


def snapshot(channel: str, seq: int) -> ChannelSnapshot:
    return ChannelSnapshot(channel, seq, state(channel, seq))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with three channels: `a` has no newer snapshot, `b` one in the middle, `c` one in parts near the end."""
    path = tmp_path_factory.mktemp("sound") / "log.db"
    storage = SqliteStorage(path)
    storage.load()
    storage.commit([*(snapshot(channel, 0) for channel in CHANNELS), *ENTRIES])
    whole = state("c", 590)
    parts, last = divided("c", 590, whole[:400], whole[400:800], whole[800:])
    storage.commit([snapshot("b", 300), *parts])
    storage.commit([last, Value("key", b"value"), Value("other", b"x" * 50)])
    storage.close()
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copy(sound, tmp_path))


def load(path: Path, *, check_whole: bool = True) -> Recovery:
    """Open, and check that what was recovered can be written to and opened again without new problems."""
    storage = SqliteStorage(path, clock=lambda: NOW, check_whole_bytes=1 << 40 if check_whole else -1)
    recovery = storage.load()
    fresh = f"opened at {recovery.head_seq}"
    storage.commit([opening(fresh, recovery.head_seq), entry(recovery.head_seq + 1, fresh)])
    storage.close()
    again = SqliteStorage(path, clock=lambda: NOW)
    second = again.load()
    again.close()
    assert (second.problems, second.head_seq) == ([], recovery.head_seq + 1)
    assert second.tail[:-1] == recovery.tail
    return recovery


def assert_a_past_that_happened(recovery: Recovery) -> None:
    """Snapshots are true ones, and the entries after them are true ones in their order; damaged ones are left out."""
    assert recovery.snapshots.keys() <= set(CHANNELS)
    for channel, found in recovery.snapshots.items():
        assert found.state == state(channel, found.seq)
        after = [each for each in ENTRIES if each.channel == channel and each.seq > found.seq]
        tail = [each for each in recovery.tail if each.channel == channel]
        assert tail == [each for each in after if each in tail]
    assert recovery.values.items() <= {"key": b"value", "other": b"x" * 50}.items()


def assert_kept(path: Path, damaged: bytes) -> None:
    assert path.with_name("log.db.corrupt-1").read_bytes() == damaged


def test_a_sound_log_is_left_alone(path: Path) -> None:
    recovery = load(path)

    assert (recovery.problems, recovery.head_seq) == ([], HEAD)
    assert [found.name for found in path.parent.iterdir()] == ["log.db"]


@requirement("core:hardening:server-seq-survives-restart")
@pytest.mark.parametrize("tenths", range(10))
def test_a_file_that_was_cut_off(path: Path, tenths: int) -> None:
    damaged = path.read_bytes()[: path.stat().st_size * tenths // 10]
    path.write_bytes(damaged)

    recovery = load(path)

    assert_a_past_that_happened(recovery)
    assert_kept(path, damaged)
    assert recovery.head_seq >= NOW
    assert recovery.oldest_seq == recovery.head_seq + 1
    assert str(path) in recovery.problems[0]
    assert f"the damaged file is kept as {path}.corrupt-1" in recovery.problems[-1]


def test_much_of_a_file_that_was_cut_off_is_saved(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 9 // 10)

    recovery = load(path)

    assert set(recovery.snapshots) == {"a", "b", "c"}
    assert len(recovery.tail) > 100


def test_a_header_that_asks_for_a_newer_sqlite(path: Path) -> None:
    """SQLite would open such a file, but only to read it."""
    damaged = path.read_bytes()[:18] + b"\x09" + path.read_bytes()[19:]
    path.write_bytes(damaged)

    recovery = load(path)

    assert "the header is damaged" in recovery.problems[0]
    assert len(recovery.tail) == 200 + 100 + 3
    assert_kept(path, damaged)


@pytest.mark.parametrize("garbage", [b"\x00", b"\xff", b"not a database "], ids=["zeros", "ones", "text"])
def test_a_garbage_header(path: Path, garbage: bytes) -> None:
    damaged = (garbage * 100)[:100] + path.read_bytes()[100:]
    path.write_bytes(damaged)

    recovery = load(path)

    assert_a_past_that_happened(recovery)
    assert_kept(path, damaged)
    assert recovery.head_seq >= NOW
    assert recovery.problems


def pages(path: Path) -> int:
    return path.stat().st_size // PAGE


@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_flipped_bytes_anywhere_are_noticed_or_harmless(sound: Path, tmp_path: Path, flip: int) -> None:
    original = sound.read_bytes()
    noticed = 0
    for page in range(pages(sound)):
        path = tmp_path / str(page) / "log.db"
        path.parent.mkdir()
        damaged = bytearray(original)
        for offset in (PAGE // 4, PAGE // 2, PAGE // 2 + 1, PAGE - 100):
            damaged[page * PAGE + offset] ^= flip
        path.write_bytes(damaged)

        recovery = load(path)

        assert_a_past_that_happened(recovery)
        if recovery.problems:
            noticed += 1
            assert_kept(path, bytes(damaged))
            assert recovery.head_seq >= NOW
        else:
            assert recovery.head_seq == HEAD
            assert set(recovery.snapshots) == {"a", "b", "c"}
            assert recovery.tail == [each for each in ENTRIES if each.seq > recovery.snapshots[each.channel].seq]
    assert noticed > pages(sound) // 3


def test_a_page_of_noise_costs_only_what_depends_on_it(path: Path) -> None:
    """Channel `c` was snapshotted after the damage, so it comes back whole; `a` and `b` lack what was on the page."""
    with closing(sqlite3.connect(path)) as db:
        (number,) = db.execute(
            "SELECT pageno FROM dbstat WHERE name = 'entries' AND pagetype = 'leaf' LIMIT 1 OFFSET 20"
        )
    _overwrite(path, number[0])

    recovery = load(path)

    assert_a_past_that_happened(recovery)
    tail = {channel: seqs([each for each in recovery.tail if each.channel == channel]) for channel in CHANNELS}
    assert tail["c"] == [seq for seq in range(591, HEAD + 1) if seq % 3 == 2]
    assert tail["a"][-1] == HEAD
    assert 180 < len(tail["a"]) < 200
    assert any("entries that cannot be read: " in problem for problem in recovery.problems)


def _overwrite(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(bytes(range(256)) * (PAGE // 256))


def test_a_payload_that_changed_in_place_is_not_replayed(path: Path) -> None:
    data = path.read_bytes()
    damaged = data.replace(b"payload 501 payload 501", b"payload 501 PAYLOAD 501", 1)
    assert damaged != data
    path.write_bytes(damaged)

    recovery = load(path)

    assert_a_past_that_happened(recovery)
    assert seqs(recovery.tail) == [
        each.seq for each in ENTRIES if each.seq > recovery.snapshots[each.channel].seq and each.seq != 501
    ]
    assert "entry 501 is not what was written" in recovery.problems[0]


def test_a_snapshot_that_changed_in_place_loses_that_channel_only(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"state of b at 300", b"state of b at 301", 1))

    recovery = load(path)

    assert set(recovery.snapshots) == {"a", "c"}
    assert_a_past_that_happened(recovery)
    assert "the snapshot of b is not what was written" in recovery.problems[0]


def test_a_value_that_changed_in_place_is_lost_alone(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"x" * 50, b"x" * 49 + b"y"))

    recovery = load(path)

    assert recovery.values == {"key": b"value"}
    assert set(recovery.snapshots) == {"a", "b", "c"}


def test_clients_are_remembered_so_that_nothing_is_applied_twice(path: Path) -> None:
    _overwrite(path, pages(path) // 2)
    storage = SqliteStorage(path, clock=lambda: NOW)
    recovery = storage.load()

    assert recovery.problems
    assert recovery.clients["me"] > 500
    assert storage.seen("me", 1) == 0
    storage.close()


def test_a_garbage_write_ahead_log(path: Path) -> None:
    sound, wal = path.read_bytes(), path.with_name("log.db-wal")
    wal.write_bytes(b"garbage" * 1000)

    recovery = load(path)

    assert_a_past_that_happened(recovery)
    assert "the write-ahead log log.db-wal is damaged, the newest entries may be lost" in recovery.problems[0]
    assert len(recovery.tail) == 200 + 100 + 3
    assert recovery.head_seq >= NOW
    assert_kept(path, sound)
    assert path.with_name("log.db.corrupt-1-wal").read_bytes() == b"garbage" * 1000


def test_a_write_ahead_log_of_zeros_is_a_commit_that_never_happened(path: Path) -> None:
    path.with_name("log.db-wal").write_bytes(bytes(5000))

    recovery = load(path)

    assert (recovery.problems, recovery.head_seq) == ([], HEAD)


def test_entries_of_a_write_ahead_log_are_saved_too(path: Path, tmp_path: Path) -> None:
    storage = SqliteStorage(path)
    storage.load()
    storage.commit([opening("late", HEAD), entry(HEAD + 1, "late")])
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for part in ("log.db", "log.db-wal"):
        shutil.copy(path.with_name(part), crashed)
    storage.close()
    damaged = crashed / "log.db"
    with closing(sqlite3.connect(path)) as db:
        (number,) = db.execute(
            "SELECT pageno FROM dbstat WHERE name = 'entries' AND pagetype = 'leaf' LIMIT 1 OFFSET 20"
        )
    _overwrite(damaged, number[0])

    recovery = SqliteStorage(damaged, clock=lambda: NOW)
    found = recovery.load()
    recovery.close()

    assert found.problems
    assert found.snapshots["late"] == opening("late", HEAD)
    assert seqs(found.tail)[-1] == HEAD + 1


def test_an_empty_file_is_not_taken_for_a_new_log(path: Path) -> None:
    path.write_bytes(b"")

    recovery = load(path)

    assert recovery.head_seq == NOW
    assert recovery.problems[0] == f"{path}: the file is empty"
    assert_kept(path, b"")


def test_a_deleted_file_whose_write_ahead_log_is_still_there(path: Path) -> None:
    path.rename(path.with_name("log.db-wal"))

    recovery = load(path)

    assert recovery.head_seq == NOW
    assert recovery.problems[0] == f"{path}: is missing, only its write-ahead log is there"
    assert path.with_name("log.db.corrupt-1-wal").exists()


def test_a_directory_in_the_place_of_the_file(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "mine").write_text("kept")

    recovery = load(path)

    assert recovery.problems[0] == f"{path}: is not a file"
    assert (path.with_name("log.db.corrupt-1") / "mine").read_text() == "kept"


def test_a_database_of_something_else(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE entries (unrelated)")
        db.execute("INSERT INTO entries VALUES ('thing')")
    foreign = path.read_bytes()

    recovery = load(path)

    assert (recovery.snapshots, recovery.tail) == ({}, [])
    assert recovery.problems
    assert_kept(path, foreign)


def test_rows_of_the_wrong_type_are_left_out(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE channels SET uri = x'ff' WHERE uri = 'a'")
        db.execute("UPDATE keyed SET data = 'text' WHERE key = 'key'")
        db.execute("UPDATE entries SET at = 'never' WHERE seq = 595")

    recovery = load(path)

    assert set(recovery.snapshots) == {"b", "c"}
    assert set(recovery.values) == {"other"}
    assert_a_past_that_happened(recovery)
    assert 595 not in seqs(recovery.tail)
    assert 596 in seqs(recovery.tail)


@pytest.mark.parametrize("floor", [None, -1, 1 << 60])
def test_an_oldest_number_that_cannot_be_is_not_believed(path: Path, floor: int | None) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        if floor is None:
            db.execute("DELETE FROM meta WHERE key = 'floor'")
        else:
            db.execute("UPDATE meta SET value = ? WHERE key = 'floor'", (floor,))

    recovery = load(path)

    assert "the oldest number is lost" in recovery.problems[0]
    assert recovery.head_seq == NOW
    assert len(recovery.tail) == 200 + 100 + 3


def test_entries_that_vanished_from_the_start_are_missed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM entries WHERE seq < 100")

    recovery = load(path)

    assert "entry 1 is missing" in recovery.problems[0]
    assert any("entries that cannot be read: 1, 2, 3" in problem for problem in recovery.problems)
    assert_a_past_that_happened(recovery)
    assert {each.channel for each in recovery.tail} == {"a", "b", "c"}


def test_damage_that_shows_after_the_start_is_repaired_at_the_next_one(path: Path) -> None:
    storage = SqliteStorage(path)
    storage.load()
    storage.commit([snapshot(channel, HEAD) for channel in CHANNELS])
    storage.close()
    path.write_bytes(path.read_bytes().replace(b"payload 9 payload 9", b"payload 9 PAYLOAD 9", 1))

    storage = SqliteStorage(path)
    assert storage.load().problems == []
    assert seqs(storage.read(9))[0] == 10
    with pytest.raises(
        StorageError, match=r"entry 9 is not what was written.*: restart the host to save what is intact"
    ):
        storage.read(8)
    storage.close()

    recovery = load(path)
    assert recovery.problems[0] == f"{path}: entry 9 is not what was written"
    assert set(recovery.snapshots) == set(CHANNELS)


def test_a_damaged_page_that_a_start_would_not_read_is_found_too(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        find = "SELECT pageno FROM dbstat WHERE name = 'entries_by_client' AND pagetype = 'leaf' LIMIT 1"
        (number,) = db.execute(find).fetchone()
    _overwrite(path, number)

    recovery = load(path)

    assert recovery.problems
    assert len(recovery.tail) == 200 + 100 + 3


def test_each_damaged_file_is_kept_under_its_own_name(path: Path) -> None:
    for number in (1, 2, 3):
        path.write_bytes(b"damaged %d" % number)
        load(path)

    assert [path.with_name(f"log.db.corrupt-{n}").read_bytes() for n in (1, 2, 3)] == [
        b"damaged 1",
        b"damaged 2",
        b"damaged 3",
    ]


def test_numbers_never_go_back_however_often_it_breaks(path: Path) -> None:
    heads = [HEAD]
    for _ in range(3):
        _overwrite(path, 2)
        heads.append(load(path).head_seq)

    assert heads == sorted(heads)
    assert len(set(heads)) == len(heads)


@pytest.mark.parametrize("moved", [0, 1, 2], ids=["nothing yet", "the file", "the file and its log"])
def test_a_swap_that_a_crash_interrupted_is_completed(path: Path, moved: int) -> None:
    content = Recovery(head_seq=1000, snapshots={"saved": opening("saved", 1000)})
    create(path.with_name("built"), content)
    path.with_name("built").rename(path.with_name("log.db.new"))
    path.with_name("log.db-wal").write_bytes(b"old")
    for part in ("log.db", "log.db-wal")[:moved]:
        os.replace(path.with_name(part), path.with_name(part.replace("log.db", "log.db.corrupt-1")))

    recovery = load(path)

    assert (recovery.head_seq, set(recovery.snapshots)) == (1000, {"saved"})
    kept = {found.name for found in path.parent.iterdir() if "corrupt" in found.name}
    assert any(name.endswith("-wal") for name in kept)
    assert any(not name.endswith("-wal") for name in kept)


def test_a_file_that_was_only_half_built_is_built_again(path: Path) -> None:
    path.unlink()
    path.with_name("log.db.part").write_bytes(b"half")
    path.with_name("log.db.part-journal").write_bytes(b"half")

    assert load(path) == Recovery()
    assert [found.name for found in path.parent.iterdir()] == ["log.db"]


def test_a_file_that_cannot_be_completed_leaves_nothing_beside_the_old_one(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        create(path, Recovery(values={"a": b"x" * 100_000, "\ud800": b""}))
    assert [found.name for found in path.parent.iterdir()] == ["log.db"]
    assert path.read_bytes() == before


def test_finishing_without_anything_to_finish_does_nothing(path: Path) -> None:
    before = path.read_bytes()
    finish(path)
    assert path.read_bytes() == before


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    create(tmp_path / "log.db", Recovery())
    assert (tmp_path / "log.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("checked_whole", [True, False], ids=["small file", "large file"])
@pytest.mark.parametrize(
    ("written", "damaged"),
    [
        (b"entries (seq INTEGER PRIMARY KEY", b"entries (seq INTEGER PRIMASY KEY"),
        (b"uri TEXT NOT NULL UNIQUE, seq INTEGER", b"uri TEXT NOT NULL UNIQUE, seq INTEGES"),
    ],
    ids=["a key that is none", "another type"],
)
def test_a_damaged_definition_is_reported_and_never_looks_like_an_empty_log(
    path: Path, written: bytes, damaged: bytes, checked_whole: bool
) -> None:
    data = path.read_bytes()
    assert data.count(written) == 1
    path.write_bytes(data.replace(written, damaged))

    recovery = load(path, check_whole=checked_whole)

    assert recovery.problems
    assert path.with_name("log.db.corrupt-1").exists()
    assert recovery.snapshots == {"a": snapshot("a", 0), "b": snapshot("b", 300), "c": snapshot("c", 590)}
    assert_a_past_that_happened(recovery)
    assert recovery.head_seq > HEAD


def test_a_table_that_took_the_pages_of_another_is_damage(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_schema"))
        db.execute("DELETE FROM clients")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = 'channels'", (roots["clients"],))
        db.commit()

    recovery = load(path, check_whole=False)

    assert recovery.problems
    assert path.with_name("log.db.corrupt-1").exists()


@pytest.mark.parametrize(
    "damage", ["UPDATE parts SET data = x'00' WHERE number = 1", "DELETE FROM parts WHERE number = 0"]
)
def test_a_state_with_a_damaged_part_is_lost_and_said_to_be(path: Path, damage: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(damage)
    recovery = load(path)
    assert recovery.snapshots.keys() == {"a", "b"}
    assert any("the snapshot of c is not what was written" in problem for problem in recovery.problems)
    assert_a_past_that_happened(recovery)
