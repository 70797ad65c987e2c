"""One git work tree: takes checkpoints of its files, and lists what differs between two of them.

A checkpoint is a tree object in our own object directory, made through an index of ours. The user's index, refs and
objects are never written. Files that cannot be kept (too large, filtered in a directory that is not trusted, another
repository inside this one) are left out of it and named in `Checkpoint.left_out`.

It is long because a checkpoint and the comparison of two share one index and one rule for what is left out.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ahpkit.changes.attribution import COARSE
from ahpkit.changes.blobs import Blobs
from ahpkit.changes.git import DiskFullError, Git, GitError, fields_of, size_and_time
from ahpkit.changes.sides import LINK, SUBMODULE, FileChange, Side, same
from ahpkit.changes.verified_content import content, doubtful, has_content, look
from ahpkit.host.resources.safe_open import SafeOpener, anywhere

MAX_FILE = 16 * 1024 * 1024
"""The largest size of a file that is kept, in bytes. Larger files are shown as changed, but cannot be undone."""

MAX_WHOLE = (2_000, 64 * 1024 * 1024)
"""The largest number of files and bytes of a folder outside git that is kept as a whole before each turn."""

_AT_ONCE = 500
"""Paths on one command line."""

_REFRESH = ("-q", "--unmerged", "--really-refresh")
"""Lets git note which files are unchanged although they were touched. Otherwise it reads them each time."""

_UNREADABLE = 20
"""The largest number of files that git may fail to read in one look. With more, something else is wrong."""

_INNER_FILES = 2_000
"""The number of files of an inner repository that are examined to see whether something in it changed."""

_ODD = 500
"""The number of files in one look that git may store in another form. Further ones are left out."""

_KEPT = 5_000
"""The number of changes in remembered comparisons, about 3 MB. The latest comparison is kept whatever its size."""

_TREES = 4
"""The number of remembered trees of single files: the states before and after of two sessions."""

IGNORE_FILE = ".gitignore"

_numbers_of_indexes = itertools.count()


@dataclass(frozen=True)
class Checkpoint:
    """The files of a work tree at one moment."""

    tree: str
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path → why its content is not in the tree."""
    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path → size and time of a file that was left out. If they differ later, it was written."""


class WorkTree:
    """Checkpoints and comparisons of one work tree. They run one at a time, because all use the same index of ours."""

    def __init__(
        self,
        git: Git,
        *,
        shows: Callable[[Path], bool] = lambda _: True,
        writing: Callable[[], SafeOpener] = anywhere,
        max_file: int = MAX_FILE,
        max_whole: tuple[int, int] = MAX_WHOLE,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`shows`: files that clients must never see, such as the host's own, are not kept either. `writing` opens the
        files that an operation may write."""
        self.git = git
        self.root = git.work_tree
        self._shows = shows
        self.writing = writing
        self.clock = clock
        self._index = git.objects.parent / "index"
        self._max_file = max_file
        self._max_whole = max_whole
        self._lock = asyncio.Lock()
        self._tree = ""
        """The tree of our index, once it was written. Only checkpoints change the index."""
        self._their_stamp = (0, 0)
        """Size and time of the user's index when it was last read."""
        self._absent: Mapping[str, str] = {}
        """Files that a sparse checkout leaves out, with their lines for an index."""
        self.tracked_late: set[str] = set()
        """Files that came into our index because they were in the user's index. Git may have ignored them before."""
        self._compared: dict[tuple[str, str], list[FileChange]] = {}
        """Latest comparisons. A session's sum, its view and its turn's view ask for the same one."""

        self._made: dict[frozenset[Side], str] = {}
        """Files → the latest trees that were made of them, because the changes of earlier turns are shown with each new
        edit."""

    async def is_small(self) -> bool:
        """Whether there are few enough files to keep all of them quickly. Counting stops at the limit."""
        return await asyncio.to_thread(self._is_small)

    def _is_small(self) -> bool:
        files, size = self._max_whole
        folders = [str(self.root)]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        files -= 1
                        if entry.is_dir(follow_symlinks=False):
                            if self._shows(Path(entry.path)):
                                folders.append(entry.path)
                        elif (taken := entry.stat(follow_symlinks=False).st_size) <= self._max_file:
                            size -= taken
                        if files < 0 or size < 0:
                            return False
            except OSError:
                continue
        return True

    async def known(self) -> list[str]:
        """The files that the last checkpoint holds."""
        async with self._lock:
            await self._seed()
            return await self.git.lines("ls-files", "-z", "-c", index=self._index)

    async def head(self) -> str:
        """The tree of the last commit; the empty tree in a repository without commits."""
        answer = await self.git.run("rev-parse", "--verify", "--quiet", "HEAD^{tree}", check=False)
        return answer.decode().strip() or (await self.git.run("mktree")).decode().strip()

    async def checkpoint(self, paths: Collection[str] | None = None) -> Checkpoint:
        """The tree of the files as they are now. With `paths` only these are looked at since the last checkpoint."""
        async with self._lock:
            await self._seed()
            tracked = await self._newly_tracked()
            if paths is None:
                changed = await self.git.lines(
                    "ls-files", "-z", "-m", "-d", "-o", "--exclude-standard", index=self._index
                )
                elsewhere: dict[str, str] = {}
            else:
                elsewhere = await self.elsewhere(paths)
                changed = await self._not_ignored(sorted(set(paths) - elsewhere.keys()))
            changed = [*(path for path in changed if path.removesuffix("/") not in tracked), *tracked]
            keep, left_out = await self._sort(await asyncio.to_thread(self._shown, changed))
            left_out |= elsewhere
            there, gone = await asyncio.to_thread(self.there, keep)
            left_out |= await self._add(there, _REFRESH if paths is None else ())
            await self._update([path for path in gone if path not in self._absent], "--force-remove")
            await self._leave_out({path: self._absent[path] for path in gone if path in self._absent})
            if not self._tree:
                self._tree = (await self.git.run("write-tree", index=self._index)).decode().strip()
            return Checkpoint(self._tree, left_out, await asyncio.to_thread(self._marks, left_out))

    async def _newly_tracked(self) -> set[str]:
        """Files that the user's index has and ours does not. A user may add files to it that git ignores.

        What a sparse checkout leaves out is not there, and is taken over as the index has it. Outside git there is only
        our index.
        """
        if self.git.made_by_us:
            return set()
        stamp = await asyncio.to_thread(size_and_time, self.git.git_dir / "index")
        if stamp == self._their_stamp:
            return set()
        self._their_stamp = stamp
        theirs = await self.git.lines("ls-files", "-z", "-s", "-t")
        ours = await self.git.lines("ls-files", "-z", "-t", index=self._index)
        new, absent = await asyncio.to_thread(self._compare_indexes, theirs, ours)
        self.tracked_late.update(new)
        await self._leave_out({path: line for path, line in absent.items() if path not in self._absent})
        self._absent = absent
        return new

    async def _leave_out(self, absent: Mapping[str, str]) -> None:
        """Add files to our index that do not exist because a sparse checkout leaves them out."""
        if absent:
            entries = os.fsencode("".join(f"{entry}\0" for entry in absent.values()))
            await self.git.run("update-index", "-z", "--index-info", stdin=entries, index=self._index)
            await self._update([*absent], "--skip-worktree")

    def was_left_out(self, side: Side) -> bool:
        """Whether a file with this content did not exist because a sparse checkout left it out."""
        return self._absent.get(side.path, "").startswith(f"{side.mode} {side.oid} ")

    async def is_left_out(self, path: str) -> bool:
        """Whether the user's index says now that a sparse checkout leaves a file out."""
        return any(line.startswith("S ") for line in await self.git.lines("ls-files", "-z", "-t", "--", path))

    def _compare_indexes(self, theirs: Sequence[str], ours: Sequence[str]) -> tuple[set[str], dict[str, str]]:
        """Files that only the user's index has; and what a sparse checkout leaves out, with its lines for an index."""
        known = {line[2:] for line in ours}
        entries = {line.partition("\t")[2]: line for line in theirs}
        skipped = [path for path, line in entries.items() if line[0] == "S"]
        absent = {path: entries[path][2:] for path in self.there(skipped)[1]}
        return entries.keys() - known - absent.keys(), absent

    async def _add(self, paths: Sequence[str], refresh: Sequence[str]) -> dict[str, str]:
        """Add files to our index. Returns the files that cannot be added, and why. The others are added all the
        same."""
        before = await asyncio.to_thread(look, self.root, paths, self.clock())
        unreadable = await self._add_all(paths, refresh)
        doubted = await asyncio.to_thread(doubtful, self.root, paths, before, self.clock())
        gone = await self._read_again([path for path in doubted if path not in unreadable])
        await self._update(gone, "--force-remove")
        return unreadable | dict.fromkeys(gone, "changed while it was read")

    async def _read_again(self, paths: Sequence[str]) -> list[str]:
        """Put the true content of files into our index if git read something else. Returns the files without
        content."""
        odd: list[tuple[str, str]] = []
        for start in range(0, len(paths), _AT_ONCE):
            some = paths[start : start + _AT_ONCE]
            staged = await self.git.lines("ls-files", "-s", "-z", "--", *some, index=self._index)
            odd += await asyncio.to_thread(self._differing, staged)
        return [path for number, (path, mode) in enumerate(odd) if number >= _ODD or not await self._keep(path, mode)]

    def _differing(self, staged: Sequence[str]) -> list[tuple[str, str]]:
        """The files in lines of `ls-files -s` whose bytes differ from their blobs, with their modes."""
        found: list[tuple[str, str]] = []
        for about, _, path in (line.partition("\t") for line in staged):
            mode, oid, _ = about.split(" ")
            if mode != SUBMODULE and not has_content(self.root, path, oid):
                found.append((path, mode))
        return found

    async def _keep(self, path: str, mode: str) -> bool:
        """Store what a file holds now, as git stores it: with other line ends, for example."""
        data = await asyncio.to_thread(content, self.root, path, mode == LINK)
        if data is None or len(data) > self._max_file:
            return False
        self._tree = ""
        entry = os.fsencode(f"{mode} {await self.keep(data, path, mode)}\t{path}\0")
        await self.git.run("update-index", "-z", "--index-info", stdin=entry, index=self._index)
        return True

    async def _add_all(self, paths: Sequence[str], refresh: Sequence[str]) -> dict[str, str]:
        unreadable: dict[str, str] = {}
        waiting = [paths]
        while waiting:
            some = waiting.pop()
            try:
                await self._update(some, *refresh, "--add", "--remove", "--replace")
            except DiskFullError:
                raise
            except GitError:
                if len(some) == 1:
                    unreadable[some[0]] = "git cannot read it"
                else:
                    half = len(some) // 2
                    waiting += [some[:half], some[half:]]
                if len(unreadable) > _UNREADABLE:
                    raise
        return unreadable

    async def _update(self, paths: Sequence[str], *options: str) -> None:
        if paths:
            self._tree = ""
            stdin = b"\0".join(map(os.fsencode, paths)) + b"\0"
            await self.git.run("update-index", *options, "-z", "--stdin", stdin=stdin, index=self._index)

    def there(self, paths: Sequence[str]) -> tuple[list[str], list[str]]:
        """The files that exist, and those that do not. Files behind a link are not in this work tree."""
        folders: dict[str, bool] = {"": True}

        def real(folder: str) -> bool:
            if folder not in folders:
                above = folder.rpartition("/")[0]
                folders[folder] = real(above) and stat.S_ISDIR(_mode(self.root / folder))
            return folders[folder]

        there: list[str] = []
        gone: list[str] = []
        for path in paths:
            mode = _mode(self.root / path) if real(path.rpartition("/")[0]) else 0
            (there if mode and (not stat.S_ISDIR(mode) or _is_repository(self.root / path)) else gone).append(path)
        return there, gone

    async def elsewhere(self, paths: Collection[str]) -> dict[str, str]:
        """Named files that lie in a submodule or another repository, with that as the reason to leave them out."""
        return await asyncio.to_thread(self._elsewhere, paths) if paths else {}

    def _elsewhere(self, paths: Collection[str]) -> dict[str, str]:
        inner: dict[str, bool] = {}

        def is_inner(folder: str) -> bool:
            if not folder:
                return False
            if folder not in inner:
                inner[folder] = _is_repository(self.root / folder) or is_inner(folder.rpartition("/")[0])
            return inner[folder]

        return {path: "in a repository of its own" for path in paths if is_inner(path.rpartition("/")[0])}

    def _marks(self, paths: Iterable[str]) -> dict[str, str]:
        """Path → a text that differs after the path has changed; empty for a repository with very many files."""
        found: dict[str, str] = {}
        left = _INNER_FILES
        for path in paths:
            is_folder = path.endswith("/")
            files = list(itertools.islice(_inside(self.root / path), left)) if is_folder else [self.root / path]
            left -= len(files) if is_folder else 0
            try:
                found[path] = "" if is_folder and not left else _mark(files)
            except (OSError, ValueError):
                found[path] = ""
        return found

    async def _seed(self) -> None:
        """Start from the user's index: it knows which files have not been touched since git last looked.

        A lock of our index is left over from a git that was killed: we run one at a time.
        """
        await asyncio.to_thread(self._index.with_name("index.lock").unlink, missing_ok=True)
        if self._index.exists():
            return
        self._tree = ""
        theirs = self.git.git_dir / "index"
        draft = self._index.with_suffix(".new")
        if await asyncio.to_thread(theirs.exists):
            await asyncio.to_thread(_copy_index, theirs, draft)
            await self.git.run("update-index", *_REFRESH, index=draft, check=False)
            await self._watch_all(draft)
            await asyncio.to_thread(draft.replace, self._index)
        else:
            await self.git.run("read-tree", "--empty", index=self._index)

    async def _watch_all(self, index: Path) -> None:
        """Let git look also at files that a person marked to be skipped, because an agent may write them.

        Files that a sparse checkout leaves out are marked in the same way, and do not exist.
        """
        files = await self.git.lines("ls-files", "-z", "-v", index=index)
        skipped = await asyncio.to_thread(self.there, [name[2:] for name in files if name[0] in "Ss"])
        marks = {"assume-unchanged": [name[2:] for name in files if name[0].islower()], "skip-worktree": skipped[0]}
        for mark, paths in marks.items():
            if paths:
                stdin = b"\0".join(map(os.fsencode, paths)) + b"\0"
                await self.git.run("update-index", f"--no-{mark}", "-z", "--stdin", stdin=stdin, index=index)

    async def tracked(self, paths: Collection[str]) -> set[str]:
        """The paths among these that are in the user's index."""
        found: set[str] = set()
        ordered = sorted(paths)
        for start in range(0, len(ordered), _AT_ONCE):
            found.update(await self.git.lines("ls-files", "-z", "--", *ordered[start : start + _AT_ONCE]))
        return found

    async def ignored(self, paths: Collection[str]) -> set[str]:
        """The paths among these that git ignores now. Files in the user's index are never ignored."""
        if not paths:
            return set()
        only = sorted(paths) if len(paths) <= _AT_ONCE else ()  # None: all that git ignores.
        return set(paths).intersection(
            await self.git.lines("ls-files", "-z", "-o", "-i", "--exclude-standard", "--", *only)
        )

    async def match_ignored(self, paths: Collection[str], tree: str) -> set[str]:
        """The paths among these that match the ignore files of a tree, or the present ones, whether they are tracked or
        not."""
        if not paths:
            return set()
        lines = (line.partition("\t") for line in await self.git.lines("ls-tree", "-r", "-z", tree))
        rules = [
            Side(path, *about.split(" ")[::2]) for about, _, path in lines if os.path.basename(path) == IGNORE_FILE
        ]
        with tempfile.TemporaryDirectory(prefix="ahpkit-rules-") as place:
            for path in paths:
                await asyncio.to_thread(_write_below, Path(place), path, b"")
            for rule in rules:
                await asyncio.to_thread(_write_below, Path(place), rule.path, await self.read(rule, on_disk_form=False))
            ask = ("ls-files", "-z", "-o", "-i", "--exclude-standard")
            none = self._index.with_name("index-none")  # With an empty index nothing is tracked.
            then = await replace(self.git, work_tree=Path(place)).lines(*ask, index=none)
            now = await self.git.lines(*ask, "--", *(sorted(paths) if len(paths) <= _AT_ONCE else ()), index=none)
        return set(paths).intersection([*then, *now])

    def written_at(self, paths: Iterable[str], since: int = 0) -> dict[str, int | None]:
        """When files were last written or moved, in nanoseconds; None for files that do not exist and for other
        repositories.

        If a file appeared `since` a time but is older itself, it came with a folder that was moved.
        """
        found: dict[str, int | None] = {}
        for path in paths:
            found[path] = None
            with suppress(OSError, ValueError):
                at = os.lstat(self.root / path).st_ctime_ns
                if not _is_repository(self.root / path):  # The time of a commit in a submodule is not known.
                    found[path] = at if at >= since - COARSE else max(at, self._moved_at(path))
        return found

    def _moved_at(self, path: str) -> int:
        """The latest time of the folders above a file, in nanoseconds."""
        folders = [folder for folder in Path(path).parents if folder.name]
        return max((os.lstat(self.root / folder).st_ctime_ns for folder in folders), default=0)

    def moved_with_folder(self, change: FileChange, since: int) -> bool:
        """Whether a file is unchanged but in a folder that was moved `since` a time, so that its old folder is gone."""
        before, after = change.before, change.after
        if before is None or after is None or before.path == after.path or not same(before, after):
            return False
        folder = before.path.rpartition("/")[0]
        if not folder or os.path.lexists(self.root / folder):
            return False
        with suppress(OSError, ValueError):
            return self._moved_at(after.path) >= since - COARSE
        return False

    def older(self, paths: Iterable[str], than: int) -> set[str]:
        """The files among these that nobody wrote or moved since a time, in nanoseconds."""
        return {path for path, at in self.written_at(paths).items() if at is not None and at < than - COARSE}

    async def _not_ignored(self, paths: Sequence[str]) -> list[str]:
        """The named paths that a full look would see: tracked files, and new files that are not ignored."""
        found: list[str] = []
        for start in range(0, len(paths), _AT_ONCE):
            some = paths[start : start + _AT_ONCE]
            found += await self.git.lines(
                "ls-files", "-z", "-c", "-o", "--exclude-standard", "--", *some, index=self._index
            )
        return found

    def _shown(self, paths: Iterable[str]) -> list[str]:
        return sorted(path for path in set(paths) if self._shows(self.root / path))

    async def _sort(self, paths: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        left_out = await asyncio.to_thread(self._unfit, paths)
        rest = [path for path in paths if path not in left_out]
        declared = self.git.declared
        if declared.filters and not declared.run and rest:
            stdin = b"\0".join(map(os.fsencode, rest)) + b"\0"
            fields = await self.git.lines("check-attr", "-z", "--stdin", "filter", stdin=stdin, index=self._index)
            for path, value in zip(fields[0::3], fields[2::3], strict=True):
                if value in declared.filters:
                    left_out[path] = "not compared"
        return [path for path in rest if path not in left_out], left_out

    def _unfit(self, paths: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in paths:
            try:
                status = os.lstat(self.root / path)
            except (OSError, ValueError):
                continue
            if path.endswith("/"):
                found[path] = "another repository"
            elif stat.S_ISREG(status.st_mode) and status.st_size > self._max_file:
                found[path] = "too large"
            elif not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                found[path] = "not a file"
        return found

    async def uncommitted(self) -> tuple[list[FileChange], Mapping[str, str]]:
        """The present differences from the last commit; and the files that were left out, with the reasons."""
        checkpoint, head = await self.checkpoint(), await self.head()
        changes = await self.compare(head, checkpoint.tree)
        new = {change.path for change in changes if change.before is None or change.before.path != change.path}
        if ignored := await self.ignored(new):  # They were taken into checkpoints before git was told to ignore them.
            changes = await self.compare(head, await self.tree_with(checkpoint.tree, dict.fromkeys(ignored)))
        return changes, checkpoint.left_out

    async def compare(self, before: str, after: str, paths: Collection[str] | None = None) -> list[FileChange]:
        """The differences between two trees, with renames and line counts."""
        if before == after:
            return []
        if paths is not None:
            return await self._compare(before, after, paths)
        if (before, after) not in self._compared:
            self._compared[before, after] = await self._compare(before, after)
            self._forget_old_comparisons()
        return list(self._compared[before, after])

    def _forget_old_comparisons(self) -> None:
        while len(self._compared) > 1 and sum(map(len, self._compared.values())) > _KEPT:
            del self._compared[next(iter(self._compared))]

    async def _compare(self, before: str, after: str, paths: Collection[str] | None = None) -> list[FileChange]:
        options = ("-r", "-z", "-M", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--no-abbrev")
        limit = ("--", *sorted(paths)) if paths is not None and len(paths) <= 200 else ()
        data = await self.git.run("diff-tree", *options, "--raw", "--numstat", before, after, *limit)
        return await asyncio.to_thread(_read_changes, data, paths)  # There may be very many.

    async def sides(self, tree: str, paths: Collection[str]) -> dict[str, Side]:
        """The content of a tree at some paths."""
        found: dict[str, Side] = {}
        ordered = await asyncio.to_thread(sorted, paths)
        for start in range(0, len(ordered), _AT_ONCE):
            data = await self.git.run("ls-tree", "-z", tree, "--", *ordered[start : start + _AT_ONCE])
            found |= await asyncio.to_thread(_read_sides, data)
        return found

    async def read(self, side: Side, *, on_disk_form: bool = True) -> bytes:
        """The bytes of a file in a tree; `on_disk_form`: with the line ends it has in the work tree."""
        async with Blobs(self.git) as blobs:
            return await blobs.read(side, on_disk_form=on_disk_form)

    async def tree_of(self, sides: Collection[Side]) -> str:
        """A tree that holds exactly these files."""
        key = await asyncio.to_thread(frozenset, sides)
        if key not in self._made:
            self._made[key] = await self._make_tree(await asyncio.to_thread(_index_lines, sides))
            while len(self._made) > _TREES:
                del self._made[next(iter(self._made))]
        return self._made[key]

    async def tree_with(self, tree: str, sides: Mapping[str, Side | None]) -> str:
        """A tree with other files at some paths; None: with no file there."""
        none = f"0 {'0' * len(tree)}"
        lines = (f"{none if side is None else f'{side.mode} {side.oid}'}\t{path}\0" for path, side in sides.items())
        return await self._make_tree(os.fsencode("".join(lines)), base=tree)

    async def _make_tree(self, entries: bytes, *, base: str = "") -> str:
        """A tree of what is in `base`, if it is given, and of entries in the form of `--index-info`."""
        index = self._index.with_name(f"index-{next(_numbers_of_indexes)}")
        try:
            if base:
                await self.git.run("read-tree", base, index=index)
            if entries:  # An index that is not there is an empty one.
                await self.git.run("update-index", "-z", "--index-info", stdin=entries, index=index)
            return (await self.git.run("write-tree", "--missing-ok", index=index)).decode().strip()
        finally:
            await asyncio.to_thread(index.unlink, missing_ok=True)

    async def keep(self, data: bytes, path: str, mode: str, *, as_is: bool = False) -> str:
        """Store the bytes of a file as a blob of ours, as git stores them or `as_is`; returns its name."""
        form = ("--no-filters",) if as_is or mode == LINK else (f"--path={path}",)
        oid = await self.git.run("hash-object", "-w", "--stdin", *form, stdin=data, index=self._index)
        return oid.decode().strip()

    def in_progress(self) -> str | None:
        """The operation that git is in the middle of, in words, or None."""
        states = {
            "MERGE_HEAD": "a merge",
            "CHERRY_PICK_HEAD": "a cherry-pick",
            "REVERT_HEAD": "a revert",
            "rebase-merge": "a rebase",
            "rebase-apply": "a rebase",
            "BISECT_LOG": "a bisect",
        }
        return next((words for name, words in states.items() if (self.git.git_dir / name).exists()), None)


def _inside(folder: Path) -> Iterator[Path]:
    """The files of another repository, without git's own."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        yield from (Path(place, name) for name in sorted(files))


def _mark(files: Iterable[Path]) -> str:
    found = [(os.fsencode(path), status.st_size, status.st_mtime_ns) for path in files for status in [os.lstat(path)]]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _write_below(top: Path, path: str, data: bytes) -> None:
    with suppress(OSError):  # A file is in the way of a folder, or the other way round.
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(data)


def _copy_index(theirs: Path, ours: Path) -> None:
    """Copy an index with its time. With a newer time git would take files for unchanged that were written with the same
    size in the same second as the original."""
    with theirs.open("rb") as source:
        status = os.fstat(source.fileno())
        ours.write_bytes(source.read())
    os.utime(ours, ns=(status.st_atime_ns, status.st_mtime_ns))


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0


def _is_repository(folder: Path) -> bool:
    """Whether an entry is a submodule, the only kind of folder that has its own entry."""
    return os.path.lexists(folder / ".git")


def _index_lines(sides: Collection[Side]) -> bytes:
    return b"".join(os.fsencode(f"{side.mode} {side.oid}\t{side.path}\0") for side in sides)


def _read_sides(data: bytes) -> dict[str, Side]:
    """The output of `ls-tree -z`, without folders."""
    found: dict[str, Side] = {}
    for line in fields_of(data):
        about, _, path = line.partition("\t")
        mode, kind, oid = about.split(" ")
        if kind != "tree":
            found[path] = Side(path, mode, oid)
    return found


def _read_changes(data: bytes, paths: Collection[str] | None) -> list[FileChange]:
    """The output of `diff-tree --raw --numstat -z`, of some paths or of all."""
    changes, rest = _raw([os.fsdecode(part) for part in data.split(b"\0")])
    numbers, wanted = _numbers(rest), None if paths is None else set(paths)
    changes = [_with_counts(change, numbers) for change in changes]
    return [change for change in changes if wanted is None or change.paths & wanted]


def _raw(fields: Sequence[str]) -> tuple[list[FileChange], Sequence[str]]:
    """`--raw -z`: `:mode mode oid oid status` then one path, or two for a rename. Returns what follows as well."""
    changes: list[FileChange] = []
    at = 0
    while at < len(fields) and fields[at].startswith(":"):
        old_mode, new_mode, old, new, status = fields[at].removeprefix(":").split(" ")
        first = fields[at + 1]
        second = fields[at + 2] if status[0] in "RC" else first
        at += 3 if status[0] in "RC" else 2
        before = None if status[0] in "AC" else Side(first, old_mode, old)
        after = None if status[0] == "D" else Side(second, new_mode, new)
        changes.append(FileChange(before, after))
    return changes, fields[at:]


def _numbers(fields: Sequence[str]) -> dict[str, tuple[int | None, int | None]]:
    """`--numstat -z` by path after the change. A rename has an empty path and two more fields."""
    found: dict[str, tuple[int | None, int | None]] = {}
    at = 0
    while at < len(fields) and fields[at]:
        added, removed, path = fields[at].split("\t", 2)
        if path:
            at += 1
        else:
            path = fields[at + 2]
            at += 3
        found[path] = (None, None) if added == "-" else (int(added), int(removed))
    return found


def _with_counts(change: FileChange, numbers: Mapping[str, tuple[int | None, int | None]]) -> FileChange:
    added, removed = numbers.get(change.path, (None, None))
    return FileChange(change.before, change.after, added, removed)


__all__ = ["IGNORE_FILE", "Checkpoint", "WorkTree"]
