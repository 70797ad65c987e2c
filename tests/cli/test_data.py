"""`ahpkit data`: saved while the host runs, put back, tidied up by rules."""

import json
import os
import stat
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ahpkit.cli.data import to_prune
from ahpkit.protocol.session.state import SessionStatus
from support.process import finish_cli, host_process
from support.terminal import terminal


async def test_a_backup_of_a_running_host_is_put_back_elsewhere(tmp_path: Path) -> None:
    async with host_process(tmp_path):
        await finish_cli(["prompt", "remember me", "--keep"], tmp_path)
        (tmp_path / "data" / "changes" / "repository" / "refs").mkdir(parents=True)
        code, output, errors = await finish_cli(["data", "backup", "saved.tar.gz"], tmp_path)
        assert (code, errors) == (0, "")
        assert "saved in saved.tar.gz" in output
        code, _, errors = await finish_cli(["data", "restore", "saved.tar.gz", "--data-dir", "data"], tmp_path)
        assert code == 1
        assert "is used by another host" in errors or "in use" in errors
    saved = tmp_path / "saved.tar.gz"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    other = tmp_path / "other"
    other.mkdir()
    assert (await finish_cli(["data", "restore", str(saved), "--data-dir", str(other / "data")], tmp_path))[0] == 0
    assert not (other / "data" / "token").exists()
    assert (other / "data" / "changes" / "repository" / "refs").is_dir(), "git needs it, though it is empty"
    async with host_process(other):
        _, output, _ = await finish_cli(["sessions", "list", "--json"], other)
        assert [one["title"] for one in json.loads(output)] == ["remember me"]


async def test_a_backup_that_fails_leaves_the_one_before_it(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "saved.tar.gz", "w:gz") as archive:
        archive.add(__file__, "log.db")
    before = (tmp_path / "saved.tar.gz").read_bytes()
    data = tmp_path / "data"
    data.mkdir()
    (data / "log.db").write_bytes(b"SQLite format 3\0 and then nothing that is a database")
    code, _, errors = await finish_cli(["data", "backup", "saved.tar.gz", "--data-dir", "data"], tmp_path)
    assert (code, "Traceback" in errors) == (1, False)
    assert "log.db cannot be read: file is not a database. Start a host on it: that repairs the file" in errors
    assert (tmp_path / "saved.tar.gz").read_bytes() == before
    assert [name for name in os.listdir(tmp_path) if "saved" in name] == ["saved.tar.gz"]


async def test_data_that_is_there_is_moved_aside_and_only_on_request(tmp_path: Path) -> None:
    async with host_process(tmp_path):
        await finish_cli(["data", "backup", "saved.tar.gz"], tmp_path)
    restore = ["data", "restore", "saved.tar.gz", "--data-dir", "data"]
    code, _, errors = await finish_cli(restore, tmp_path)
    assert (code, "has data already; --replace moves it aside" in errors) == (1, True)
    code, output, _ = await finish_cli([*restore, "--replace"], tmp_path)
    assert code == 0
    aside = Path(output.strip().rpartition(" ")[2])
    assert any((tmp_path / aside).iterdir())
    code, output, _ = await finish_cli(restore[:3], tmp_path, AHPKIT_HOST_NAME="work")
    place = tmp_path / ".local/share/ahpkit-hosts/work"
    assert (code, output, (place / "log.db").exists()) == (0, f"saved.tar.gz is in {place} now\n", True)


async def test_an_archive_of_something_else_is_neither_replaced_nor_put_back(tmp_path: Path) -> None:
    """A mistyped name would cost a person their pictures."""
    with tarfile.open(tmp_path / "pictures.tar.gz", "w:gz") as archive:
        archive.add(__file__, "a picture")
    before = (tmp_path / "pictures.tar.gz").read_bytes()
    (tmp_path / "data").mkdir()
    save = ["data", "backup", "pictures.tar.gz", "--data-dir", "data"]
    assert "there is nothing to save" in (await finish_cli(save, tmp_path))[2]
    (tmp_path / "data/log.db").touch()
    code, _, errors = await finish_cli(save, tmp_path)
    assert (code, "pictures.tar.gz is there already and is no backup" in errors) == (1, True)
    assert (tmp_path / "pictures.tar.gz").read_bytes() == before
    code, _, errors = await finish_cli(["data", "restore", "pictures.tar.gz", "--data-dir", "new"], tmp_path)
    assert (code, "pictures.tar.gz is not a backup, or it is damaged: it has no log.db" in errors) == (1, True)
    assert not (tmp_path / "new/a picture").exists()


