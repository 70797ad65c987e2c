"""Checkpoints and comparisons of a work tree, and what a hostile repository cannot make us run."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from ahpkit.changes.commit import stage, takable
from ahpkit.changes.followed_directories import FollowedDirectories
from ahpkit.changes.git import GitError, find, make
from ahpkit.changes.session import SessionChanges
from ahpkit.changes.sides import FileChange
from ahpkit.changes.work_tree import WorkTree
from support import requirement
from support.repository import Repository

Opener = Callable[..., Awaitable[WorkTree]]


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="one\ntwo\n", b_txt="b\n")
    return repo


@pytest.fixture
def opened(tmp_path: Path, repo: Repository) -> Opener:
    async def open_tree(
        directory: Path | None = None, *, max_file: int = 1024 * 1024, trusted: bool = False
    ) -> WorkTree:
        git = await find(directory or repo.root, objects=tmp_path / "ours", runs_filters=lambda: trusted)
        assert git is not None
        return WorkTree(git, max_file=max_file)

    return open_tree


async def uncommitted(tree: WorkTree) -> dict[str, FileChange]:
    checkpoint = await tree.checkpoint()
    return {change.path: change for change in await tree.compare(await tree.head(), checkpoint.tree)}


async def test_edits_creations_deletions_and_renames_are_told_apart(repo: Repository, opened: Opener) -> None:
    repo.commit(c_txt="".join(f"line {n}\n" for n in range(30)))
    tree = await opened()
    repo.write("a.txt", "one\n2\n3\n")
    repo.write("new/deep.txt", "x\n")
    (repo.root / "b.txt").unlink()
    (repo.root / "c.txt").rename(repo.root / "d.txt")
    changes = await uncommitted(tree)
    assert set(changes) == {"a.txt", "new/deep.txt", "b.txt", "d.txt"}
    assert (changes["a.txt"].added, changes["a.txt"].removed) == (2, 1)
    assert changes["new/deep.txt"].before is None
    assert changes["b.txt"].after is None
    renamed = changes["d.txt"].before
    assert renamed is not None
    assert renamed.path == "c.txt"


@requirement("changesets:undo:keeps-what-others-wrote")
async def test_a_file_written_with_the_same_size_in_the_second_of_the_last_add_is_changed(
    repo: Repository, opened: Opener
) -> None:
    """Git sees it, because its index is not newer than the file."""
    repo.git("config", "core.trustctime", "false")
    second = 1_700_000_000
    for text in ("one\n", "two\n"):
        os.utime(repo.write("a.txt", text), (second, second))
        if text == "one\n":
            repo.commit()
    os.utime(repo.root / ".git" / "index", (second, second))
    assert set(await uncommitted(await opened())) == {"a.txt"}


async def test_a_repository_without_commits_compares_with_nothing(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "fresh")
    repo.write("first.txt", "x\n")
    git = await find(repo.root, objects=tmp_path / "ours")
    assert git is not None
    assert set(await uncommitted(WorkTree(git))) == {"first.txt"}


async def test_the_users_index_refs_and_objects_are_not_touched(repo: Repository, opened: Opener) -> None:
    tree = await opened()
    before = _git_files(repo)
    repo.write("a.txt", "changed\n")
    repo.write("new.txt", "new\n")
    await uncommitted(tree)
    assert _git_files(repo) == before


async def test_ignored_files_are_not_changes(repo: Repository, opened: Opener) -> None:
    repo.commit(_gitignore="*.log\nout/\n")
    tree = await opened()
    repo.write("x.log", "noise")
    repo.write("out/built", "noise")
    repo.write("kept.txt", "x")
    assert set(await uncommitted(tree)) == {"kept.txt"}
    named = await tree.checkpoint(["x.log", "kept.txt"])
    assert set(await tree.sides(named.tree, ["x.log", "kept.txt"])) == {"kept.txt"}


async def test_binary_and_oddly_named_files_are_shown(repo: Repository, opened: Opener) -> None:
    tree = await opened()
    repo.write("image.bin", b"\0\1\2")
    repo.write("two words\n.txt", "x\n")
    odd = os.fsdecode(b"\xff.txt")
    repo.write(odd, "x\n")
    changes = await uncommitted(tree)
    assert set(changes) == {"image.bin", "two words\n.txt", odd}
    assert changes["image.bin"].added is None


async def test_a_file_that_is_too_large_is_named_but_not_kept(repo: Repository, opened: Opener) -> None:
    tree = await opened(max_file=1000)
    repo.write("huge.dat", "x" * 1001)
    checkpoint = await tree.checkpoint()
    assert checkpoint.left_out == {"huge.dat": "too large"}


async def test_another_repository_inside_is_not_entered(repo: Repository, opened: Opener) -> None:
    inner = Repository(repo.root / "inner")
    inner.commit(x_txt="x")
    tree = await opened()
    checkpoint = await tree.checkpoint()
    assert checkpoint.left_out == {"inner/": "another repository"}


async def test_a_submodule_is_one_entry(tmp_path: Path, repo: Repository, opened: Opener) -> None:
    inner = Repository(tmp_path / "library")
    inner.commit(x_txt="x")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "library")
    repo.commit()
    tree = await opened()
    (repo.root / "library/x.txt").write_text("dirty")
    assert await uncommitted(tree) == {}


async def test_a_work_tree_that_git_was_told_to_look_for_elsewhere_is_not_taken(
    tmp_path: Path, repo: Repository
) -> None:
    (tmp_path / "elsewhere").mkdir()
    repo.git("config", "core.worktree", str(tmp_path / "elsewhere"))
    assert await find(repo.root, objects=tmp_path / "ours") is None


async def test_a_directory_outside_any_repository_has_no_work_tree(tmp_path: Path) -> None:
    assert await find(tmp_path, objects=tmp_path / "ours") is None


async def test_an_embedded_bare_repository_is_not_taken_for_one(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "r")
    for name in ("objects", "refs"):
        (repo.root / "trap" / name).mkdir(parents=True)
    repo.write("trap/HEAD", "ref: refs/heads/main\n")
    repo.write("trap/config", "[core]\n\tbare = true\n\tfsmonitor = touch ran\n")
    assert await find(repo.root / "trap", objects=tmp_path / "ours") is None


@pytest.mark.parametrize("trap", ["hooks", "fsmonitor", "external diff", "text conversion", "filter", "signing"])
async def test_nothing_a_repository_configures_is_run(
    trap: str, tmp_path: Path, repo: Repository, opened: Opener
) -> None:
    ran = tmp_path / "ran"
    program = repo.write(".git/program", f"#!/bin/sh\ntouch '{ran}'\ncat\n")
    program.chmod(0o755)
    _set_trap(repo, trap, str(program))
    repo.git("-c", "core.fsmonitor=false", "update-index", "--refresh", check=False)
    ran.unlink(missing_ok=True)
    tree = await opened()
    repo.write("a.txt", "one\ntoo\n")
    changes = await uncommitted(tree)
    side = changes["a.txt"].before if trap != "filter" else None
    if side is not None:
        await tree.read(side)
    assert not ran.exists()


def _set_trap(repo: Repository, trap: str, program: str) -> None:
    match trap:
        case "hooks":
            for name in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
                hook = repo.write(f".git/hooks/{name}", f"#!/bin/sh\nexec {program}\n")
                hook.chmod(0o755)
        case "fsmonitor":
            repo.git("config", "core.fsmonitor", program)
        case "external diff":
            repo.git("config", "diff.external", program)
            repo.write(".git/info/attributes", "*.txt diff=trap\n")
            repo.git("config", "diff.trap.command", program)
        case "text conversion":
            repo.write(".git/info/attributes", "*.txt diff=trap\n")
            repo.git("config", "diff.trap.textconv", program)
        case "filter":
            repo.write(".git/info/attributes", "*.md filter=trap\n")
            for key in ("clean", "smudge", "process"):
                repo.git("config", f"filter.trap.{key}", program)
        case _:
            repo.git("config", "commit.gpgSign", "true")
            repo.git("config", "gpg.program", program)


async def test_a_filtered_file_is_not_compared_unless_the_directory_is_trusted(
    repo: Repository, opened: Opener
) -> None:
    repo.write(".git/info/attributes", "*.txt filter=upper\n")
    repo.git("config", "filter.upper.clean", "tr a-z A-Z")
    tree = await opened()
    repo.write("a.txt", "changed\n")
    checkpoint = await tree.checkpoint()
    assert checkpoint.left_out == {"a.txt": "not compared"}
    assert await tree.compare(await tree.head(), checkpoint.tree) == []
    trusted = await opened(trusted=True)
    assert (await uncommitted(trusted))["a.txt"].added == 1


async def test_named_paths_are_enough_to_see_one_edit(repo: Repository, opened: Opener) -> None:
    tree = await opened()
    first = await tree.checkpoint()
    repo.write("a.txt", "x\n")
    repo.write("b.txt", "y\n")
    second = await tree.checkpoint(["a.txt"])
    assert [change.path for change in await tree.compare(first.tree, second.tree)] == ["a.txt"]


async def test_git_in_the_middle_of_something_is_said(repo: Repository, opened: Opener) -> None:
    tree = await opened()
    assert tree.in_progress() is None
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit(a_txt="side\n")
    repo.git("checkout", "--quiet", "main")
    repo.commit(a_txt="main\n")
    repo.git("merge", "side", check=False)
    assert tree.in_progress() == "a merge"
    assert set(await uncommitted(tree)) == {"a.txt"}


async def test_a_git_command_that_fails_says_why_in_its_own_words(opened: Opener) -> None:
    tree = await opened()
    with pytest.raises(GitError, match="bad object"):
        await tree.compare("0" * 40, await tree.head())


def _git_files(repo: Repository) -> dict[str, bytes]:
    places = sorted(path for path in (repo.root / ".git").rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in places}


async def test_a_lock_that_a_killed_git_left_behind_is_no_obstacle(
    tmp_path: Path, repo: Repository, opened: Opener
) -> None:
    tree = await opened()
    await tree.checkpoint()
    (tmp_path / "ours" / "index.lock").touch()
    repo.write("a.txt", "changed\n")
    assert set(await uncommitted(tree)) == {"a.txt"}


async def test_a_lock_of_the_users_index_is_waited_for(repo: Repository, opened: Opener) -> None:
    tree = await opened()
    repo.write("a.txt", "changed\n")
    lock = repo.root / ".git" / "index.lock"
    lock.touch()
    staging = asyncio.create_task(stage(tree, ["a.txt"]))
    done, _ = await asyncio.wait([staging], timeout=0.2)
    assert not done
    lock.unlink()
    await staging
    assert repo.git("diff", "--cached", "--name-only").split() == ["a.txt"]


async def test_who_asks_for_a_directory_at_the_same_time_gets_the_same_work_tree(
    tmp_path: Path, repo: Repository
) -> None:
    """It has one index: two work trees would run into each other's locks."""
    directories = FollowedDirectories(
        tmp_path / "ours", services=Mock(), default_directory=repo.root, trusts=lambda _: False, shows=lambda _: True
    )
    found = await asyncio.gather(*(directories.tree(repo.root) for _ in range(4)))
    assert found[0] is not None
    assert all(one is found[0] for one in found)


