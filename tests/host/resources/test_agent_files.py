"""An agent's files: the same policy as for clients, on a real directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.resources.agent_files import AgentFiles
from ahpkit.host.resources.feature import Resources
from ahpkit.host.resources.reading import MAX_READ
from ahpkit.protocol.errors import InvalidParams, NotFound, PermissionDenied
from ahpkit.protocol.meta_keys import UNSAVED_TEXT
from support.bench import Bench
from support.raw_client import Json, RawClient


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
async def bench(work: Path) -> AsyncGenerator[Bench]:
    made = Bench(work)
    made.features = [Resources()]
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def files_of(bench: Bench, work: Path) -> AgentFiles:
    """What the agent of a new session in `work` gets."""
    client = await bench.client()
    await bench.session(client, workingDirectory=work.as_uri())
    [resources] = [feature for feature in bench.features if isinstance(feature, Resources)]
    return resources.agent_files(bench.agent.chats[-1].chat)


async def test_files_inside_are_read_and_written_with_the_directories_they_need(bench: Bench, work: Path) -> None:
    files = await files_of(bench, work)

    await files.write(work / "a" / "b.txt", "ü")

    assert await files.read(work / "a" / "b.txt") == "ü"


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "link", "dir-link/secret", "../new"])
async def test_nothing_outside_is_reached_also_not_through_links(bench: Bench, work: Path, path: str) -> None:
    (work / "link").symlink_to(work.parent / "secret")
    (work / "dir-link").symlink_to(work.parent)
    files = await files_of(bench, work)

    with pytest.raises(PermissionDenied, match="outside the working directory"):
        await files.read(work / path)
    with pytest.raises(PermissionDenied, match="outside the working directory"):
        await files.write(work / path, "x")
    assert (work.parent / "secret").read_text() == "secret"
    assert not (work.parent / "new").exists()


async def test_the_directory_of_another_session_is_outside(bench: Bench, work: Path) -> None:
    other = work.parent / "other"
    other.mkdir()
    (other / "a").write_text("theirs")
    await files_of(bench, other)
    files = await files_of(bench, work)

    with pytest.raises(PermissionDenied, match="outside the working directory"):
        await files.read(other / "a")


@pytest.mark.parametrize("path", [".claude/settings.json", ".github/hooks/x.json"])
async def test_what_declares_hooks_is_read_but_never_written(bench: Bench, work: Path, path: str) -> None:
    (work / path).parent.mkdir(parents=True)
    (work / path).write_text("{}")
    files = await files_of(bench, work)

    with pytest.raises(PermissionDenied, match="cannot be written"):
        await files.write(work / path, "hooked")
    assert await files.read(work / path) == "{}"


async def test_a_working_directory_that_is_itself_a_link_works(bench: Bench, work: Path) -> None:
    (work.parent / "alias").symlink_to(work)
    (work / "a").write_text("x")
    files = await files_of(bench, work.parent / "alias")

    assert await files.read(work.parent / "alias" / "a") == "x"


async def test_refusals_say_what_is_wrong(bench: Bench, work: Path) -> None:
    files = await files_of(bench, work)
    (work / "binary").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(work / "pipe")
    with (work / "large").open("wb") as large:
        large.truncate(MAX_READ + 1)

    with pytest.raises(NotFound, match="missing does not exist"):
        await files.read(work / "missing")
    for path, words in {"binary": "UTF-8", "pipe": "not a file", "large": "larger than", "": "directory"}.items():
        with pytest.raises(InvalidParams, match=words):
            await files.read(work / path)
    with pytest.raises(InvalidParams, match="not absolute"):
        await files.read(Path("relative"))
    with pytest.raises(InvalidParams, match="not a file"):
        await files.write(work, "x")
    with pytest.raises(InvalidParams, match="more than"):
        await files.write(work / "big", "x" * (MAX_READ + 1))


EDITOR: Json = {"_meta": {UNSAVED_TEXT: {"version": "1"}}}


class Desk:
    """A file on disk, an agent that reads it, and clients that may have it open."""

    def __init__(self, bench: Bench, resources: Resources, work: Path) -> None:
        self.bench = bench
        self._resources = resources
        self._work = work
        self.path = work / "open.txt"
        self.path.write_text("on disk")
        self.session = ""

    async def client(self, client_id: str, capabilities: Json) -> RawClient:
        client = await self.bench.connect(client_id)
        await client.initialize(capabilities=capabilities)
        if self.session:
            await client.ask("subscribe", self.session)
        else:
            self.session, _ = await self.bench.session(client, workingDirectory=self._work.as_uri())
        return client

    async def activate(self, client: RawClient) -> None:
        offer: Json = {"clientId": client.client_id, "tools": []}
        await client.accepted(self.session, {"type": "session/activeClientChanged", "activeClient": offer})

    def read(self) -> asyncio.Task[str]:
        """The agent reads the file."""
        files = self._resources.agent_files(self.bench.agent.chats[0].chat)
        return asyncio.create_task(files.read(self.path))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    bench, resources = Bench(tmp_path), Resources()
    bench.features = [resources]
    await bench.start()
    try:
        yield Desk(bench, resources, tmp_path)
    finally:
        await bench.stop()


async def asked(client: RawClient) -> Json:
    return await client.wait(lambda message: message.get("method") == "resourceRead")


async def answer(client: RawClient, **outcome: Any) -> Json:
    """Answer what the client is asked; returns the request's params."""
    request = await asked(client)
    client.send({"jsonrpc": "2.0", "id": request["id"], **outcome})
    return request["params"]


