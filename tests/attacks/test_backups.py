"""`ahpkit data restore` of an archive that somebody else made: it writes files of a host's data, and nothing else."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from support.process import finish_cli


def archive(path: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w:gz") as made:
        for member in members:
            data = b"theirs" if member.isfile() else b""
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, target, 0o6777
    return made


async def restore(tmp_path: Path, *options: str) -> tuple[int | None, str]:
    words = ["data", "restore", "theirs.tar.gz", "--data-dir", "data", *options]
    code, output, errors = await finish_cli(words, tmp_path)
    assert "Traceback" not in errors
    return code, output + errors


@pytest.mark.parametrize(
    "odd",
    [
        member("content/../../outside"),
        member("content/link", tarfile.SYMTYPE, "../../outside"),
        member("content/link", tarfile.SYMTYPE, "../token"),
        member("content/link", tarfile.LNKTYPE, "token"),
        member("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda one: f"{one.name} {one.linkname}",
)
async def test_what_is_no_file_of_the_data_is_refused_and_all_stays_as_it_was(
    tmp_path: Path, odd: tarfile.TarInfo
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "token").write_text("ours")
    (data / "log.db").write_text("ours")
    archive(tmp_path / "theirs.tar.gz", member("new"), odd)
    code, said = await restore(tmp_path, "--replace")
    assert code == 1
    assert "is not a backup" in said
    assert {path.name: path.read_text() for path in data.iterdir() if path.name != "lock"} == {
        "token": "ours",
        "log.db": "ours",
    }
    assert [name for name in os.listdir(tmp_path) if "outside" in name or "data-" in name] == []


async def test_a_token_in_it_is_not_taken_and_files_are_private(tmp_path: Path) -> None:
    names = ("log.db", "token", "./token", "content/../token", "lock", "trust/trust.json")
    archive(tmp_path / "theirs.tar.gz", *map(member, names))
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "token").write_text("ours")
    code, said = await restore(tmp_path)
    assert code == 0, said
    assert "ahpkit trust list" in said
    assert (data / "token").read_text() == "ours"
    assert stat.S_IMODE((data / "trust" / "trust.json").stat().st_mode) == 0o600