async def test_a_session_that_is_forgotten_while_its_directories_are_found_has_none(
    tmp_path: Path, repo: Repository
) -> None:
    services = MagicMock()
    directories = FollowedDirectories(
        tmp_path / "ours",
        services=services,
        default_directory=repo.root,
        trusts=lambda _: False,
        shows=lambda _: True,
    )
    services.session.return_value = {"workingDirectories": [repo.root.as_uri()]}

    def forget(place: str) -> None:
        directories.rest("ahp-session:/s")

    services.values.get.side_effect = forget
    assert await directories.of_session("ahp-session:/s") == []
    assert directories.known("ahp-session:/s") == []


async def test_a_file_that_git_cannot_read_costs_only_itself(repo: Repository, opened: Opener) -> None:
    repo.write(".gitattributes", "*.wide working-tree-encoding=UTF-16LE\n")
    for n in range(5):
        repo.write(f"{n}.txt", "new\n")
    repo.write("broken.wide", b"odd")
    tree = await opened()
    checkpoint = await tree.checkpoint()
    assert checkpoint.left_out == {"broken.wide": "git cannot read it"}
    assert set(await uncommitted(tree)) == {".gitattributes", *(f"{n}.txt" for n in range(5))}


async def test_a_setting_that_refuses_line_ends_does_not_hide_the_changes(repo: Repository, opened: Opener) -> None:
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.safecrlf", "true")
    repo.write("mixed.txt", "a\r\nb\n")
    assert "mixed.txt" in await uncommitted(await opened())