TEXT = {"data": "typed, not saved", "encoding": "utf-8"}
NOTHING = {"code": -32008, "message": "not open here"}


async def test_an_agent_reads_what_the_editor_has_not_saved(desk: Desk) -> None:
    editor = await desk.client("editor", EDITOR)

    reading = desk.read()
    params = await answer(editor, result=TEXT)

    assert await reading == "typed, not saved"
    assert params == {"channel": "ahp-root://", "uri": desk.path.as_uri(), "encoding": "utf-8"}
    assert desk.path.read_text() == "on disk"


async def test_a_file_that_no_editor_has_open_is_read_from_disk(desk: Desk) -> None:
    editor = await desk.client("editor", EDITOR)

    reading = desk.read()
    await answer(editor, error=NOTHING)

    assert await reading == "on disk"


async def test_a_client_that_does_not_offer_it_is_not_asked(desk: Desk) -> None:
    watcher = await desk.client("watcher", {})

    assert await desk.read() == "on disk"
    await watcher.call("ping")  # Whatever was sent before has arrived now.
    assert all(message.get("method") != "resourceRead" for message in watcher.received)


async def test_the_active_client_is_asked_first_and_then_the_others(desk: Desk) -> None:
    other, active = await desk.client("other", EDITOR), await desk.client("active", EDITOR)
    await desk.activate(active)

    reading = desk.read()
    await answer(active, error=NOTHING)
    await answer(other, result=TEXT)

    assert await reading == "typed, not saved"


@pytest.mark.parametrize(
    "outcome", [{"result": None}, {"result": {"data": 5, "encoding": "utf-8"}}, {"error": {"code": 1, "message": "no"}}]
)
async def test_an_answer_that_makes_no_sense_is_no_answer(desk: Desk, outcome: Json) -> None:
    editor = await desk.client("editor", EDITOR)

    reading = desk.read()
    await answer(editor, **outcome)

    assert await reading == "on disk"


async def test_an_editor_that_leaves_while_it_is_asked_holds_nobody_up(desk: Desk) -> None:
    editor = await desk.client("editor", EDITOR)

    reading = desk.read()
    await asked(editor)
    await editor.aclose()

    assert await reading == "on disk"


async def test_an_editor_that_does_not_answer_is_not_waited_for_long(desk: Desk) -> None:
    editor = await desk.client("editor", EDITOR)

    reading = desk.read()
    await asked(editor)

    assert await reading == "on disk"
