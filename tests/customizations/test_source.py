from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from ahpkit.customizations.plugin import parse_plugin
from ahpkit.customizations.source import DiskSource, Listing, run_now, survey
from ahpkit.customizations.source import load as load_tree
from ahpkit.customizations.tree import Content, File, FileTree, Limits, Unreadable, join
from customizations.builders import codes, load, messages, names, read_plugin, skill, text, write

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


def look(root: Path, **options: int) -> FileTree:
    return run_now(survey(DiskSource(root), Limits(**options)))


def read_one(source: DiskSource, tree: FileTree, path: str, limit: int = 100) -> Content | Unreadable:
    [content] = run_now(source.read([tree.files[path]], limit=limit))
    return content


def test_files_are_listed_with_folders_and_order(tmp_path: Path) -> None:
    tree = look(write(tmp_path, {"b/x.md": "x", "a.md": "y", "b/c/z.md": "z"}))
    assert list(tree.walk("")) == ["a.md", "b/x.md", "b/c/z.md"]
    assert list(tree.walk("b", depth=1)) == ["b/x.md"]
    assert tree.uri_of("b/x y#.md") == f"{tmp_path.as_uri()}/b/x%20y%23.md"


def test_a_link_out_of_the_plugin_is_never_followed(tmp_path: Path) -> None:
    write(tmp_path / "outside", {"secret/SKILL.md": skill("secret"), "file.md": "s3cret"})
    root = write(tmp_path / "p", {**OPEN, "skills/in/SKILL.md": skill("in"), "agents/.keep": ""})
    (root / "skills/out").symlink_to(tmp_path / "outside/secret")
    (root / "agents/out.md").symlink_to("../../outside/file.md")
    parsed = read_plugin(root)
    assert names(parsed) == ["p:in"]
    assert codes(parsed, "warning") == ["link-escapes", "link-escapes"]
    assert load(parsed)["kind"] == "degraded"


def test_a_link_inside_the_plugin_is_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "shared/s/SKILL.md": skill("s"), "skills/.keep": ""})
    (root / "skills/s").symlink_to("../shared/s")
    assert names(read_plugin(root)) == ["p:s"]


def test_links_that_lead_back_or_nowhere_do_not_hang(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "skills/s/SKILL.md": skill("s")})
    (root / "skills/loop").symlink_to("..")
    (root / "skills/self").symlink_to("self")
    (root / "skills/gone").symlink_to("nowhere")
    (root / "x").mkdir()
    (root / "x/y").symlink_to("../z", target_is_directory=True)
    (root / "z").mkdir()
    (root / "z/x").symlink_to("../x", target_is_directory=True)
    parsed = read_plugin(root)
    assert names(parsed) == ["p:s"]
    assert {"link-loop", "broken-link"} <= set(codes(parsed))


def test_a_plugin_reached_by_a_link_is_read(tmp_path: Path) -> None:
    write(tmp_path / "real", {**OPEN, "skills/s/SKILL.md": skill("s")})
    (tmp_path / "link").symlink_to("real")
    assert names(read_plugin(tmp_path / "link")) == ["p:s"]


def test_a_plugin_that_is_a_file_or_missing_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert load(read_plugin(tmp_path / "file")) == {"kind": "error", "message": "this is a file, not a folder"}
    assert load(read_plugin(tmp_path / "missing")) == {"kind": "error", "message": "there is no such folder"}


def test_what_may_not_be_read_costs_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "p", {**OPEN, "agents/a.md": text(), "agents/b.md": text(), "agents/c/d.md": text()})
    open_ = os.open

    def refusing_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "b.md" or (path == "c" and not flags & os.O_PATH):
            raise PermissionError(13, "Permission denied")
        return open_(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing_open)
    parsed = read_plugin(root)
    assert names(parsed) == ["p:a"]
    assert "agents/b.md: cannot be read (permission denied)" in messages(parsed)
    assert "agents/c: permission denied" in messages(parsed)
    assert codes(parsed, "warning") == ["unreadable", "unreadable"]


