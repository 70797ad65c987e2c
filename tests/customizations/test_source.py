import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ahpkit.customizations.plugin import parse_plugin
from ahpkit.customizations.source import Listing, run_now
from ahpkit.customizations.source import load as load_tree
from ahpkit.customizations.tree import Content, File, Limits, Unreadable, join
from customizations.builders import codes, load, names, read_plugin, skill, text, write

OPEN = {".plugin/plugin.json": {"name": "p"}}


class Memory:
    """A source in memory that waits like a remote one, and counts what is asked of it."""

    uri = "virtual://client/plugin"
    name = "plugin"

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.reads: list[str] = []

    async def list(self, folders: Sequence[str], *, limit: int) -> Sequence[Listing]:
        await asyncio.sleep(0)
        return [self._list(folder) for folder in folders]

    def _list(self, folder: str) -> Listing:
        inside = [path.removeprefix(f"{folder}/" if folder else "") for path in self.files if path.startswith(folder)]
        files = [File(join(folder, rest), join(folder, rest)) for rest in inside if "/" not in rest]
        return Listing(files, sorted({rest.split("/")[0] for rest in inside if "/" in rest}))

    async def read(self, files: Sequence[File], *, limit: int) -> Sequence[Content | Unreadable]:
        await asyncio.sleep(0)
        self.reads += [file.path for file in files]
        return [Content(self.files[file.path].encode()) for file in files]


async def test_the_same_parser_reads_a_plugin_that_is_on_no_disk() -> None:
    source = Memory({".plugin/plugin.json": '{"name": "v"}', "skills/a/SKILL.md": skill("a"), "docs/x.md": "x"})

    parsed, _ = await load_tree(source, lambda tree: parse_plugin(tree, id="client-1"), limits=Limits(), in_thread=True)
    assert names(parsed) == ["v:a"]
    assert parsed.container["id"] == "client-1"
    assert parsed.container.get("children", [])[0]["uri"] == "virtual://client/plugin/skills/a/SKILL.md"
    assert load(parsed) == {"kind": "loaded"}


async def test_only_what_the_parser_wants_is_fetched_and_only_once() -> None:
    source = Memory({".plugin/plugin.json": '{"name": "v"}', "agents/a.md": "x", "docs/x.md": "x", "big.bin": "x"})
    await load_tree(source, lambda tree: parse_plugin(tree, id="i"), limits=Limits())
    assert source.reads == [".plugin/plugin.json", "agents/a.md"]


def test_a_source_that_waits_cannot_be_run_without_a_loop() -> None:
    with pytest.raises(RuntimeError, match="event loop"):
        run_now(load_tree(Memory({}), lambda tree: tree, limits=Limits()))


def test_too_many_entries_are_cut_and_said(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "skills/a/SKILL.md": skill("a")})
    for number in range(300):
        (root / f"file-{number}").touch()
    parsed = read_plugin(root, limits=Limits(entries=100))
    assert "too-many-entries" in codes(parsed, "warning")
    assert load(parsed)["kind"] in ("degraded", "error")


def test_what_is_near_the_root_is_seen_before_what_is_deep(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "skills/a/SKILL.md": skill("a")})
    write(root, {f"src/a/b/c/file-{number}": "" for number in range(300)})
    parsed = read_plugin(root, limits=Limits(entries=100))
    assert names(parsed) == ["p:a"]
    assert codes(parsed, "warning") == ["too-many-entries"]


def test_folders_that_are_too_deep_are_said(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "/".join("abcdefghijklmnop") + "/x.md": "x"})
    assert codes(read_plugin(root), "warning") == ["too-deep"]


def test_more_files_than_allowed_are_not_read_and_said_each(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, **{f"agents/a{number}.md": text() for number in range(5)}})
    parsed = read_plugin(root, limits=Limits(files=4))
    assert names(parsed) == ["p:a0", "p:a1", "p:a2"]
    assert codes(parsed, "warning") == ["unreadable", "unreadable"]


def test_more_bytes_than_allowed_are_not_read_and_said(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, **{f"agents/a{number:03}.md": text("x" * 100) for number in range(300)}})
    parsed = read_plugin(root, limits=Limits(total_bytes=1_000))
    assert 0 < len(names(parsed)) < 300
    assert len(names(parsed)) + len(codes(parsed, "warning")) == 300


@pytest.mark.parametrize("folder", ["node_modules", ".git", "__pycache__"])
def test_folders_without_components_are_not_entered(tmp_path: Path, folder: str) -> None:
    root = write(tmp_path / "p", {**OPEN, f"{folder}/x/SKILL.md": skill("x")})
    assert names(read_plugin(root)) == []
