"""No client can use up the system's watchers: it has a limit, and all watches share two of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from support.flow import begun
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient
from support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


def watchers(host: HostProcess) -> int:
    """How many watchers of the system the host has."""
    found = 0
    for link in Path(f"/proc/{host.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # It was closed meanwhile.
            found += "inotify" in os.readlink(link)
    return found


def _of(channel: str) -> Callable[[Json], bool]:
    return lambda said: said["channel"] == channel


async def workspace(host: HostProcess, client: RawClient, name: str) -> Path:
    """A folder that a session of this client works in."""
    folder = host.home / name
    folder.mkdir()
    await client.ask("createSession", f"ahp-session:/{name}", workingDirectory=folder.as_uri())
    return folder


async def test_a_hundred_and_forty_watches(host: HostProcess) -> None:
    client = await host.client()
    work = await workspace(host, client, "many")
    folders = [work / f"folder-{number}" for number in range(140)]
    answers: list[Json] = []
    for folder in folders:
        folder.mkdir()
        answers.append(await client.call("createResourceWatch", uri=folder.as_uri(), recursive=len(answers) % 2 == 0))
    made = [answer["result"]["channel"] for answer in answers if "result" in answer]
    refused = [answer["error"]["message"] for answer in answers if "error" in answer]
    assert len(made) == 100
    assert all("one client may have 100 watches" in reason for reason in refused)
    assert watchers(host) <= 4, "two of the watches, one of the customizations and the one that it replaces"
    await until(lambda: watchers(host) <= 3)  # Two of the watches, one of the customizations.
    await client.ask("subscribe", made[0])
    await client.ask("subscribe", made[99])
    (folders[0] / "new").write_text("x")
    (folders[99] / "new").write_text("x")
    for channel in (made[0], made[99]):
        await client.action(_of(channel))
    other = await host.client(client_id="other")
    assert "result" in await other.call("createResourceWatch", uri=folders[0].as_uri(), recursive=False)
    await other.aclose()
    await client.aclose()


async def test_patterns_of_a_watch_are_bounded(host: HostProcess) -> None:
    client = await host.client()
    work = await workspace(host, client, "patterns")
    for patterns in (["*"] * 1_000, ["*a" * 1_000]):
        refused = await client.refused(
            "createResourceWatch", uri=work.as_uri(), recursive=False, excludes={"items": patterns}
        )
        assert "excludes: at most" in refused["message"]
    await client.aclose()


def _can_be_limited() -> bool:
    command = [sys.executable, "-m", "support.few_watches_host", "watches", "1"]
    return subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _can_be_limited(), reason="needs user namespaces")
@pytest.mark.parametrize(("kind", "number"), [("instances", 0), ("watches", 0), ("watches", 12)])
async def test_a_system_that_watches_no_more_files_is_asked_every_second(
    tmp_path: Path, kind: str, number: int
) -> None:
    through = ("support.few_watches_host", kind, str(number))
    async with host_process(tmp_path, through=through) as host:
        client = await host.client()
        work = await workspace(host, client, "few")
        for count in range(20):
            (work / f"folder-{count}" / "inner").mkdir(parents=True)
        for recursive in (True, False):
            watch = (await client.ask("createResourceWatch", uri=work.as_uri(), recursive=recursive))["channel"]
            await client.ask("subscribe", watch)
            (work / f"new-{recursive}").write_text("x")
            await client.action(_of(watch))
        state = await begun(client, "ahp-session:/few")
        assert state["lifecycle"] == "ready"
        (work / ".claude" / "commands").mkdir(parents=True)
        (work / ".claude" / "commands" / "late.md").write_text("late")
        await client.action(lambda said: "late.md" in str(said["action"]))
        await client.aclose()
        await host.stop()
    assert "the system cannot watch more files" in host.errors
