"""Damage in a write-ahead log that a crash left behind: it is noticed, and what is intact is kept."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ahpkit.log.salvage import wal_damage
from ahpkit.log.sqlite import SqliteStorage
from support.records import entry, opening, seqs

COMMITS = 40
_HEADER, _FRAME = 32, 24 + 4096


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as `kill -9` leaves it: the log was moved into the main file once, and begun again."""
    path = tmp_path_factory.mktemp("running") / "log.db"
    storage = SqliteStorage(path)
    storage.load()
    storage.commit([opening()])
    storage.commit([entry(1)._replace(payload=b"x" * (2 << 20))])
    storage.tidy()
    for number in range(2, COMMITS + 2):
        storage.commit([entry(number)])
    copy = tmp_path_factory.mktemp("crashed")
    for name in ("log.db", "log.db-wal"):
        shutil.copy(path.with_name(name), copy)
    storage.close()
    return copy


def frames_of(directory: Path) -> int:
    """How many frames SQLite takes."""
    with closing(sqlite3.connect(directory / "log.db")) as db:
        _busy, frames, _moved = db.execute("PRAGMA wal_checkpoint").fetchone()
        return frames


def copy_of(crashed: Path, tmp_path: Path, wal: bytes) -> Path:
    shutil.copytree(crashed, tmp_path / "copy")
    (tmp_path / "copy" / "log.db-wal").write_bytes(wal)
    return tmp_path / "copy"


def test_a_log_that_a_crash_left_is_whole_although_older_frames_follow(crashed: Path, tmp_path: Path) -> None:
    assert wal_damage(crashed / "log.db-wal") is None
    frames = frames_of(copy_of(crashed, tmp_path, (crashed / "log.db-wal").read_bytes()))
    assert (crashed / "log.db-wal").stat().st_size > _HEADER + frames * _FRAME


def test_a_log_that_is_missing_or_empty_is_whole(tmp_path: Path) -> None:
    assert wal_damage(tmp_path / "log.db-wal") is None
    (tmp_path / "log.db-wal").write_bytes(b"")
    assert wal_damage(tmp_path / "log.db-wal") is None


@pytest.mark.parametrize("seed", range(20))
def test_one_flipped_bit_before_the_last_commit_is_noticed(crashed: Path, tmp_path: Path, seed: int) -> None:
    wal = bytearray((crashed / "log.db-wal").read_bytes())
    whole = frames_of(copy_of(crashed, tmp_path / "whole", bytes(wal)))
    place = random.Random(seed).randrange(_HEADER + (whole - 8) * _FRAME) if seed else 18  # 0: in the header
    wal[place] ^= 1 << seed % 8
    damaged = copy_of(crashed, tmp_path, bytes(wal))
    assert wal_damage(damaged / "log.db-wal") is not None

    storage = SqliteStorage(damaged / "log.db")
    recovery = storage.load()
    storage.close()
    assert "the write-ahead log log.db-wal is damaged" in recovery.problems[0]
    assert seqs(recovery.tail) == list(range(1, len(recovery.tail) + 1)), "a past that happened"
    assert recovery.head_seq > COMMITS + 1, "the numbers that were given out are not given out again"
    assert (damaged / "log.db.corrupt-1-wal").read_bytes() == bytes(wal)


@pytest.mark.parametrize("cut", [1, 4096, _FRAME, 3 * _FRAME + 7])
def test_a_commit_that_was_being_written_is_no_damage(crashed: Path, tmp_path: Path, cut: int) -> None:
    wal = (crashed / "log.db-wal").read_bytes()
    whole = frames_of(copy_of(crashed, tmp_path / "whole", wal))
    damaged = copy_of(crashed, tmp_path, wal[: _HEADER + whole * _FRAME - cut])
    assert wal_damage(damaged / "log.db-wal") is None


def test_a_frame_that_was_being_written_over_older_bytes_is_no_damage(crashed: Path, tmp_path: Path) -> None:
    wal = bytearray((crashed / "log.db-wal").read_bytes())
    whole = frames_of(copy_of(crashed, tmp_path / "whole", bytes(wal)))
    page = _HEADER + whole * _FRAME - 4096
    wal[page] ^= 1
    damaged = copy_of(crashed, tmp_path, bytes(wal))
    assert wal_damage(damaged / "log.db-wal") is None
    storage = SqliteStorage(damaged / "log.db")
    recovery = storage.load()
    storage.close()
    assert (recovery.problems, seqs(recovery.tail)) == ([], list(range(1, COMMITS + 1)))


def test_damage_before_the_last_frame_is_noticed_also_in_the_last_commit(crashed: Path, tmp_path: Path) -> None:
    wal = bytearray((crashed / "log.db-wal").read_bytes())
    whole = frames_of(copy_of(crashed, tmp_path / "whole", bytes(wal)))
    wal[_HEADER + (whole - 1) * _FRAME - 4096] ^= 1
    assert "1 of the newest commits" in str(wal_damage(copy_of(crashed, tmp_path, bytes(wal)) / "log.db-wal"))


def test_a_damaged_log_costs_nothing_that_is_in_the_main_file(crashed: Path, tmp_path: Path) -> None:
    """All was moved, and then the host was killed: what is left of the log is older than the main file."""
    path = tmp_path / "log.db"
    storage = SqliteStorage(path)
    storage.load()
    storage.commit([opening()])
    for number in range(1, 80):
        storage.commit([entry(number)._replace(payload=b"x" * 20_000)])
    storage.tidy()
    (tmp_path / "copy").mkdir()
    wal = bytearray((tmp_path / "log.db-wal").read_bytes())
    wal[len(wal) // 2] ^= 1
    shutil.copy(path, tmp_path / "copy")
    (tmp_path / "copy" / "log.db-wal").write_bytes(wal)
    storage.close()
    again = SqliteStorage(tmp_path / "copy" / "log.db")
    recovery = again.load()
    again.close()
    assert recovery.problems
    assert seqs(recovery.tail) == list(range(1, 80))
