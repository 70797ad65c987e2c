from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ahpkit.log.datadir import Durability, data_directory, open_storage
from ahpkit.log.errors import DataDirectoryError, DataDirectoryInUse
from ahpkit.log.memory import MemoryStorage
from support.records import entry, opening, unprivileged
from support.waiting import BOUND

HOLDER = """
import pathlib, sys
from ahpkit.log.datadir import data_directory
with data_directory(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_host(path: Path) -> Generator[subprocess.Popen[str]]:
    """A process that holds the directory until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_missing_directory_is_made_for_the_owner_only(tmp_path: Path) -> None:
    with data_directory(tmp_path / "parent" / "data") as path:
        assert path == tmp_path / "parent" / "data"
        assert path.stat().st_mode & 0o777 == 0o700
        assert (path / "lock").read_text() == f"{os.getpid()}\n"
        assert (path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_second_host_is_refused_and_told_who_has_the_directory(tmp_path: Path) -> None:
    with another_host(tmp_path) as process:
        with pytest.raises(DataDirectoryInUse) as caught, data_directory(tmp_path):
            pass

    assert caught.value.pid == process.pid
    assert str(caught.value) == (
        f"data directory {tmp_path}: in use by process {process.pid}: stop that host or choose another --data-dir"
    )


def test_a_refused_host_does_not_disturb_the_one_that_holds_it(tmp_path: Path) -> None:
    with data_directory(tmp_path):
        for _ in range(2):
            with pytest.raises(DataDirectoryInUse), data_directory(tmp_path):
                pass
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_the_directory_is_free_again_after_a_host_ends_or_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), data_directory(tmp_path):
        raise ZeroDivisionError
    with data_directory(tmp_path):
        pass
    with data_directory(tmp_path):
        pass


STARTING = """
import os, pathlib, sys
from ahpkit.log.datadir import data_directory
with data_directory(pathlib.Path(sys.argv[1])):
    if os.fork() == 0:  # It has the lock, as a program has until it begins.
        print("held", flush=True)
        sys.stdin.read()
        os._exit(0)
    os.kill(os.getpid(), 9)
"""


@contextmanager
def left_by_a_killed_host(path: Path) -> Generator[subprocess.Popen[str]]:
    """A directory whose lock is held by what a killed host was just starting, until its input ends."""
    command = [sys.executable, "-c", STARTING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "held\n"
        assert process.wait(BOUND) == -signal.SIGKILL
        yield process
        process.stdin.close()


def test_a_directory_is_waited_for_when_only_what_a_killed_host_started_has_it(tmp_path: Path) -> None:
    slept: list[float] = []
    with left_by_a_killed_host(tmp_path) as process:

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            assert process.stdout.read() == ""  # It has ended.

        with data_directory(tmp_path, sleep=sleep):
            assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    assert slept


def test_it_is_not_waited_for_without_end(tmp_path: Path) -> None:
    slept: list[float] = []
    with left_by_a_killed_host(tmp_path) as process:
        with pytest.raises(DataDirectoryInUse) as caught, data_directory(tmp_path, sleep=slept.append):
            pass
        assert caught.value.pid == process.pid
    assert 1 <= sum(slept) <= 10


def test_the_directory_is_free_again_after_a_host_is_killed(tmp_path: Path) -> None:
    with another_host(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(BOUND)

    with data_directory(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_without_a_readable_process_id_is_still_a_lock(tmp_path: Path) -> None:
    with data_directory(tmp_path):
        (tmp_path / "lock").write_text("garbage")
        with pytest.raises(DataDirectoryInUse, match="in use by another process") as caught, data_directory(tmp_path):
            pass
    assert caught.value.pid is None


@pytest.mark.parametrize("below", [False, True], ids=["itself", "a parent"])
def test_a_file_in_the_way_is_named(tmp_path: Path, below: bool) -> None:
    (tmp_path / "file").write_text("mine")
    path = tmp_path / "file" / "data" if below else tmp_path / "file"

    with pytest.raises(DataDirectoryError, match=f"^data directory {path}: there is a file in the way$"):
        with data_directory(path):
            pass
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_that_is_not_ours_to_write_is_named() -> None:
    with unprivileged() as directory:
        directory.chmod(0o500)
        for path in (directory, directory / "new"):
            with pytest.raises(DataDirectoryError, match=f"^data directory {path}: not writable: check its owner"):
                with data_directory(path):
                    pass


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_durable_storage_is_a_file_in_the_data_directory(durability: Durability, tmp_path: Path) -> None:
    storage = open_storage(tmp_path, durability)
    storage.load()
    storage.commit([opening(), entry(1)])
    storage.close()

    again = open_storage(tmp_path, "full")
    assert again.load().head_seq == 1
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


def test_memory_leaves_no_trace(tmp_path: Path) -> None:
    storage = open_storage(tmp_path, "memory")
    storage.load()
    storage.commit([opening(), entry(1)])
    storage.close()

    assert isinstance(storage, MemoryStorage)
    assert not list(tmp_path.iterdir())