def test_a_file_that_vanishes_before_it_is_read_costs_itself_only(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "a", "b.md": "b"})
    source = DiskSource(tmp_path)
    tree = run_now(survey(source, Limits()))
    (tmp_path / "b.md").unlink()
    assert read_one(source, tree, "a.md") == Content(b"a")
    assert read_one(source, tree, "b.md") == Unreadable("the file is gone")


def test_a_file_swapped_for_a_link_out_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "p", {"d/a.md": "a"})
    write(tmp_path / "out", {"a.md": "s3cret"})
    source = DiskSource(tmp_path / "p")
    tree = run_now(survey(source, Limits()))
    (tmp_path / "p/d").rename(tmp_path / "p/old")
    (tmp_path / "p/d").symlink_to(tmp_path / "out")
    assert isinstance(read_one(source, tree, "d/a.md"), Unreadable)
    (tmp_path / "p/d").unlink()
    (tmp_path / "p/d").mkdir()
    (tmp_path / "p/d/a.md").symlink_to(tmp_path / "out/a.md")
    assert isinstance(read_one(source, tree, "d/a.md"), Unreadable)


def test_a_file_replaced_by_an_editor_is_read_as_it_is_now(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "old"})
    source = DiskSource(tmp_path)
    tree = run_now(survey(source, Limits()))
    write(tmp_path, {"a.tmp": "new"})
    (tmp_path / "a.tmp").replace(tmp_path / "a.md")
    assert read_one(source, tree, "a.md") == Content(b"new")


def test_a_file_that_keeps_changing_is_taken_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.md": "x"})
    source = DiskSource(tmp_path)
    tree = run_now(survey(source, Limits()))
    read, size = os.read, 1

    def growing(descriptor: int, length: int) -> bytes:
        nonlocal size
        size += 1
        (tmp_path / "a.md").write_text("x" * size)
        return read(descriptor, length)

    monkeypatch.setattr(os, "read", growing)
    content = read_one(source, tree, "a.md")
    assert isinstance(content, Content)
    assert content.warning == "the file changed while it was read"


def test_pipes_and_sockets_are_neither_opened_nor_waited_for(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "agents/a.md": text()})
    os.mkfifo(root / "agents/pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "agents/s.md"))
        parsed = read_plugin(root)
    assert names(parsed) == ["p:a"]
    assert codes(parsed) == ["not-a-file", "not-a-file"]


def test_a_file_that_became_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    [content] = run_now(DiskSource(tmp_path).read([File("a.md", str(tmp_path / "a.md"))], limit=10))
    assert content == Unreadable("this is not a regular file")


def test_a_long_file_is_cut_and_said(tmp_path: Path) -> None:
    parsed = read_plugin(
        write(
            tmp_path / "p", {**OPEN, "agents/a.md": text("x" * 3_000_000, description="Long."), "agents/b.md": text()}
        )
    )
    assert names(parsed) == ["p:a", "p:b"]
    assert codes(parsed, "warning") == ["read"]
    assert "longer than 1048576 bytes" in messages(parsed)


def test_names_that_are_no_utf8_are_listed_and_shown_safely(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "agents/.keep": ""})
    with open(os.path.join(os.fsencode(root), b"agents/b\xffad\n.md"), "w") as file:
        file.write(text())
    parsed = read_plugin(root)
    assert names(parsed) == ["p:bad"]
    assert "%FF" in str(parsed.container)
    messages(parsed).encode("utf-8")
    str(parsed.container).encode("utf-8")


def test_only_named_files_are_looked_at_when_asked(tmp_path: Path) -> None:
    write(tmp_path, {"AGENTS.md": "a", "src/deep/AGENTS.md": "b", ".github/copilot-instructions.md": "c"})
    source = DiskSource(tmp_path, only=("AGENTS.md", ".github/copilot-instructions.md", "CLAUDE.md"))
    assert sorted(run_now(survey(source, Limits())).files) == [".github/copilot-instructions.md", "AGENTS.md"]
