"""Files of the working directories are offered after `#` and `@`: of a running host, and within bounds."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from ahpkit.host.resources.feature import Resources
from ahpkit.host.resources.fence import ExcludedPlaces, Fence
from ahpkit.host.resources.mentions import KEPT, Mentions, list_files
from support.bench import Bench


def fill(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    return folder


def offered(mentions: Mentions, folder: Path, text: str, now: int = 0) -> list[str]:
    return [item["insertText"] for item in mentions.items([folder], text, len(text), now=now)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    work = fill(tmp_path / "work", "src/loader.py", "src/a b.py", "README.md", "private/key", ".git/config")
    made = Bench(work, sockets=True)
    fence = Fence(excluded=ExcludedPlaces(home=tmp_path / "home", private=[work / "private"]))
    made.features = [Resources(content_directory=tmp_path / "content", fence=fence)]
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.mark.parametrize("mark", ["#", "@"])
async def test_a_file_of_the_session_is_offered_and_attached(bench: Bench, mark: str, tmp_path: Path) -> None:
    client = await bench.client()
    _, chat = await bench.session(client, workingDirectory=(tmp_path / "work").as_uri())
    text = f"look at {mark}load, please"
    [item] = (await client.ask("completions", chat, kind="userMessage", text=text, offset=13))["items"]
    assert item["insertText"] == f"{mark}src/loader.py "
    assert text[item["rangeStart"] : item["rangeEnd"]] == f"{mark}load,"
    assert item["attachment"]["uri"] == (tmp_path / "work/src/loader.py").as_uri()
    assert item["attachment"]["type"] == "resource"


async def test_what_is_hidden_or_cut_out_is_not_offered(bench: Bench, tmp_path: Path) -> None:
    client = await bench.client()
    _, chat = await bench.session(client, workingDirectory=(tmp_path / "work").as_uri())
    items = (await client.ask("completions", chat, kind="userMessage", text="#", offset=1))["items"]
    assert [item["insertText"] for item in items] == ["#README.md ", "#src/loader.py "]


def test_a_name_that_begins_so_comes_before_one_that_contains_it(tmp_path: Path) -> None:
    folder = fill(tmp_path, "src/unload.py", "load/other.py", "deep/down/load.py", "overload/x.py")
    names = ["deep/down/load.py", "load/other.py", "src/unload.py", "overload/x.py"]
    assert offered(Mentions(lambda path: True), folder, "#LOAD") == [f"#{name} " for name in names]
    assert offered(Mentions(lambda path: True), folder, "load") == []
    assert offered(Mentions(lambda path: True), folder, "a#load") == []


def test_folders_that_tools_fill_and_links_are_left_out(tmp_path: Path) -> None:
    folder = fill(tmp_path, "a.py", "node_modules/x/b.py", "__pycache__/c.pyc", ".github/workflows/ci.yml")
    os.symlink("/etc", folder / "etc")
    os.symlink("/etc/passwd", folder / "passwd")
    assert list_files(folder, lambda path: True, at_most=100) == ["a.py", ".github/workflows/ci.yml"]


def test_a_huge_directory_costs_no_more_than_its_bound(tmp_path: Path) -> None:
    folder = fill(tmp_path, *(f"d{number}/f.py" for number in range(30)), "top.py")
    assert list_files(folder, lambda path: True, at_most=5) == ["top.py", "d0/f.py", "d1/f.py", "d10/f.py", "d11/f.py"]
    assert list_files(folder / "none", lambda path: True, at_most=5) == []


def test_a_list_is_kept_while_a_person_types(tmp_path: Path) -> None:
    folder, mentions = fill(tmp_path, "one.py"), Mentions(lambda path: True)
    assert offered(mentions, folder, "#", now=1_000) == ["#one.py "]
    fill(folder, "two.py")
    assert offered(mentions, folder, "#", now=1_000 + KEPT) == ["#one.py "]
    assert offered(mentions, folder, "#", now=1_001 + KEPT) == ["#one.py ", "#two.py "]
