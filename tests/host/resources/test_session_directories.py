"""Which directories sessions open, while looking for one of them takes long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ahpkit.host.resources import session_directories
from ahpkit.host.resources.feature import Resources
from ahpkit.host.resources.session_directories import OpenedDirectories, SessionDirectories
from ahpkit.protocol.session.actions import session_working_directory_removed, session_working_directory_set
from support.bench import Bench
from support.raw_client import RawClient
from support.waiting import until


class Disk:
    """A directory on a disk that answers only when `answers` is set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers = threading.Event()
        self.asked = threading.Event()

    def real_path(self, path: Path) -> Path:
        if path == self.path:
            self.asked.set()
            self.answers.wait()
        return path


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(tmp_path / "slow")
    for name in ("quick", "slow"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    monkeypatch.setattr(session_directories, "real_path", made.real_path)
    return made


@pytest.fixture
async def client(tmp_path: Path, disk: Disk) -> AsyncGenerator[RawClient]:
    bench = Bench(tmp_path / "quick", sockets=True)
    bench.features = [Resources()]
    await bench.start()
    client = await bench.client()
    await bench.session(client, workingDirectory=(tmp_path / "quick").as_uri())
    try:
        yield client
    finally:
        disk.answers.set()
        await bench.stop()


async def read(client: RawClient, path: Path) -> str:
    return (await client.ask("resourceRead", uri=path.as_uri(), encoding="utf-8"))["data"]


async def test_who_asks_while_a_new_session_is_looked_at_is_not_refused(
    client: RawClient, tmp_path: Path, disk: Disk
) -> None:
    """The host looks for the directory of a session that it prepares. A request that comes meanwhile waits for it."""
    await client.ask("createSession", "ahp-session:/slow", workingDirectory=disk.path.as_uri())
    await asyncio.to_thread(disk.asked.wait)
    asked = asyncio.create_task(read(client, disk.path / "file"))
    assert await read(client, tmp_path / "quick" / "file") == "quick", "nobody else waits for that disk"
    assert not asked.done()
    disk.answers.set()
    assert await asked == "slow"


async def test_what_a_session_does_not_name_any_more_is_closed_whatever_the_disk_does(
    client: RawClient, tmp_path: Path, disk: Disk
) -> None:
    disk.answers.set()
    await client.ask("createSession", "ahp-session:/slow", workingDirectory=disk.path.as_uri())
    assert await read(client, disk.path / "file") == "slow"
    disk.answers.clear()
    await client.ask("disposeSession", "ahp-session:/slow")
    refused = await client.refused("resourceRead", uri=(disk.path / "file").as_uri())
    assert "not among the places you may read" in refused["message"]


async def test_the_latest_state_of_a_session_counts(tmp_path: Path, disk: Disk) -> None:
    """What was found for an older state is forgotten, however late it comes."""
    bench = Bench(tmp_path / "quick", sockets=True)
    resources = Resources()
    bench.features = [resources]
    await bench.start()
    try:
        client = await bench.client()
        session, _ = await bench.session(client, workingDirectory=(tmp_path / "quick").as_uri())
        dispatch = resources.services.dispatch
        dispatch(session, session_working_directory_set(directory=disk.path.as_uri()))
        asked = asyncio.create_task(client.call("resourceRead", uri=(disk.path / "file").as_uri()))
        await asyncio.to_thread(disk.asked.wait)
        dispatch(session, session_working_directory_removed(directory=disk.path.as_uri()))
        assert await read(client, tmp_path / "quick" / "file") == "quick"
        disk.answers.set()
        assert "not among the places you may read" in (await asked)["error"]["message"]
    finally:
        disk.answers.set()
        await bench.stop()


async def test_a_directory_that_is_found_just_after_somebody_was_refused_counts(tmp_path: Path) -> None:
    found = asyncio.Event()

    async def run(work: Callable[[], Any]) -> Any:
        await found.wait()
        return work()

    def spawn(work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        return asyncio.create_task(work, name=name)

    opened, services = OpenedDirectories(), Mock()
    services.session.return_value = {"workingDirectories": [tmp_path.as_uri()]}
    services.session_uris.return_value = {"ahp-session:/s"}
    services.spawn = spawn
    directories = SessionDirectories(opened, services, run, patience=0)
    directories.changed("ahp-session:/s")
    learnt = await directories.learn()
    assert not opened.opens("work", tmp_path)
    found.set()
    await until(lambda: opened.opens("work", tmp_path))
    assert await directories.learn_all(learnt)
    assert not await directories.learn_all(await directories.learn())
