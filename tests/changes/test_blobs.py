"""Contents of files are read right, whatever their names and forms, and also when the git that reads them ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.changes.blobs import Blobs
from ahpkit.changes.git import Git, GitError, find
from ahpkit.changes.sides import LINK, SUBMODULE, Side
from support.repository import Repository

ODD = ["plain.txt", "a b.txt", " before.txt", "after.txt ", "two\nlines.txt", "return\r", "\udcff.txt", "tab\t.txt"]


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository(tmp_path / "repo")
    repo.write(".gitattributes", "* text eol=crlf\n")
    repo.commit()
    return repo


async def git_of(repo: Repository, place: Path, program: str = "git") -> Git:
    git = await find(repo.root, objects=place, program=program)
    assert git is not None
    return git


def stored(repo: Repository, text: bytes, path: str = "plain.txt", mode: str = "100644") -> Side:
    """A file of some content, which git has."""
    oid = repo.git("hash-object", "-w", "--no-filters", str(repo.write("scratch", text)))
    return Side(path, mode, oid.strip())


async def test_files_of_any_name_are_read_in_both_forms(repo: Repository, tmp_path: Path) -> None:
    async with Blobs(await git_of(repo, tmp_path / "ours")) as blobs:
        for number, name in enumerate(ODD):
            text = f"{number}\nlast".encode()
            side = stored(repo, text, name)
            assert await blobs.read(side) == text.replace(b"\n", b"\r\n")
            assert await blobs.read(side, on_disk_form=False) == text


@pytest.mark.parametrize("text", [b"", b"\n", b"\n\n", b"\0\n", b"nothing-0 missing\n", b"x" * 300_000])
async def test_every_byte_of_a_file_is_there(repo: Repository, tmp_path: Path, text: bytes) -> None:
    async with Blobs(await git_of(repo, tmp_path / "ours")) as blobs:
        for _ in range(2):
            assert await blobs.read(stored(repo, text), on_disk_form=False) == text
        assert await blobs.read(stored(repo, text, mode=LINK)) == text, "where a link leads is not converted"
        assert await blobs.read(Side("inner", SUBMODULE, "1" * 40)) == f"Subproject commit {'1' * 40}\n".encode()


async def test_a_content_that_is_not_there_is_an_error_in_gits_own_words(repo: Repository, tmp_path: Path) -> None:
    there = stored(repo, b"1")
    async with Blobs(await git_of(repo, tmp_path / "ours")) as blobs:
        for on_disk in (True, False):
            with pytest.raises(GitError, match="1" * 40):
                await blobs.read(Side("gone", "100644", "1" * 40), on_disk_form=on_disk)
            assert await blobs.read(there, on_disk_form=on_disk) == b"1"


async def test_a_git_that_ends_is_started_again(repo: Repository, tmp_path: Path) -> None:
    """Here each of them reads one file and ends."""
    program = tmp_path / "git"
    once = '#!/bin/sh\ncase "$*" in *--batch*) head -n 2 | git "$@";; *) exec git "$@";; esac\n'
    program.write_text(once)
    program.chmod(0o755)
    async with Blobs(await git_of(repo, tmp_path / "ours", str(program))) as blobs:
        for number in range(3):
            assert await blobs.read(stored(repo, b"%d\n" % number)) == b"%d\r\n" % number


async def test_attributes_that_changed_hold_once_it_begins_anew(repo: Repository, tmp_path: Path) -> None:
    side = stored(repo, b"1\n")
    async with Blobs(await git_of(repo, tmp_path / "ours")) as blobs:
        assert await blobs.read(side) == b"1\r\n"
        repo.write(".gitattributes", "* -text\n")
        await blobs.begin_anew()
        assert await blobs.read(side) == b"1\n"