async def test_a_repository_with_long_object_names_is_followed_and_undone(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "long")
    shutil.rmtree(repo.root / ".git")
    repo.git("init", "--quiet", "--object-format=sha256", "-b", "main")
    repo.commit(a_txt="one\n")
    git = await find(repo.root, objects=tmp_path / "ours")
    assert git is not None
    changes = SessionChanges(WorkTree(git))
    await changes.begin("t")
    repo.write("a.txt", "two\n")
    repo.write("new.txt", "new\n")
    await changes.end("t")
    assert [change.path for change in await changes.session()] == ["a.txt", "new.txt"]
    assert (await changes.undo()).left == {}
    assert repo.status() == set()


async def test_a_directory_with_odd_characters_in_its_name_is_a_work_tree(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "odd\u2028na\x0cme")
    repo.commit(a_txt="one\n")
    assert await find(repo.root, objects=tmp_path / "ours") is not None


async def test_files_that_clients_never_see_are_not_kept(tmp_path: Path) -> None:
    """A host may keep its data in the directory where it works: its log changes with every turn."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log.db").write_text("log")
    (tmp_path / "mine.txt").write_text("mine")
    git = make(tmp_path, objects=tmp_path / "data" / "ours")
    assert git is not None
    tree = WorkTree(git, shows=lambda path: not path.is_relative_to(tmp_path / "data"), max_whole=(3, 100))
    assert await tree.is_small(), "the host's own files do not count"
    first = await tree.checkpoint()
    (tmp_path / "data" / "log.db").write_text("more log")
    assert await tree.known() == ["mine.txt"]
    assert await tree.checkpoint() == first
    assert await tree.checkpoint(["data/log.db"]) == first


async def test_what_git_read_elsewhere_is_not_kept(repo: Repository, tmp_path: Path) -> None:
    """Git opens a file by its name: whoever puts a link in its place for that moment gets the file behind the link."""
    secret, git = tmp_path / "secret", shutil.which("git")
    secret.write_text("of the machine\n")
    odd = tmp_path / "git"
    swapped = f'mv sub/f ../f; cp {secret} sub/f; {git} "$@"; code=$?; mv ../f sub/f; exit $code'
    odd.write_text(f'#!/bin/sh\ncase " $* " in *" --add "*) {swapped};; esac\nexec {git} "$@"\n')
    odd.chmod(0o755)
    repo.write("sub/f", "inside\n")
    repo.write("kept.txt", "kept\n")
    found = await find(repo.root, objects=tmp_path / "ours", program=str(odd))
    assert found is not None
    tree = WorkTree(found)
    checkpoint = await tree.checkpoint()
    assert checkpoint.left_out == {}
    sides = await tree.sides(checkpoint.tree, {"sub/f", "kept.txt"})
    kept = {path: await tree.read(side) for path, side in sides.items()}
    assert kept["sub/f"] == b"inside\n"
    assert kept["kept.txt"] == b"kept\n"
    odd.write_text(f'#!/bin/sh\nexec {git} "$@"\n')
    assert (await tree.checkpoint()).tree == checkpoint.tree


async def test_what_went_away_while_git_read_it_is_left_out(repo: Repository, tmp_path: Path) -> None:
    git, odd = shutil.which("git"), tmp_path / "git"
    odd.write_text(f'#!/bin/sh\n{git} "$@"; code=$?\ncase " $* " in *" --add "*) rm -f sub/f;; esac\nexit $code\n')
    odd.chmod(0o755)
    repo.write("sub/f", "inside\n")
    found = await find(repo.root, objects=tmp_path / "ours", program=str(odd))
    assert found is not None
    assert (await WorkTree(found).checkpoint()).left_out == {"sub/f": "changed while it was read"}


async def test_a_file_that_git_stores_in_another_form_is_kept_right_after_it_was_written(
    repo: Repository, opened: Opener
) -> None:
    repo.git("config", "core.autocrlf", "input")
    tree = await opened()
    repo.write("new/lines.txt", "one\r\ntwo\r\n")
    (repo.root / "new" / "link").symlink_to("nowhere")
    assert (await tree.checkpoint()).left_out == {}
    assert {"new/lines.txt", "new/link"} <= set(await uncommitted(tree))


async def test_files_that_became_folders_are_not_compared_with_every_file_of_a_commit(tmp_path: Path) -> None:
    """On the event loop: ten thousand of each took half a minute."""
    gone = [str(number) for number in range(10_000)]
    there = [f"{path}/inside" for path in gone]
    for path in gone:
        (tmp_path / path).mkdir()
    tree = Mock(spec=WorkTree, root=tmp_path)
    tree.there = Mock(return_value=(there, gone))
    tree.elsewhere, tree.ignored = AsyncMock(return_value={}), AsyncMock(return_value=[])
    tree.tracked, tree.sides = AsyncMock(return_value=set(gone)), AsyncMock(return_value={})
    began = time.process_time()
    assert await takable(tree, [*gone, *there]) == (set(there), {})
    assert time.process_time() - began < 3
