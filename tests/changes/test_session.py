"""Random edits by agent, person and git, against git's own view; undo destroys nothing that the agent did not write."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.changes.git import Git, find, make
from ahpkit.changes.record import Record, TurnRecord, UndoRecord
from ahpkit.changes.session import SessionChanges
from ahpkit.changes.sides import FileChange, Pair, Side
from ahpkit.changes.work_tree import WorkTree
from ahpkit.wire.codec import decode_own, encode
from support import requirement
from support.properties import examples
from support.repository import Repository
from support.waiting import a_moment

NAMES = st.sampled_from(["a.txt", "b.txt", "dir/c.txt", "dir/d.bin", "a.txt/x", "left.log"])
TEXTS = st.sampled_from(["", "1\n", "1\n2\n3\n", "1\n2\n3\nlast\n", "first\n1\n2\n3\n", "other\n", "\0binary"])
DOINGS = [
    *("agent", "person", "commit", "stage", "stash", "restore", "rename", "mode", "amend", "others", "rebase", "force"),
    *("untrack", "rules", "submodule", "sparse", "link", "case", "branch", "again", "first", "last"),
    *("undo", "undo turn", "undo file", "redo"),
]
STEPS = st.lists(
    st.tuples(st.sampled_from(DOINGS), NAMES, st.one_of(st.none(), TEXTS)),
    min_size=1,
    max_size=10,
)

STEPS_OUTSIDE = st.lists(
    st.tuples(st.sampled_from(["agent", "agent", "person", *DOINGS[-6:]]), NAMES, st.one_of(st.none(), TEXTS)),
    min_size=1,
    max_size=9,
)

Step = tuple[str, str, str | None]


@requirement("changesets:undo:keeps-what-others-wrote")
@examples(0.3)
@given(STEPS)
def test_uncommitted_is_what_git_says_and_undo_keeps_what_a_person_wrote(steps: list[Step]) -> None:
    asyncio.run(_play(steps, Game))


@requirement("changesets:outside-git", "changesets:undo:keeps-what-others-wrote")
@examples(0.4)
@given(STEPS_OUTSIDE, st.sampled_from([2_000, 2]))
def test_outside_git_undo_keeps_what_a_person_wrote_also_where_files_are_too_many_to_know(
    steps: list[Step], most: int
) -> None:
    asyncio.run(_play(steps, lambda place: GameOutside(place, most)))


async def counted(repo: Repository, place: Path) -> tuple[SessionChanges, Path]:
    """A session in a repository, and a file that gets a line for each git process."""
    program, started = _counting(place)
    git = await find(repo.root, objects=place / "ours", program=program)
    assert git is not None
    return SessionChanges(WorkTree(git)), started


def _counting(place: Path) -> tuple[str, Path]:
    """A git, and the file that has a line for each time it was started."""
    started = place / "started"
    started.touch()
    program = place / "git"
    program.write_text(f'#!/bin/sh\necho "$@" >> "{started}"\nexec git "$@"\n')
    program.chmod(0o755)
    return str(program), started


async def test_one_more_edit_of_a_running_turn_starts_few_processes(tmp_path: Path) -> None:
    """Each costs at least a few milliseconds, and much more on a busy machine."""
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="1\n", b_txt="1\n")
    changes, started = await counted(repo, tmp_path)
    await changes.begin("t1")
    repo.write("new.txt", "1\n2\n")
    repo.write("b.txt", "2\n")
    await changes.end("t1")
    await changes.begin("t2")
    await a_moment()  # Files in a folder that changed just now are read once more.
    for text in ("2\n", "3\n"):
        repo.write("a.txt", text)
        started.write_text("")
        await changes.refresh("t2", ["a.txt"])
        shown = await changes.session(["t2"])
        assert {change.path: change.added for change in shown} == {"a.txt": 1, "b.txt": 1, "new.txt": 2}
        assert [change.path for change in await changes.turn("t2")] == ["a.txt"], "compared already"
    assert len(started.read_text().splitlines()) <= 4


async def test_a_turn_that_changes_nothing_looks_twice_and_starts_no_more_processes(tmp_path: Path) -> None:
    """The agent waits for the first look: it takes one process, not four."""
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="1\n", b_txt="1\n")
    changes, started = await counted(repo, tmp_path)
    await changes.begin("t1")
    repo.write("a.txt", "2\n")
    await changes.end("t1")
    started.write_text("")
    await changes.begin("t2")
    await changes.end("t2")
    assert len(started.read_text().splitlines()) == 2
    assert await changes.turn("t2") == []
    assert [change.path for change in await changes.session()] == ["a.txt"]


async def test_many_files_are_undone_and_brought_back_with_few_processes(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    edited, new = ([f"{folder}/{number}.txt" for number in range(40)] for folder in ("edited", "new"))
    for path in edited:
        repo.write(path, "1\n")
    repo.commit()
    changes, started = await counted(repo, tmp_path)
    await changes.begin("t1")
    for path in (*edited, *new):
        repo.write(path, "2\n")
    await changes.end("t1")
    for work, left in ((changes.undo, set[str]()), (changes.redo, {*edited, *new})):
        started.write_text("")
        assert len((await work()).undone) == 80
        assert repo.status() == left
        assert len(started.read_text().splitlines()) < 20


async def test_outside_git_it_is_asked_for_no_more_than_the_files(tmp_path: Path) -> None:
    """Whether a folder is in a repository is seen without git, and there is no other index than ours."""
    program, started = _counting(tmp_path)
    plain = tmp_path / "plain"
    plain.mkdir()
    assert await find(plain, objects=tmp_path / "ours", program=program) is None
    assert started.read_text() == ""
    git = make(plain, objects=tmp_path / "ours", program=program)
    assert git is not None
    changes = SessionChanges(WorkTree(git))
    for turn in ("t1", "t2"):
        started.write_text("")
        await changes.begin(turn)
        (plain / turn).write_text("1\n")
        await changes.end(turn)
        assert [change.path for change in await changes.turn(turn)] == [turn]
    assert "ls-files -z -s -t" not in started.read_text()
    assert len(started.read_text().splitlines()) <= 6


@pytest.mark.parametrize("above", [".", ".."])
async def test_whatever_may_be_a_repository_is_shown_to_git(tmp_path: Path, above: str) -> None:
    """A link to a repository's folder, and a file that names it, are repositories too."""
    program, _ = _counting(tmp_path)
    elsewhere = Repository(tmp_path / "elsewhere")
    elsewhere.commit(a_txt="1\n")
    work = tmp_path / "work" / "below"
    work.mkdir(parents=True)
    mark = work / above / ".git"
    mark.symlink_to(elsewhere.root / ".git")
    assert await find(work, objects=tmp_path / "ours", program=program) is not None
    mark.unlink()
    mark.write_text(f"gitdir: {elsewhere.root / '.git'}\n")
    through = tmp_path / "link"
    through.symlink_to(work)
    assert await find(through, objects=tmp_path / "ours", program=program) is not None


