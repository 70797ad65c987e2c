from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ahpkit.platform.files import (
    followed,
    is_ours,
    local_path,
    make_private_directory,
    try_lock,
    wait_lock,
    write_private,
)
from support.waiting import BOUND


def test_a_private_file_is_for_its_owner_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private(path, b"one")
    write_private(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_one_that_is_there_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private(path, b"one", replace=False)
    write_private(path, b"two", replace=False)
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    write_private(path, b"one")

    def full(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_every_new_level_of_a_directory_is_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_directory(tmp_path / "a" / "b")
    make_private_directory(tmp_path / "a" / "b")
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")]
    assert modes == [0o755, 0o700, 0o700]
    assert is_ours(tmp_path)


LOCKER = """
import os, sys
from ahpkit.platform.files import try_lock
lock = os.open(sys.argv[1], os.O_RDWR)
print(try_lock(lock), flush=True)
sys.stdin.read()
"""


def test_a_lock_keeps_other_processes_out_and_goes_with_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    ours = os.open(path, os.O_RDWR)
    try:
        command = [sys.executable, "-c", LOCKER, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "True\n"
            assert not try_lock(ours)
            other.communicate(timeout=BOUND)
        wait_lock(ours)
        assert try_lock(ours)
    finally:
        os.close(ours)


def test_links_are_followed_while_somebody_replaces_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python looks at a link twice, and gives up when it is gone the second time."""
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    read, gone = os.readlink, [True, True, False]

    def readlink(path: str) -> str:
        if gone.pop(0):
            raise FileNotFoundError(path)
        return read(path)

    monkeypatch.setattr(os, "readlink", readlink)
    assert followed(tmp_path / "link" / "file") in [str(tmp_path / name / "file") for name in ("link", "there")]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file://LocalHost/a", "/a"),
        ("file:///", "/"),
        ("file:////a", "/a"),
        ("file:///a%20b%C3%A9%23%3F", "/a bé#?"),
        ("file:///a/../b", "/a/../b"),
    ],
)
def test_the_path_of_a_file_on_this_machine(uri: str, path: str) -> None:
    assert local_path(uri) == Path(path)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/a",
        "file:",
        "file:a",
        "file://a",
        "file://other/a",
        "file://user@localhost/a",
        "file:///a?x",
        "file:///a#x",
        "file:///a%00b",
        "file://[/a",
        "https://localhost/a",
        "files:///a",
    ],
)
def test_everything_else_names_no_file_of_ours(uri: str) -> None:
    assert local_path(uri) is None


def test_a_shell_may_name_its_own_machine() -> None:
    assert local_path("file://my-laptop/home/me", any_host=True) == Path("/home/me")
    assert local_path("file://my-laptop", any_host=True) is None


@pytest.mark.parametrize("name", [b"plain", "zażółć".encode(), b"\xff\xfe", b"a%b", b"a b?#"])
def test_every_name_that_a_file_can_have_comes_back(name: bytes) -> None:
    path = Path(os.fsdecode(b"/tmp/" + name))
    assert local_path(path.as_uri()) == path
