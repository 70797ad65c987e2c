"""Changesets of a running host where repositories are odd: renames, binary and huge files, submodules, a rebase."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ahpkit.changes.feature import Changesets
from ahpkit.host.agent import Turn
from ahpkit.host.resources.feature import Resources
from changes.test_feature import Desk, desk, names
from support import requirement
from support.bench import Bench
from support.repository import Repository

__all__ = ["desk"]


@requirement("changesets:odd:renames", "changesets:file:edit-forms")
async def test_a_renamed_file_is_one_file_with_two_names(desk: Desk) -> None:
    desk.repo.commit(long_txt="".join(f"line {number}\n" for number in range(50)))
    turn_id = await desk.turn(lambda root: (root / "long.txt").rename(root / "moved.txt"))
    _, state = await desk.look("turn", turn_id)
    [entry] = state["files"]
    assert entry["edit"]["before"]["uri"].endswith("/long.txt")
    assert entry["edit"]["after"]["uri"].endswith("/moved.txt")
    uri, _ = await desk.look("session")
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert desk.repo.status() == set()


@requirement("changesets:git:runs-nothing", "changesets:git:users-repository", "changesets:git:not-for-lists")
async def test_a_repository_that_configures_programs_runs_none_and_stays_as_it_is(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, started = tmp_path / "ran", tmp_path / "started"
    program = desk.repo.write(".git/program", f"#!/bin/sh\ntouch '{ran}'\ncat\n")
    program.chmod(0o755)
    for name in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
        desk.repo.write(f".git/hooks/{name}", f"#!/bin/sh\nexec {program}\n").chmod(0o755)
    attributes = "*.txt diff=trap\n*.md filter=trap\n"
    desk.repo.write(".git/info/attributes", attributes)
    keys = ("diff.external", "diff.trap.command", "diff.trap.textconv", "gpg.program", "core.fsmonitor")
    for key in (*keys, *(f"filter.trap.{key}" for key in ("clean", "smudge", "process"))):
        desk.repo.write(".git/config", f"{(desk.repo.root / '.git/config').read_text()}\n{_setting(key, str(program))}")
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\necho x >> "{started}"\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    await desk.session()
    ran.unlink(missing_ok=True)
    before = _kept(desk.repo.root / ".git")
    turn_id = await desk.turn(lambda root: [(root / name).write_text("agent\n") for name in ("a.txt", "note.md")])
    for kind in ("uncommitted", "session", "turn"):
        _, state = await desk.look(kind, turn_id)
        assert names(state) == {"a.txt", "note.md"}
        notes = {entry["id"].rpartition("/")[2]: entry.get("_meta", {}).get("ahpkit/note") for entry in state["files"]}
        assert notes == {"a.txt": None, "note.md": "not compared"}
    uri, _ = await desk.look("session")
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert (desk.repo.root / "a.txt").read_text() == "one\n"
    assert started.exists()
    assert not ran.exists()
    assert _kept(desk.repo.root / ".git") == before
    started.write_text("")
    await desk.client.ask("listSessions")
    await desk.bench.client("ahp-root://")
    assert started.read_text() == ""


def _setting(key: str, value: str) -> str:
    """A key of git's configuration as it stands in the file: git itself would run some of these."""
    section, name = key.rsplit(".", 1)
    first, _, rest = section.partition(".")
    return f'[{first} "{rest}"]\n\t{name} = {value}\n' if rest else f"[{first}]\n\t{name} = {value}\n"