async def test_files_that_were_only_touched_are_no_change_and_are_not_read_for_ever(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="1\n", b_txt="1\n")
    changes, _ = await counted(repo, tmp_path)
    await changes.begin("t1")
    os.utime(repo.root / "a.txt", (1, 1))
    repo.write("b.txt", "2\n")
    await changes.end("t1")
    assert [change.path for change in await changes.turn("t1")] == ["b.txt"]
    assert (
        "mtime: 1:0" in (await changes.tree.git.run("ls-files", "--debug", index=tmp_path / "ours" / "index")).decode()
    )


async def _play(steps: list[Step], made: Callable[[Path], Game]) -> None:
    with tempfile.TemporaryDirectory() as place:
        game = made(Path(place))
        await game.begin()
        for number, step in enumerate(steps):
            await game.take(number, *step)
            await game.git_agrees()


class Game:
    """One repository, one session in it, and a person who uses git besides."""

    def __init__(self, place: Path) -> None:
        self.repo = Repository(place / "repo")
        self.repo.commit(a_txt="1\n2\n3\n", b_txt="b\n", _gitignore="*.log\n")
        self.ours = place / "ours"
        self.turns: list[str] = []
        self.made: set[str] = set()
        """Files that were not there when the agent wrote them."""
        self.touched: set[str] = set()
        """Files that the last edit wrote or removed."""
        self.agents: dict[str, set[bytes | None]] = {}
        """Every content that the agent left a file with."""
        self.now = time.time_ns()
        self.written: dict[str, int] = {}
        """When files were last written by agent or person."""
        self.wrote: dict[str, set[bytes]] = {}
        """Lines that the agent put into a file in which they were not."""
        self.told_ever: set[str] = set()
        """Files that the agent told of in any turn."""

    async def begin(self) -> None:
        git = await find(self.repo.root, objects=self.ours)
        assert git is not None
        self.changes = SessionChanges(self.tree(git))

    def tree(self, git: Git, **settings: Any) -> WorkTree:
        """A work tree that knows when files were written: each step of a turn is an hour."""
        game = self

        class Timed(WorkTree):
            def written_at(self, paths: Iterable[str], since: int = 0) -> dict[str, int | None]:
                there = super().written_at(paths)
                return {path: at and game.written.get(path, at) for path, at in there.items()}

        return Timed(git, clock=lambda: game.now, **settings)

    async def _beside(self, turn_id: str, name: str, text: str | None, *, first: bool) -> None:
        """A turn of an agent that works through calls, and a person who writes into the same file before or after."""
        await self.changes.begin(turn_id, outside_calls=False)
        if first:
            self._person_writes(turn_id, name)
            self.changes.saw_call("1", "pending-confirmation")
            theirs = await self.changes.written_by_others(turn_id, [name])
            await self.changes.look_before(turn_id, theirs)
        self._pass_time()
        self.changes.saw_call("1", "running")
        self._agent_writes(name, text)
        self._pass_time()
        self.changes.saw_call("1", "completed")
        await self.changes.refresh(turn_id, [*self.touched])
        if not first:
            self._person_writes(turn_id, name)
        await self.changes.end(turn_id)

    def _person_writes(self, turn_id: str, name: str) -> None:
        self._pass_time()
        before = self._content(name) or b""
        self._edit(name, f"{before.decode()}the person in {turn_id}\n")
        self._pass_time()

    def _pass_time(self) -> None:
        self.now += 3_600 * 10**9

    def _agent_writes(self, name: str, text: str | None) -> None:
        before = self._content(name)
        self.made |= {name} if before is None else set()
        self._edit(name, text)
        new = {*(self._content(name) or b"").splitlines()}.difference((before or b"").splitlines())
        self.wrote.setdefault(name, set()).update(new)
        self.changes.reported.update(self.touched)
        self.told_ever |= self.touched
        self.agents.setdefault(name, set()).add(self._content(name))

    async def take(self, number: int, who: str, name: str, text: str | None) -> None:
        match who:
            case "agent":
                self.turns.append(f"t{number}")
                await self.changes.begin(self.turns[-1])
                self._agent_writes(name, text)
                await self.changes.refresh(self.turns[-1])
                while_it_runs = await self.changes.session([self.turns[-1]])
                await self.changes.end(self.turns[-1])
                assert while_it_runs == await self.changes.session()
            case "person":
                self._edit(name, text)
            case "first" | "last":
                self.turns.append(f"t{number}")
                await self._beside(self.turns[-1], name, text, first=who == "first")
            case "undo":
                await self._undo()
            case "redo":
                await self._redo()
            case "undo turn":
                for turn_id in self.turns[-1:]:
                    await self._undo(turn_id)
            case "undo file":
                await self._undo(only=[name])
            case _:
                self._use_git(who, name)

    def _use_git(self, what: str, name: str) -> None:
        match what:
            case "commit":
                self.repo.commit()
            case "stage":
                self.repo.git("add", "-A")
            case "stash":
                self.repo.git("stash", "--include-untracked", check=False)
                self.repo.git("stash", "pop", check=False)
            case "restore":
                self.repo.git("checkout", "HEAD", "--", name, check=False)
            case "mode":
                if (file := self.repo.root / name).is_file():
                    file.chmod(0o644 if file.stat().st_mode & 0o100 else 0o755)
            case "amend":
                self.repo.git("commit", "--quiet", "--all", "--amend", "--no-edit", check=False)
            case "others":
                self._commit_elsewhere(name)
                self.repo.git("merge", "--quiet", "--no-edit", "others", check=False)
                self.repo.git("merge", "--abort", check=False)
            case "rebase":
                self._commit_elsewhere(name)
                self.repo.git("rebase", "--quiet", "others", check=False)
                self.repo.git("rebase", "--abort", check=False)
            case "force":
                self.repo.git("add", "-f", "--", name, check=False)
            case "untrack":
                self.repo.git("rm", "--quiet", "--cached", "--", name, check=False)
            case "rules":
                rules = self.repo.root / ".gitignore"
                rules.write_text("b.txt\n" if "log" in rules.read_text() else "*.log\n")
            case "sparse":
                if "true" in self.repo.git("config", "core.sparseCheckout", check=False):
                    self.repo.git("sparse-checkout", "disable", check=False)
                else:
                    self.repo.git("sparse-checkout", "set", "--no-cone", "/*", f"!{name}", check=False)
            case "link":
                if not os.path.lexists(self.repo.root / "link"):
                    os.symlink(name, self.repo.root / "link")
            case "case":
                if (file := self.repo.root / name).is_file():
                    file.rename(file.with_name(file.name.upper()))
            case "branch":
                self.repo.git("checkout", "--quiet", "-B", f"side-{name.replace('/', '-')}", check=False)
                self.repo.git("checkout", "--quiet", "main", check=False)
            case "again":
                if (content := self._content(name)) is not None:
                    (self.repo.root / name).unlink()
                    (self.repo.root / name).write_bytes(content)
            case "submodule":
                self._edit("inner", None)
                inner = Repository(self.repo.root / "inner")
                inner.commit(x_txt=name)
                self.repo.git("add", "inner", check=False)
            case _:
                self.repo.git("mv", "-k", name, "moved.txt", check=False)

    def _commit_elsewhere(self, name: str) -> None:
        """Somebody else commits to another branch, without our work tree."""
        place = self.repo.root.parent / "others"
        self.repo.git("worktree", "add", "--quiet", "--force", "-B", "others", str(place), "HEAD")
        path = place / name
        if path.parent.is_dir() and not path.is_dir():
            path.write_text("others\n1\n2\n3\n")
        self.repo.git("-C", str(place), "add", "-A")
        self.repo.git("-C", str(place), "commit", "--quiet", "--allow-empty", "-m", "by others")
        self.repo.git("worktree", "remove", "--force", str(place))

    async def git_agrees(self) -> None:
        """The same paths as git's status, and the same numbers of lines as its diff.

        Git also names a file that is staged and again as it was in the last commit, and sees in a file that left its
        index only that it left: the view compares the files themselves.
        """
        shown = await self.changes.uncommitted()
        known = set(self.repo.git("ls-files", "-z").split("\0"))
        plain = {change.path: (change.added, change.removed) for change in shown if _plain(change)}
        plain = {path: numbers for path, numbers in plain.items() if path in known}
        named = {path for change in shown for path in change.paths}
        assert named == {path for path in self.repo.status() if path in named or not self._is_as_committed(path)}
        assert plain == self._numbers(set(plain))

    def _is_as_committed(self, path: str) -> bool:
        before = self.repo.git("ls-tree", "-z", "HEAD", "--", path)
        content = self._content(path)
        if not before:
            return content is None
        return content is not None and self.repo.git("hash-object", "--", path).strip() in before

    def _numbers(self, paths: set[str]) -> dict[str, tuple[int | None, int | None]]:
        """What git counts in files that it tracks."""
        found: dict[str, tuple[int | None, int | None]] = {}
        for line in self.repo.git("diff", "--numstat", "--no-renames", "-z", "HEAD").split("\0"):
            added, _, rest = line.partition("\t")
            removed, _, path = rest.partition("\t")
            if path in paths:
                found[path] = (None, None) if added == "-" else (int(added), int(removed))
        return found

    async def _undo(self, turn_id: str | None = None, only: list[str] | None = None) -> None:
        """Whatever a person wrote is still there afterwards, or only the agent's lines were taken out of it."""
        before = self._files()
        changes = await (self.changes.session() if turn_id is None else self.changes.turn(turn_id))
        outcome = await self.changes.undo(turn_id, only=only)
        after = self._files()
        touched = {path for change in changes for path in change.paths}
        for path, content in before.items():
            if after.get(path) == content:
                continue
            assert path in touched
            assert path in after or path in self.made | {"moved.txt"}, "it was there before the agent wrote it"
            if path in after or content not in self.agents.get(path, ()):
                kept = {line for line in content.splitlines() if line not in self.wrote.get(path, ())}
                assert kept <= set((after.get(path) or b"").splitlines()), (path, content, after.get(path))
        assert outcome.left.keys().isdisjoint(outcome.undone)

    async def _redo(self) -> None:
        """A file that is as the undo left it is again as it was before the undo. All others are left, or merged."""
        undone, before = self.changes.record.undone[-1:], self._files()
        outcome = await self.changes.redo()
        after = self._files()
        for path, sides in [pair for one in undone for pair in one.files.items()]:
            was, now = [None if side is None else await self.changes.tree.read(side) for side in sides]
            if before.get(path) == now and path in outcome.undone and (self.repo.root / path).is_file():
                assert after.get(path) == was, path
        assert outcome.left.keys().isdisjoint(outcome.undone)
        assert {path for path in before if after.get(path) != before[path]} <= {*outcome.undone}

    def _files(self) -> dict[str, bytes]:
        files = (path for path in self.repo.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.repo.root)): path.read_bytes() for path in files}

    def _content(self, name: str) -> bytes | None:
        path = self.repo.root / name
        return path.read_bytes() if path.is_file() else None

    def _edit(self, name: str, text: str | None) -> None:
        """Write or remove a file; a file in the way of a folder, or the other way round, is removed first."""
        path = self.repo.root / name
        self.touched = {name}
        self.written[name] = self.now
        for above in path.relative_to(self.repo.root).parents:
            if (self.repo.root / above).is_file():
                self.touched.add(str(above))
                (self.repo.root / above).unlink()
        if path.is_dir():
            self.touched |= {str(one.relative_to(self.repo.root)) for one in path.rglob("*") if one.is_file()}
            shutil.rmtree(path)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            self.repo.write(name, text)