@pytest.mark.parametrize("content", [b"", b"no archive"])
async def test_what_is_no_backup_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd").write_bytes(content)
    code, _, errors = await finish_cli(["data", "restore", "odd", "--data-dir", "new"], tmp_path)
    assert (code, "odd is not a backup, or it is damaged" in errors) == (1, True)


NOW = datetime(2026, 11, 15, tzinfo=UTC)


def session(days: int, status: SessionStatus = SessionStatus.Idle) -> Any:
    changed = (NOW - timedelta(days=days)).isoformat()
    return {"resource": str(days), "modifiedAt": changed, "status": int(status)}


SESSIONS = [
    session(1),
    session(10),
    session(100),
    session(200, SessionStatus.Idle | SessionStatus.IsArchived),
    session(300, SessionStatus.InProgress),
    session(400, SessionStatus.InputNeeded),
]


@pytest.mark.parametrize(
    ("days", "keep", "archived", "gone"),
    [
        (90, 0, False, ["200", "100"]),
        (None, 3, False, ["200"]),
        (None, 0, True, ["200"]),
        (5, 2, False, ["200", "100"]),
        (1000, 0, False, []),
    ],
)
def test_rules_say_what_goes_and_what_runs_or_waits_stays(
    days: int | None, keep: int, archived: bool, gone: list[str]
) -> None:
    older = None if days is None else timedelta(days=days)
    assert [one["resource"] for one in to_prune(SESSIONS, NOW, older, keep, archived=archived)] == gone


async def test_prune_says_what_would_go_and_then_does_it(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--durability", "memory"):
        await finish_cli(["prompt", "one", "--keep"], tmp_path)
        await finish_cli(["prompt", "two", "--keep"], tmp_path)
        code, output, _ = await finish_cli(["data", "prune", "--keep", "1", "--dry-run"], tmp_path)
        assert (code, output.splitlines()[-1]) == (0, "1 session would go.")
        code, _, errors = await finish_cli(["data", "prune", "--keep", "1"], tmp_path)
        assert (code, "there is no terminal to ask at; --yes" in errors) == (2, True)
        code, output, _ = await finish_cli(["data", "prune", "--keep", "1", "--yes"], tmp_path)
        assert (code, "one" in output) == (0, True)
        _, output, _ = await finish_cli(["sessions", "list", "--json"], tmp_path)
        assert [one["title"] for one in json.loads(output)] == ["two"]
        code, _, errors = await finish_cli(["data", "prune"], tmp_path)
        assert (code, "give a rule" in errors) == (2, True)


async def test_prune_asks_at_a_terminal_and_only_a_yes_deletes(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--durability", "memory"):
        for text in ("one", "two", "three"):
            await finish_cli(["prompt", text], tmp_path)

        async def answered(keys: str) -> tuple[int, str]:
            async with terminal(["data", "prune", "--keep", "1"], tmp_path) as person:
                await person.see("one", "two")
                await person.asked("Delete these 2 sessions for good? [y/N]:")
                person.type(keys)
                code = await person.exited()
                assert person.is_sane
                return code, person.screen.text

        async def titles() -> list[str]:
            _, output, _ = await finish_cli(["sessions", "list", "--json"], tmp_path)
            return sorted(one["title"] for one in json.loads(output))

        for keys, expected in (("\r", 1), ("n\r", 1), ("\x03", 130), ("\x04", 130)):
            code, screen = await answered(keys)
            assert (code, "Traceback" in screen) == (expected, False)
            assert ("nothing was deleted" in screen) == (expected == 1)
            assert await titles() == ["one", "three", "two"]
        code, screen = await answered("y\r")
        assert (code, "2 sessions are gone." in screen) == (0, True)
        assert await titles() == ["three"]
