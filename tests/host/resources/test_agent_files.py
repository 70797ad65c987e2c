"""An agent's files: the same policy as for clients, on a real directory."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from ahpkit.host.resources.agent_files import AgentFiles
from ahpkit.host.resources.feature import Resources
from ahpkit.host.resources.reading import MAX_READ
from ahpkit.protocol.errors import InvalidParams, NotFound, PermissionDenied
from support.bench import Bench


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