def _kept(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@requirement("changesets:outside-git")
@pytest.mark.parametrize("many", [False, True])
async def test_outside_git_undo_gives_files_back_as_they_were_or_leaves_them(tmp_path: Path, many: bool) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    for number in range(2_100 if many else 3):
        (root / f"{number}.txt").write_text("mine\n")
    bench = Bench(root)
    bench.features = [Resources(), Changesets(tmp_path / "ours", default_directory=root)]
    await bench.start()
    try:
        desk = Desk(bench, cast("Any", SimpleNamespace(root=root)), tmp_path / "ours")
        await desk.session()

        async def script(turn: Turn) -> None:
            call = turn.tool_call("edit")
            call.running(tool_input="{}")
            uris = [(root / name).as_uri() for name in ("0.txt", "new.txt", "both.txt")]
            for name in ("0.txt", "1.txt", "new.txt", "both.txt"):
                (root / name).write_text("agent\n")
            part = {"before": {"uri": uris[0], "content": {"uri": "data:,only%20a%20part"}}}
            edits = [{"type": "fileEdit", "after": {"uri": uri, "content": {"uri": uri}}} for uri in uris]
            call.complete(content=cast("Any", [{**edits[0], **part}, *edits[1:]]))

        await desk.turn(script)
        await desk.client.action("chat/turnComplete")
        (root / "both.txt").write_text("agent\nmine\n")
        uri, state = await desk.look("session")
        assert names(state) == {"0.txt", "new.txt", "both.txt"}, "of 1.txt it did not tell"
        result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
        assert (root / "0.txt").read_text() == ("agent\n" if many else "mine\n")
        assert (root / "new.txt").exists() is many
        assert (root / "both.txt").read_text() == "agent\nmine\n", "a person wrote it when they saw the turn's end"
        assert ("0.txt: its earlier content was not kept (there are too many files" in str(result)) is many
    finally:
        await bench.stop()


@requirement("changesets:odd:binary")
async def test_a_binary_file_has_contents_and_no_line_counts(desk: Desk) -> None:
    data = bytes(range(256)) * 4
    turn_id = await desk.turn(lambda root: (root / "image.bin").write_bytes(data))
    _, state = await desk.look("turn", turn_id)
    [entry] = state["files"]
    assert "diff" not in entry["edit"]
    side = entry["edit"]["after"]["content"]["uri"]
    read = await desk.client.ask("resourceRead", uri=side, encoding="base64")
    assert base64.b64decode(read["data"]) == data


@requirement("changesets:odd:huge")
async def test_a_huge_file_of_a_person_is_no_change_of_the_session(desk: Desk) -> None:
    desk.repo.write("film.mov", "x" * (17 * 1024 * 1024))
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    _, session = await desk.look("session")
    _, uncommitted = await desk.look("uncommitted")
    assert (names(session), names(uncommitted)) == ({"a.txt"}, {"a.txt", "film.mov"})
    [film] = [entry for entry in uncommitted["files"] if entry["id"].endswith(".mov")]
    assert film["_meta"] == {"ahpkit/note": "too large"}
    refused = await desk.client.refused("resourceRead", "ahp-root://", uri=film["edit"]["after"]["content"]["uri"])
    assert (refused["code"], refused["message"]) == (
        -32006,
        "the content of this file is not kept; the note of its entry says why",
    )


@requirement("changesets:odd:huge")
async def test_a_huge_file_is_named_and_what_undo_leaves_is_said(desk: Desk) -> None:
    desk.repo.commit(big_txt="x" * (17 * 1024 * 1024))
    turn_id = await desk.turn(
        lambda root: [(root / "big.txt").write_text("y" * (17 * 1024 * 1024)), (root / "a.txt").write_text("agent\n")]
    )
    _, state = await desk.look("turn", turn_id)
    assert names(state) == {"a.txt", "big.txt"}
    uri, _ = await desk.look("session")
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "big.txt" in result["message"]
    assert (desk.repo.root / "a.txt").read_text() == "one\n"
    assert (desk.repo.root / "big.txt").read_text()[0] == "y"


@pytest.mark.parametrize(("mark", "shown"), [("--assume-unchanged", "h "), ("--skip-worktree", "S ")])
async def test_a_file_that_git_is_told_to_pass_over_is_shown_and_undone(desk: Desk, mark: str, shown: str) -> None:
    desk.repo.git("update-index", mark, "a.txt")
    before = (desk.repo.root / "a.txt").read_text()
    turn_id = await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    _, state = await desk.look("turn", turn_id)
    assert names(state) == {"a.txt"}
    uri, _ = await desk.look("session")
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert (desk.repo.root / "a.txt").read_text() == before
    assert desk.repo.git("ls-files", "-v", "a.txt").startswith(shown), "the person's own index is as it was"


@requirement("changesets:odd:ignored")
async def test_ignored_files_are_no_changes_and_stay(desk: Desk) -> None:
    desk.repo.write(".gitignore", "*.log\nbuild/\n")
    desk.repo.commit()
    await desk.turn(lambda root: [(root / "x.log").write_text("log"), (root / "a.txt").write_text("agent\n")])
    uri, state = await desk.look("session")
    assert names(state) == {"a.txt"}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert (desk.repo.root / "x.log").read_text() == "log"


@requirement("changesets:odd:ignored")
@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("by", ["the rules", "force"])
async def test_a_file_that_was_only_ignored_before_is_not_taken_for_a_new_one(
    desk: Desk, written: bool, by: str
) -> None:
    """Nobody knows what it held: it is named, and undo must not remove it."""
    desk.repo.commit(_gitignore="*.log\n")
    secret = desk.repo.write("mine.log", "precious\n")

    def work(root: Path) -> None:
        if written:
            secret.write_text("agent\n")
        if by == "force":
            desk.repo.git("add", "-f", "mine.log")
        else:
            desk.repo.write(".gitignore", "# nothing\n")
        desk.repo.write("new.txt", "agent\n")

    turn_id = await desk.turn(work)
    _, state = await desk.look("turn", turn_id)
    notes = {entry["id"].rpartition("/")[2]: entry.get("_meta", {}).get("ahpkit/note") for entry in state["files"]}
    assert (notes["mine.log"], notes["new.txt"]) == ("git ignored it before", None)
    uri, _ = await desk.look("session")
    answer = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "mine.log: its earlier content was not kept (git ignored it before)" in answer["message"]
    assert secret.read_text() == ("agent\n" if written else "precious\n")
    assert not (desk.repo.root / "new.txt").exists()
    assert (desk.repo.root / ".gitignore").read_text() == "*.log\n"


@requirement("changesets:odd:ignored")
async def test_an_ignored_file_that_git_tracks_all_the_same_is_shown_as_git_shows_it(desk: Desk) -> None:
    desk.repo.commit(_gitignore="*.log\n")
    await desk.turn(lambda root: None)
    file = desk.repo.write("kept.log", "1\n")
    desk.repo.git("add", "-f", "kept.log")
    uri, state = await desk.look("uncommitted")
    assert names(state) == {"kept.log"}
    desk.repo.git("commit", "-qm", "all the same")
    turn_id = await desk.turn(lambda root: file.write_text("agent\n"))
    assert names(await desk.until(uri, lambda state: "kept.log" in names(state))) == {"kept.log"}
    _, state = await desk.look("turn", turn_id)
    assert set(state["files"][0]["edit"]) >= {"before", "after"}
    uri, _ = await desk.look("turn", turn_id)
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert (file.read_text(), desk.repo.status()) == ("1\n", set())


async def test_names_that_differ_in_case_are_two_files_where_the_disk_says_so(desk: Desk) -> None:
    if (desk.repo.root / ".git" / "head").exists():
        pytest.skip("this disk does not tell them apart")
    desk.repo.git("config", "core.ignoreCase", "true")  # From another disk.
    await desk.session()
    turn_id = await desk.turn(lambda root: desk.repo.write("A.txt", "agent\n"))
    uri, state = await desk.look("turn", turn_id)
    assert names(state) == {"A.txt"}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert {path.name for path in desk.repo.root.glob("*.txt")} == {"a.txt", "b.txt"}
    assert (desk.repo.root / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("taken_back", [False, True])
async def test_what_a_sparse_checkout_leaves_out_is_no_change_and_is_not_there_after_an_undo(
    desk: Desk, taken_back: bool
) -> None:
    """Unless git took the file back into the checkout meanwhile: then it would be missed."""
    for name in ("in/x.txt", "out/y.txt"):
        desk.repo.write(name, "1\n")
    desk.repo.commit()
    await desk.turn(lambda root: None)
    desk.repo.git("sparse-checkout", "set", "in")
    assert not (desk.repo.root / "out").exists()
    turn_id = await desk.turn(lambda root: [desk.repo.write(f"out/{name}.txt", "agent\n") for name in ("new", "y")])
    for kind in ("uncommitted", "turn"):
        uri, state = await desk.look(kind, turn_id)
        assert names(state) == {"new.txt", "y.txt"}
    if taken_back:
        desk.repo.git("add", "--sparse", "out/y.txt")
        desk.repo.git("reset", "--quiet", "out/y.txt")
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert desk.repo.status() == set()
    assert (desk.repo.root / "out" / "y.txt").exists() == taken_back
    await desk.client.ask("invokeChangesetOperation", uri, operationId="redo")
    assert (desk.repo.root / "out" / "y.txt").read_text() == "agent\n"


@requirement("changesets:odd:ignored", "changesets:operation:stage-and-commit")
@pytest.mark.parametrize("operation", ["stage", "commit"])
async def test_a_file_that_git_ignores_only_later_is_neither_uncommitted_nor_committed(
    desk: Desk, operation: str
) -> None:
    await desk.turn(lambda root: [(root / "x.log").write_text("log"), (root / "a.txt").write_text("agent\n")])
    await desk.turn(lambda root: (root / ".gitignore").write_text("*.log\n"))
    _, uncommitted = await desk.look("uncommitted")
    assert names(uncommitted) == desk.repo.status() == {"a.txt", ".gitignore"}
    uri, session = await desk.look("session")
    assert names(session) == {"a.txt", ".gitignore", "x.log"}, "the session did write it"
    answer = await desk.client.ask("invokeChangesetOperation", uri, operationId=operation)
    assert answer["message"].endswith("Left out: x.log: git ignores it.")
    assert set(desk.repo.git("ls-files").split()) == {"a.txt", "b.txt", ".gitignore"}


def _folder_instead_of_a_file(root: Path) -> None:
    (root / "a.txt").unlink()
    (root / "a.txt").mkdir()
    (root / "a.txt/x").write_text("x\n")


def _without_the_new_file(root: Path) -> None:
    (root / "new/n.txt").unlink()


def _link_instead_of_a_folder(root: Path) -> None:
    shutil.rmtree(root / "new")
    (root / "new").symlink_to(root.parent)


def _repository_instead_of_a_folder(root: Path) -> None:
    Repository(root / "new")


@requirement("changesets:operation:stage-and-commit")
@pytest.mark.parametrize("operation", ["stage", "commit"])
@pytest.mark.parametrize(
    ("since", "taken", "left"),
    [
        (_without_the_new_file, {"a.txt"}, ""),
        (_folder_instead_of_a_file, {"new/n.txt"}, " Left out: a.txt: something else is there now."),
        (_link_instead_of_a_folder, {"a.txt"}, ""),
        (_repository_instead_of_a_folder, {"a.txt"}, " Left out: new/n.txt: in a repository of its own."),
    ],
)
async def test_what_is_not_there_any_more_does_not_keep_the_rest_from_being_committed(
    desk: Desk, operation: str, since: Callable[[Path], None], taken: set[str], left: str
) -> None:
    def work(root: Path) -> None:
        (root / "a.txt").write_text("agent\n")
        (root / "new").mkdir()
        (root / "new/n.txt").write_text("agent\n")

    await desk.turn(work)
    since(desk.repo.root)
    uri, _ = await desk.look("session")
    answer = await desk.client.ask("invokeChangesetOperation", uri, operationId=operation)
    done = (
        "Staged 1 file."
        if operation == "stage"
        else f"Committed as {desk.repo.git('rev-parse', '--short', 'HEAD')[:-1]}."
    )
    assert answer["message"] == done + left
    compared = ("--cached", "HEAD") if operation == "stage" else ("HEAD~1", "HEAD")
    assert set(desk.repo.git("diff", "--name-only", *compared).split()) == taken


async def test_a_file_that_became_a_folder_is_committed_as_one(desk: Desk) -> None:
    await desk.turn(_folder_instead_of_a_file)
    uri, _ = await desk.look("session")
    await desk.client.ask("invokeChangesetOperation", uri, operationId="commit")
    assert desk.repo.status() == set()
    assert desk.repo.git("show", "--name-status", "--format=", "--no-renames").split() == ["D", "a.txt", "A", "a.txt/x"]


async def test_a_commit_that_cannot_be_made_says_why_and_leaves_the_index_as_it_was(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    await desk.turn(lambda root: (root / "new.txt").write_text("agent\n"))
    uri, _ = await desk.look("session")
    for key in ("user.name", "user.email"):
        desk.repo.git("config", "--unset", key)
    desk.repo.git("config", "user.useConfigOnly", "true")
    refused = await desk.client.refused("invokeChangesetOperation", uri, operationId="commit")
    assert "set user.name and user.email" in refused["message"]
    assert desk.repo.git("ls-files", "new.txt") == ""
    desk.repo.commit()
    refused = await desk.client.refused("invokeChangesetOperation", uri, operationId="commit")
    assert refused["message"] == "nothing of it differs from the last commit"


@requirement("changesets:odd:in-progress")
async def test_in_the_middle_of_a_rebase_views_work_and_a_commit_is_refused(desk: Desk) -> None:
    repo = desk.repo
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit(a_txt="side\n")
    repo.git("checkout", "--quiet", "main")
    repo.commit(a_txt="main\n")
    repo.git("rebase", "side", check=False)
    assert (repo.root / ".git/rebase-merge").exists()
    turn_id = await desk.turn(lambda root: (root / "b.txt").write_text("agent\n"))
    _, state = await desk.look("turn", turn_id)
    assert names(state) == {"b.txt"}
    uri, shown = await desk.look("uncommitted")
    assert names(shown) == {"a.txt", "b.txt"}
    error = await desk.client.refused("invokeChangesetOperation", uri, operationId="commit")
    assert "rebase" in error["message"]
    session, _ = await desk.look("session")
    await desk.client.ask("invokeChangesetOperation", session, operationId="undo")
    assert (repo.root / "b.txt").read_text() == "b\n"
    assert "<<<<<<<" in (repo.root / "a.txt").read_text()


@pytest.fixture
def library(desk: Desk, tmp_path: Path) -> Path:
    inner = Repository(tmp_path / "library")
    inner.commit(x_txt="x\n")
    desk.repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "library")
    desk.repo.commit()
    return desk.repo.root / "library"


@requirement("changesets:odd:submodules")
async def test_files_in_a_submodule_are_named_and_left_alone_and_a_new_commit_in_it_is_one_entry(
    desk: Desk, library: Path
) -> None:
    async def script(turn: Turn) -> None:
        (library / "x.txt").write_text("agent\n")
        (desk.repo.root / "a.txt").write_text("agent\n")
        call = turn.tool_call("edit")
        call.running(tool_input="{}")
        uri = (library / "x.txt").as_uri()
        edit: Any = {"type": "fileEdit", "after": {"uri": uri, "content": {"uri": uri}}}
        call.complete(content=[edit])

    turn_id = await desk.turn(script)
    _, state = await desk.look("turn", turn_id)
    assert names(state) == {"a.txt", "x.txt"}
    [named] = [entry for entry in state["files"] if entry["id"].endswith("/x.txt")]
    assert named["_meta"] == {"ahpkit/note": "in a repository of its own"}
    uri, _ = await desk.look("session")
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "library/x.txt: its earlier content was not kept (in a repository of its own)" in str(result["message"])
    assert (library / "x.txt").read_text() == "agent\n"
    assert (desk.repo.root / "a.txt").read_text() == "one\n"
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    commit = ("-C", "library", *identity, "commit", "--quiet", "-a", "-m", "new")
    later = await desk.turn(lambda root: desk.repo.git(*commit))
    _, state = await desk.look("turn", later)
    assert names(state) == {"library"}
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "library: it is a submodule; use git in it" in str(result["message"])


async def test_a_pipe_in_the_place_of_a_file_is_named_and_a_new_one_is_no_more_listed_than_by_git(desk: Desk) -> None:
    def work(root: Path) -> None:
        (root / "a.txt").unlink()
        os.mkfifo(root / "a.txt")
        os.mkfifo(root / "new")

    turn_id = await desk.turn(work)
    for kind in ("turn", "session", "uncommitted"):
        _, state = await desk.look(kind, turn_id)
        [named] = state["files"]
        assert (named["id"].rpartition("/")[2], named["_meta"]) == ("a.txt", {"ahpkit/note": "not a file"})
    assert desk.repo.status() == {"a.txt"}, "git does not list new pipes either"
    uri, _ = await desk.look("session")
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "a.txt" in str(result["message"])
    assert (desk.repo.root / "a.txt").is_fifo()


@requirement("changesets:odd:submodules")
async def test_a_change_in_another_repository_inside_is_named_and_left_alone(desk: Desk) -> None:
    inner = Repository(desk.repo.root / "inner")
    inner.commit(x_txt="x\n")
    quiet = await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    assert names((await desk.look("turn", quiet))[1]) == {"a.txt"}
    turn_id = await desk.turn(lambda root: (root / "inner" / "x.txt").write_text("agent\n"))
    _, state = await desk.look("turn", turn_id)
    [named] = state["files"]
    assert named["_meta"] == {"ahpkit/note": "another repository"}
    uri, _ = await desk.look("session")
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "inner/: its earlier content was not kept (another repository)" in str(result["message"])
    assert (desk.repo.root / "a.txt").read_text() == "one\n"
    assert (inner.root / "x.txt").read_text() == "agent\n"


@requirement("changesets:odd:submodules")
async def test_a_repository_that_becomes_a_submodule_is_one_entry(desk: Desk) -> None:
    await desk.turn(lambda root: None)
    Repository(desk.repo.root / "inner").commit(x_txt="1\n")
    desk.repo.git("add", "inner")
    _, state = await desk.look("uncommitted")
    assert names(state) == desk.repo.status() == {"inner"}