class GameOutside(Game):
    """The same in a folder that is in no repository, or in one with more than `most` files."""

    def __init__(self, place: Path, most: int) -> None:
        super().__init__(place)
        shutil.rmtree(self.repo.root / ".git")
        self.most = most

    async def begin(self) -> None:
        git = make(self.repo.root, objects=self.ours)
        assert git is not None
        self.changes = SessionChanges(self.tree(git, max_whole=(self.most, 10**6)), edits_only=True)

    async def git_agrees(self) -> None:
        """There is no git to agree with: only what the agent told of is shown, and what lay below it in a folder."""
        shown = {path for change in await self.changes.session() for path in change.paths}
        assert all(self.told_ever & {path, *map(str, Path(path).parents)} for path in shown)


def _plain(change: FileChange) -> bool:
    """A file that was there before and is there still: git counts its lines without looking at renames."""
    return change.before is not None and change.after is not None and change.before.path == change.after.path


def test_a_record_is_stored_as_it_is_and_comes_back_equal() -> None:
    """Nothing is made for each file: there may be tens of thousands, and the event loop waits."""
    pair = (Side("old", "100644", "0" * 40), Side("new", "100755", "1" * 40))
    sums: dict[str, Pair] = {"new": pair, "old": (pair[0], None)}
    pieces: dict[str, list[Pair]] = {"new": [pair, (None, pair[1])]}
    record = Record(
        total=sums, between=pieces, chats={"chat": sums}, undone=[UndoRecord(sums, sums, pieces, {"c": sums})]
    )
    record.turns["t"] = TurnRecord("t", "before", others=pieces)
    stored = record.to_json()
    assert stored["total"]["new"] is pair
    assert Record.from_json(decode_own(encode(stored))) == record


def test_a_record_of_an_earlier_version_keeps_what_its_agent_reported() -> None:
    turn = {"turn_id": "t", "before": "b", "told": ["a"], "is_gone": True}
    assert Record.from_json({"turns": [turn]}).turns["t"] == TurnRecord("t", "b", reported=["a"])
