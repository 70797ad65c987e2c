"""Undo takes back what the session wrote and nothing else; commit and work trees act only when asked."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from ahpkit.changes import commit
from ahpkit.changes.git import GitError, find, make
from ahpkit.changes.record import Record
from ahpkit.changes.session import SessionChanges
from ahpkit.changes.sides import Side
from ahpkit.changes.work_tree import WorkTree
from ahpkit.host.resources.safe_open import SafeOpener
from ahpkit.wire.codec import decode_own, encode
from support.repository import Repository
from support.small_disk import fill, needs_mount, small_disk


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="".join(f"{n}\n" for n in range(20)), b_txt="b\n")
    return repo


async def following(repo: Repository, place: Path) -> SessionChanges:
    git = await find(repo.root, objects=place)
    assert git is not None
    return SessionChanges(WorkTree(git))


async def paths_of(changes: SessionChanges) -> set[str]:
    return {change.path for change in await changes.session()}


async def test_the_session_is_the_sum_of_its_turns_and_not_of_what_others_do_between(
    repo: Repository, tmp_path: Path
) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t1")
    repo.write("agent.txt", "1\n")
    await changes.end("t1")
    repo.write("person.txt", "mine\n")
    await changes.begin("t2")
    repo.write("agent.txt", "1\n2\n")
    repo.write("b.txt", "B\n")
    await changes.end("t2")
    assert await paths_of(changes) == {"agent.txt", "b.txt"}
    assert {change.path for change in await changes.turn("t2")} == {"agent.txt", "b.txt"}
    assert {change.path for change in await changes.uncommitted()} == {"agent.txt", "b.txt", "person.txt"}


async def saving_meanwhile(repo: Repository, place: Path, saved: Mapping[str, tuple[str, str]]) -> SessionChanges:
    """A session beside a person who saves a file when an undo reaches a path: path → the file, and its text."""
    git = await find(repo.root, objects=place)
    assert git is not None
    to_save = dict(saved)

    def save(reached: Path) -> None:
        path = str(reached.relative_to(repo.root))
        if path in to_save:
            repo.write(*to_save.pop(path))

    return SessionChanges(WorkTree(git, writing=lambda: SafeOpener(save)))


async def test_what_a_person_saves_while_an_undo_runs_is_left_alone(repo: Repository, tmp_path: Path) -> None:
    """The undo compared all files before it wrote the first."""
    mine = {name: (name, "a person's\n") for name in ("a.txt", "b.txt", "new.txt")}
    changes = await saving_meanwhile(repo, tmp_path / "ours", mine)
    await changes.begin("t")
    repo.write("a.txt", "agent\n")
    (repo.root / "b.txt").unlink()
    repo.write("new.txt", "agent\n")
    repo.write("other.txt", "agent\n")
    await changes.end("t")
    outcome = await changes.undo()
    assert outcome.undone == ["other.txt"]
    assert outcome.left.keys() == mine.keys()
    assert outcome.left["a.txt"] == "it was changed while the undo ran"
    assert {name: (repo.root / name).read_text() for name in mine} == dict.fromkeys(mine, "a person's\n")
    assert repo.status() == {*mine}


async def test_what_a_person_saves_right_after_an_undo_wrote_it_is_left_alone_by_redo(
    repo: Repository, tmp_path: Path
) -> None:
    """The undo still writes other files then."""
    changes = await saving_meanwhile(repo, tmp_path / "ours", {"b.txt": ("a.txt", "a person's\n")})
    await changes.begin("t")
    repo.write("a.txt", "agent\n")
    repo.write("b.txt", "agent\n")
    await changes.end("t")
    assert (await changes.undo()).undone == ["a.txt", "b.txt"]
    assert await changes.session() == []
    outcome = await changes.redo()
    assert outcome.left == {"a.txt": "it was changed after the session wrote it"}
    assert (repo.root / "a.txt").read_text() == "a person's\n"
    assert (repo.root / "b.txt").read_text() == "agent\n"


class Killed(BaseException):
    """The host ends in the middle of an undo."""


async def test_an_undo_that_was_killed_halfway_is_finished_by_the_next_and_brought_back_whole(
    repo: Repository, tmp_path: Path
) -> None:
    written = {"a.txt": "agent\n", "b.txt": "agent\n", "new.txt": "agent\n"}
    stored: list[bytes] = []

    async def store() -> None:
        stored.append(encode(changes.record.to_json()))

    def kill(reached: Path) -> None:
        if stored and reached.name == "b.txt":
            raise Killed

    git = await find(repo.root, objects=tmp_path / "ours")
    assert git is not None
    changes = SessionChanges(WorkTree(git, writing=lambda: SafeOpener(kill)))
    await changes.begin("t")
    for name, text in written.items():
        repo.write(name, text)
    await changes.end("t")
    with pytest.raises(Killed):
        await changes.undo(store=store)
    assert repo.status() == {"b.txt"}, "new.txt and a.txt are undone"

    again = SessionChanges(WorkTree(git), Record.from_json(decode_own(stored[0])))
    assert (await again.undo()).describe().startswith("Undid 1 file.")
    assert repo.status() == set()
    assert await again.session() == [], "files that were undone before the crash are not listed for ever"
    assert await paths_after(again.redo, again) == {"b.txt"}
    assert await paths_after(again.redo, again) == {*written}
    assert {name: (repo.root / name).read_text() for name in written} == written


async def paths_after(work: Callable[[], Awaitable[object]], changes: SessionChanges) -> set[str]:
    await work()
    return await paths_of(changes)


async def test_nothing_is_undone_where_that_cannot_be_remembered(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    repo.write("a.txt", "agent\n")
    await changes.end("t")

    async def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await changes.undo(store=full)
    assert (repo.root / "a.txt").read_text() == "agent\n"
    assert changes.record.undone == []


@needs_mount
async def test_an_undo_on_a_full_disk_says_so_and_changes_nothing(repo: Repository, tmp_path: Path) -> None:
    with small_disk(tmp_path / "ours") as disk:
        changes = await following(repo, disk / "repo")
        await changes.begin("t")
        repo.write("a.txt", "agent\n")
        await changes.end("t")
        repo.write("b.txt", os.urandom(2**20))
        filler = fill(disk)
        with pytest.raises(GitError, match="the disk is full"):
            await changes.undo()
        assert (repo.root / "a.txt").read_text() == "agent\n"
        filler.unlink()
        await changes.undo()
        assert repo.status() == {"b.txt"}


async def test_a_redo_that_fails_can_be_repeated(repo: Repository, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    program = tmp_path / "git"
    program.write_text(f'#!/bin/sh\n[ ! -e "{broken}" ] || exit 1\nexec git "$@"\n')
    program.chmod(0o755)
    git = await find(repo.root, objects=tmp_path / "ours", program=str(program))
    assert git is not None
    changes = SessionChanges(WorkTree(git))
    await changes.begin("t")
    repo.write("a.txt", "agent\n")
    await changes.end("t")
    await changes.undo()
    broken.touch()
    with pytest.raises(GitError):
        await changes.redo()
    broken.unlink()
    assert (await changes.redo()).undone == ["a.txt"]
    assert (repo.root / "a.txt").read_text() == "agent\n"


async def test_what_a_person_put_back_already_leaves_the_list_with_an_undo(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    repo.write("b.txt", "agent\n")
    await changes.end("t")
    repo.git("checkout", "--", "b.txt")
    assert (await changes.undo()).describe() == "Nothing was undone. 1 file had been put back already."
    assert await changes.session() == []


async def test_both_names_of_one_file_are_undone(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    repo.write("one.txt", "agent\n")
    os.link(repo.root / "one.txt", repo.root / "two.txt")
    await changes.end("t")
    assert (await changes.undo()).left == {}
    assert repo.status() == set()


async def test_very_many_files_that_are_gone_already_hold_the_event_loop_for_a_moment_only(
    repo: Repository, tmp_path: Path
) -> None:
    tree = (await following(repo, tmp_path / "ours")).tree
    blob = await tree.keep(b"x", "x", "100644")
    written = {f"{number % 100}/{number}": "100644" for number in range(6_000)}
    record = Record(total={path: (None, Side(path, mode, blob)) for path, mode in written.items()})
    undoing = asyncio.create_task(SessionChanges(tree, record).undo())
    steps = list[float]()
    while not undoing.done():
        began = time.thread_time()
        await asyncio.sleep(0.001)  # Long enough to leave git the processor.
        steps.append(time.thread_time() - began)
    assert (await undoing).describe() == "Nothing was undone. 6000 files had been put back already."
    assert max(steps) < sum(steps) / 3, sorted(steps)[-5:]


async def test_undo_of_the_session_puts_every_file_back(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    (repo.root / "run.sh").write_text("#!/bin/sh\n")
    (repo.root / "run.sh").chmod(0o755)
    repo.commit()
    await changes.begin("t")
    repo.write("a.txt", "gone\n")
    repo.write("new/dir/x.txt", "x\n")
    (repo.root / "b.txt").unlink()
    os.rename(repo.root / "run.sh", repo.root / "moved.sh")
    (repo.root / "link").symlink_to("a.txt")
    await changes.end("t")
    outcome = await changes.undo()
    assert outcome.left == {}
    assert repo.status() == set()
    assert not (repo.root / "new").exists()
    assert os.access(repo.root / "run.sh", os.X_OK)
    assert await changes.session() == []


async def test_undo_leaves_alone_what_somebody_changed_since_and_says_so(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    repo.write("b.txt", "agent\n")
    repo.write("new.txt", "agent\n")
    await changes.end("t")
    repo.write("b.txt", "person\n")
    repo.write("new.txt", "agent\nand a person\n")
    outcome = await changes.undo()
    assert set(outcome.left) == {"b.txt", "new.txt"}
    assert "was changed after the session wrote it" in outcome.describe()
    assert (repo.root / "b.txt").read_text() == "person\n"
    assert (repo.root / "new.txt").read_text() == "agent\nand a person\n"


async def test_undo_takes_only_the_sessions_lines_out_of_a_file_that_others_changed_elsewhere(
    repo: Repository, tmp_path: Path
) -> None:
    changes = await following(repo, tmp_path / "ours")
    lines = [f"{n}\n" for n in range(20)]
    await changes.begin("t")
    repo.write("a.txt", "".join(["agent\n", *lines[1:]]))
    await changes.end("t")
    repo.write("a.txt", "".join(["agent\n", *lines[1:19], "person\n"]))
    outcome = await changes.undo()
    assert outcome.undone == ["a.txt"]
    assert (repo.root / "a.txt").read_text() == "".join([*lines[:19], "person\n"])


async def test_undo_of_one_turn_keeps_the_others(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    for turn, name in (("t1", "one.txt"), ("t2", "two.txt")):
        await changes.begin(turn)
        repo.write(name, "x\n")
        await changes.end(turn)
    await changes.undo("t1")
    assert await paths_of(changes) == {"two.txt"}
    assert not (repo.root / "one.txt").exists()


async def test_undo_never_follows_a_link_out_of_the_work_tree(repo: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("precious")
    changes = await following(repo, tmp_path / "ours")
    repo.write("dir/x.txt", "before\n")
    repo.commit()
    await changes.begin("t")
    repo.write("dir/x.txt", "agent\n")
    await changes.end("t")
    (repo.root / "dir/x.txt").unlink()
    (repo.root / "dir").rmdir()
    (repo.root / "dir").symlink_to(outside)
    outcome = await changes.undo()
    assert outcome.undone == []
    assert (outside / "x.txt").read_text() == "precious"


async def test_what_is_accepted_is_no_longer_undone(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    repo.write("a.txt", "kept\n")
    repo.write("b.txt", "undone\n")
    await changes.end("t")
    changes.accept(["a.txt"])
    await changes.undo()
    assert repo.status() == {"a.txt"}


async def test_the_record_survives_a_restart(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    repo.write("a.txt", "x\n")
    await changes.end("t")
    again = SessionChanges(changes.tree, Record.from_json(changes.record.to_json()))
    assert await again.session() == await changes.session()
    await again.undo()
    assert repo.status() == set()


async def test_outside_git_the_agents_own_edits_are_known(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "old.txt").write_text("before\n")
    (folder / "other.txt").write_text("not ours")
    git = make(folder, objects=tmp_path / "ours")
    assert git is not None
    changes = SessionChanges(WorkTree(git), edits_only=True)
    await changes.begin("t")
    (folder / "old.txt").write_text("after\n")
    changes.reported |= {"old.txt", "new.txt"}
    (folder / "new.txt").write_text("new\n")
    (folder / "other.txt").write_text("somebody else")
    await changes.end("t")
    assert await paths_of(changes) == {"old.txt", "new.txt"}
    await changes.undo()
    assert (folder / "old.txt").read_text() == "before\n"
    assert sorted(path.name for path in folder.iterdir()) == ["old.txt", "other.txt"]


async def test_commit_takes_the_named_files_and_nothing_that_was_staged(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    repo.write("staged.txt", "person\n")
    repo.git("add", "staged.txt")
    repo.write("a.txt", "agent\n")
    repo.write("new.txt", "agent\n")
    (repo.root / "b.txt").unlink()
    await commit.commit(changes.tree, ["a.txt", "new.txt", "b.txt"], "What the agent did")
    assert repo.git("show", "--name-status", "--format=%s", "HEAD").split() == [
        *["What", "the", "agent", "did"], "M", "a.txt", "D", "b.txt", "A", "new.txt",
    ]  # fmt: skip
    assert repo.git("diff", "--cached", "--name-only").split() == ["staged.txt"]


async def test_commit_runs_hooks_only_where_the_directory_is_trusted(repo: Repository, tmp_path: Path) -> None:
    hook = repo.write(".git/hooks/pre-commit", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    changes = await following(repo, tmp_path / "ours")
    repo.write("a.txt", "1\n")
    await commit.commit(changes.tree, ["a.txt"], "one")
    assert not (tmp_path / "ran").exists()
    repo.write("a.txt", "2\n")
    await commit.commit(changes.tree, ["a.txt"], "two", trusted=True)
    assert (tmp_path / "ran").exists()


async def test_a_commit_in_the_middle_of_a_merge_is_refused(repo: Repository, tmp_path: Path) -> None:
    (repo.root / ".git/MERGE_HEAD").write_text(repo.git("rev-parse", "HEAD"))
    changes = await following(repo, tmp_path / "ours")
    with pytest.raises(GitError, match="in the middle of a merge"):
        await commit.commit(changes.tree, ["a.txt"], "no")


async def test_stage_puts_files_into_the_users_index(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    repo.write("a.txt", "x\n")
    repo.write("new.txt", "x\n")
    await commit.stage(changes.tree, ["a.txt", "new.txt"])
    assert repo.git("diff", "--cached", "--name-only").split() == ["a.txt", "new.txt"]


async def test_a_work_tree_of_its_own_is_made_merged_back_and_removed(repo: Repository, tmp_path: Path) -> None:
    origin = (await following(repo, tmp_path / "ours")).tree
    place = await commit.add_work_tree(origin, tmp_path / "own", "ahpkit/s1")
    git = await find(place, objects=tmp_path / "theirs")
    assert git is not None
    own = SessionChanges(WorkTree(git))
    await own.begin("t")
    (place / "a.txt").write_text("agent\n")
    await own.end("t")
    assert await paths_of(own) == {"a.txt"}
    assert repo.status() == set()
    with pytest.raises(GitError, match=r"is kept, because a\.txt there is in no commit"):
        await commit.remove_work_tree(origin, own.tree, "ahpkit/s1", discard=False)
    await commit.commit(own.tree, ["a.txt"], "In a work tree")
    await commit.merge_back(origin, "ahpkit/s1")
    assert (repo.root / "a.txt").read_text() == "agent\n"
    await commit.remove_work_tree(origin, own.tree, "ahpkit/s1", discard=False)
    assert not place.exists()
    assert repo.git("branch", "--list", "ahpkit/*") == ""


async def test_a_merge_back_with_a_conflict_changes_nothing(repo: Repository, tmp_path: Path) -> None:
    origin = (await following(repo, tmp_path / "ours")).tree
    place = await commit.add_work_tree(origin, tmp_path / "own", "ahpkit/s1")
    git = await find(place, objects=tmp_path / "theirs")
    assert git is not None
    (place / "b.txt").write_text("agent\n")
    await commit.commit(WorkTree(git), ["b.txt"], "theirs")
    repo.commit(b_txt="person\n")
    with pytest.raises(GitError, match=r"both sides changed b\.txt; to do it by hand: git merge"):
        await commit.merge_back(origin, "ahpkit/s1")
    assert repo.status() == set()
    assert (repo.root / "b.txt").read_text() == "person\n"


async def test_a_merge_back_names_the_files_that_a_person_has_not_committed(repo: Repository, tmp_path: Path) -> None:
    origin = (await following(repo, tmp_path / "ours")).tree
    place = await commit.add_work_tree(origin, tmp_path / "own", "ahpkit/s1")
    git = await find(place, objects=tmp_path / "theirs")
    assert git is not None
    for name in ("a.txt", "b.txt"):
        (place / name).write_text("agent\n")
    await commit.commit(WorkTree(git), ["a.txt", "b.txt"], "theirs")
    for name in ("a.txt", "b.txt"):
        repo.write(name, "a person's\n")
    with pytest.raises(GitError, match=r"would be overwritten by merge: a\.txt, b\.txt; to do it by hand"):
        await commit.merge_back(origin, "ahpkit/s1")
    assert (repo.root / "a.txt").read_text() == (repo.root / "b.txt").read_text() == "a person's\n"


async def _written_by_the_agent(repo: Repository, tmp_path: Path, **files: str) -> SessionChanges:
    """A session whose only turn wrote these files."""
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    for name, text in files.items():
        repo.write(name.replace("_", "."), text)
    await changes.end("t")
    return changes


async def test_undo_leaves_alone_what_a_person_made_too_large_to_compare(repo: Repository, tmp_path: Path) -> None:
    git = await find(repo.root, objects=tmp_path / "ours")
    assert git is not None
    changes = SessionChanges(WorkTree(git, max_file=1000))
    await changes.begin("t")
    repo.write("b.txt", "agent\n")
    repo.write("new.txt", "agent\n")
    await changes.end("t")
    repo.write("b.txt", "p" * 2000)
    repo.write("new.txt", "p" * 2000)
    outcome = await changes.undo()
    assert outcome.undone == []
    assert set(outcome.left) == {"b.txt", "new.txt"}
    assert "too large" in outcome.describe()
    assert (repo.root / "b.txt").read_text() == (repo.root / "new.txt").read_text() == "p" * 2000


async def test_undo_leaves_alone_what_became_part_of_another_repository(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    repo.write("inner/f.txt", "agent\n")
    await changes.end("t")
    Repository(repo.root / "inner").write("f.txt", "a person's\n")
    outcome = await changes.undo()
    assert outcome.left == {"inner/f.txt": "its present content cannot be compared (in a repository of its own)"}
    assert (repo.root / "inner/f.txt").read_text() == "a person's\n"


async def test_undo_leaves_alone_a_file_that_a_person_gave_a_filter(repo: Repository, tmp_path: Path) -> None:
    repo.git("config", "filter.x.clean", "cat")
    changes = await _written_by_the_agent(repo, tmp_path, new_txt="agent\n")
    repo.write(".gitattributes", "new.txt filter=x\n")
    repo.write("new.txt", "a person's\n")
    outcome = await changes.undo()
    assert "not compared" in outcome.left["new.txt"]
    assert (repo.root / "new.txt").read_text() == "a person's\n"


async def test_undo_leaves_alone_an_ignored_file_that_stands_where_the_agent_deleted_one(
    repo: Repository, tmp_path: Path
) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    (repo.root / "b.txt").unlink()
    await changes.end("t")
    repo.write(".gitignore", "b.txt\n")
    repo.write("b.txt", "a person's\n")
    outcome = await changes.undo()
    assert outcome.left == {"b.txt": "its present content cannot be compared (git ignores it)"}
    assert (repo.root / "b.txt").read_text() == "a person's\n"


async def test_a_file_that_became_a_folder_is_a_file_again(repo: Repository, tmp_path: Path) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    (repo.root / "b.txt").unlink()
    repo.write("b.txt/inside", "agent\n")
    await changes.end("t")
    outcome = await changes.undo()
    assert outcome.left == {}
    assert repo.status() == set()


async def test_a_folder_in_which_a_person_put_a_file_is_not_exchanged_for_the_file_it_was(
    repo: Repository, tmp_path: Path
) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    (repo.root / "b.txt").unlink()
    repo.write("b.txt/inside", "agent\n")
    await changes.end("t")
    repo.write("b.txt/mine", "a person's\n")
    outcome = await changes.undo()
    assert outcome.left == {"b.txt": "is a directory"}
    assert (repo.root / "b.txt/mine").read_text() == "a person's\n"


async def test_who_may_read_a_file_stays_as_it_is(repo: Repository, tmp_path: Path) -> None:
    private = repo.root / "b.txt"
    private.chmod(0o600)
    changes = await _written_by_the_agent(repo, tmp_path, b_txt="agent\n")
    await changes.begin("t2")
    private.chmod(0o700)
    await changes.end("t2")
    await changes.undo()
    assert private.read_text() == "b\n"
    assert private.stat().st_mode & 0o777 == 0o600


async def test_a_mode_is_taken_back_also_where_somebody_wrote_into_the_file_since(
    repo: Repository, tmp_path: Path
) -> None:
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    (repo.root / "a.txt").chmod(0o755)
    await changes.end("t")
    repo.write("a.txt", (repo.root / "a.txt").read_text() + "a person's\n")
    await changes.undo()
    assert (repo.root / "a.txt").read_text().endswith("19\na person's\n")
    assert (repo.root / "a.txt").stat().st_mode & 0o111 == 0


async def test_hooks_run_from_where_the_repository_says_they_are(repo: Repository, tmp_path: Path) -> None:
    hook = repo.write(".husky/pre-commit", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    repo.commit("hooks")
    repo.git("config", "core.hooksPath", ".husky")
    changes = await following(repo, tmp_path / "ours")
    repo.write("b.txt", "B\n")
    await commit.commit(changes.tree, ["b.txt"], "without")
    assert not (tmp_path / "ran").exists()
    repo.write("b.txt", "C\n")
    await commit.commit(changes.tree, ["b.txt"], "with", trusted=True)
    assert (tmp_path / "ran").exists()


async def test_a_commit_that_a_hook_refuses_leaves_the_index_as_it_was(repo: Repository, tmp_path: Path) -> None:
    hook = repo.write(".git/hooks/pre-commit", "#!/bin/sh\necho 'no style' >&2\nexit 1\n")
    hook.chmod(0o755)
    changes = await following(repo, tmp_path / "ours")
    repo.write("new.txt", "x\n")
    with pytest.raises(GitError, match="no style"):
        await commit.commit(changes.tree, ["new.txt"], "a message", trusted=True)
    assert repo.git("status", "--porcelain") == "?? new.txt\n"


async def test_more_files_than_a_command_line_takes_are_committed(repo: Repository, tmp_path: Path) -> None:
    paths = [f"{'long' * 50}/{'name' * 50}-{n}.txt" for n in range(6_000)]  # 2.4 MB of names; Linux takes 2.
    for path in paths:
        repo.write(path, "x\n")
    changes = await following(repo, tmp_path / "ours")
    await commit.stage(changes.tree, paths[:10])
    await commit.commit(changes.tree, paths, "many")
    assert repo.status() == set()


@pytest.mark.parametrize(
    ("setting", "before", "after"),
    [
        ("true", b"1\n2\n", b"1\n2\n3\n"),
        ("true", b"1\r\n2\r\n", b"1\r\n2\r\n3\n"),
        ("input", b"1\r\n2\n3\r\n", b"1\r\nnew\r\n3\r\n"),
        ("false", b"1\r\n2\r\n", b"1\n2\n"),
    ],
)
async def test_undo_and_redo_keep_the_line_ends_that_files_have(
    repo: Repository, tmp_path: Path, setting: str, before: bytes, after: bytes
) -> None:
    repo.git("config", "core.autocrlf", setting)
    file = repo.write("ends.txt", before)
    repo.commit()
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    file.write_bytes(after)
    new = {repo.write(f"new-{len(text)}.txt", text): text for text in (b"1\n2\n", b"1\r\n2\r\n", b"1\r\n2\n", b"one")}
    await changes.end("t")
    for turn_id in (None, "t"):
        assert (await changes.undo(turn_id)).left == {}
        assert file.read_bytes() == (b"1\r\n2\r\n3\r\n" if setting == "input" else before), "2 is not there any more"
        assert not any(path.exists() for path in new)
        changes.record = Record.from_json(decode_own(encode(changes.record.to_json())))
        assert (await changes.redo()).left == {}
        assert file.read_bytes() == after
        assert {path: path.read_bytes() for path in new} == new


async def test_files_are_put_back_in_the_form_that_restored_attributes_ask_for(
    repo: Repository, tmp_path: Path
) -> None:
    repo.write("sub/.gitattributes", "*.txt eol=crlf\n")
    names = ["sub/+first.txt", "sub/later.txt"]
    for name in names:
        repo.write(name, "1\r\n2\r\n")
    repo.commit()
    changes = await following(repo, tmp_path / "ours")
    await changes.begin("t")
    for name in ("sub/.gitattributes", *names):
        (repo.root / name).unlink()
    await changes.end("t")
    assert (await changes.undo()).left == {}
    assert [(repo.root / name).read_bytes() for name in names] == [b"1\r\n2\r\n"] * 2
    assert repo.status() == set()


async def test_redo_has_git_make_what_a_filter_makes_and_keeps_no_copy(repo: Repository, tmp_path: Path) -> None:
    repo.write(".gitattributes", "*.sec filter=turn\n")
    for way in ("clean", "smudge"):
        repo.git("config", f"filter.turn.{way}", "tr a-z n-za-m")
    repo.commit()
    git = await find(repo.root, objects=tmp_path / "ours", runs_filters=lambda: True)
    assert git is not None
    changes = SessionChanges(WorkTree(git))
    await changes.begin("t")
    file = repo.write("x.sec", "hello\n")
    await changes.end("t")
    await changes.undo()
    assert not file.exists()
    await changes.redo()
    assert file.read_text() == "hello\n"
    names = (await git.lines("cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "-z"))[0].split()
    stored = [await git.run("cat-file", "-p", name) for name in names]
    assert b"uryyb\n" in stored
    assert b"hello\n" not in stored


async def test_a_call_that_is_told_late_is_the_agents_in_every_turn(repo: Repository, tmp_path: Path) -> None:
    """From the second turn on, what such an agent wrote was taken for somebody else's."""
    git = await find(repo.root, objects=tmp_path / "ours")
    assert git is not None
    now = time.time_ns()
    changes = SessionChanges(WorkTree(git, clock=lambda: now))
    for turn_id in ("t1", "t2"):
        await changes.begin(turn_id, outside_calls=None)
        repo.write(f"{turn_id}.txt", "agent\n")
        now = time.time_ns() + 3_600_000_000_000
        for status in ("running", "completed"):
            changes.saw_call(f"call of {turn_id}", status)
        await changes.end(turn_id)
        assert [change.path for change in await changes.turn(turn_id)] == [f"{turn_id}.txt"]
        now = time.time_ns()
