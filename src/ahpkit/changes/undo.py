"""Takes back a session's changes to files, without touching what somebody else wrote.

For every file three versions matter: before the session, after it, and now. A file that is still as the session left it
is restored. A file that was changed since is merged if git can do that without a conflict; otherwise it is left alone,
and the outcome says so. If others changed a file in between, the session's changes are removed one by one, the latest
first.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar

from ahpkit.changes.blobs import Blobs
from ahpkit.changes.git import GitError
from ahpkit.changes.sides import EXECUTABLE, LINK, SUBMODULE, FileChange, Pair, Side, own_steps, same
from ahpkit.changes.verified_content import content, is_blob
from ahpkit.changes.work_tree import WorkTree
from ahpkit.host.resources.safe_open import Entry, SafeOpener, reach
from ahpkit.host.resources.sealed import leads_to_sealed, why_sealed
from ahpkit.platform.files import CLOSE_ON_EXEC, NO_FOLLOW
from ahpkit.protocol.errors import RpcError

T = TypeVar("T")

_AT_ONCE = 500
"""The number of files that are handled in one step of the event loop."""


class Step(Enum):
    """The work that an undo has to do for one path."""

    NOTHING = "nothing"
    """The file is already as it was before the session."""
    RESTORE = "restore"
    """The file is as the session left it: restore the earlier version, or remove the file."""
    MERGE = "merge"
    """Somebody has changed the file since: remove only the session's changes."""


@dataclass
class Outcome:
    """The result of an undo."""

    undone: list[str] = field(default_factory=list[str])
    left: dict[str, str] = field(default_factory=dict[str, str])
    """Path → why it was left alone."""
    was: dict[str, Side | None] = field(default_factory=dict[str, "Side | None"])
    """Undone path → the file before the undo."""
    became: dict[str, Side | None] = field(default_factory=dict[str, "Side | None"])
    """Undone path → the file that the undo made of it. Somebody may have written it again since."""
    back: dict[str, Side | None] = field(default_factory=dict[str, "Side | None"])
    """Path → the present file, if it already contained nothing of the session's changes."""
    raw: dict[str, str] = field(default_factory=dict[str, str])
    """Path → the blob with the file's exact bytes before the undo, if git stores the file with other bytes; empty: git
    has to make them."""
    guessed: list[str] = field(default_factory=list[str])
    """Undone paths of files whose writer is not known."""

    def describe(self, did: str = "Undid", nothing: str = "Nothing was undone.") -> str:
        """The result in a few sentences for a person."""
        sentences = [f"{did} {count_files(len(self.undone))}." if self.undone else nothing]
        if self.back and not self.undone:
            sentences.append(f"{count_files(len(self.back)).capitalize()} had been put back already.")
        if self.guessed:
            sentences.append(f"It is not known who wrote {_some(self.guessed, ', ')}; redo brings the content back.")
        if self.left:
            sentences.append(f"Left alone: {_some([f'{path}: {why}' for path, why in self.left.items()], '; ')}.")
        return " ".join(sentences)


def _some(texts: Sequence[str], between: str) -> str:
    more = f" and {len(texts) - 10} more" if len(texts) > 10 else ""
    return f"{between.join(texts[:10])}{more}"


def decide(before: Side | None, after: Side | None, now: Side | None) -> Step:
    """The step that undoes the changes to one path."""
    if same(now, before):
        return Step.NOTHING
    return Step.RESTORE if same(now, after) else Step.MERGE


class MixedChanges(Exception):
    """The changes of the session and of others cannot be separated."""


Mark = tuple[int, ...] | None
"""The state of a file in the file system; None if it does not exist.

It is taken before the content is read. If it differs when the file is about to be replaced, somebody wrote or replaced
the file meanwhile, and it is left alone.
"""


async def undo(
    tree: WorkTree,
    changes: Sequence[FileChange],
    *,
    only: Collection[str] | None = None,
    between: Mapping[str, Sequence[Pair]] | None = None,
    doubts: Mapping[str, str] | None = None,
    exact: Mapping[str, str] | None = None,
    before_writing: Callable[[Outcome], Awaitable[None]] | None = None,
) -> Outcome:
    """Take changes back. `only`: the paths that a person chose. `between`: what others changed between the first and
    the last of these changes. `doubts`: paths that others may have written, and why that is not known. `exact`: the
    bytes of the files before, as `Outcome.raw` of an earlier undo has them. `before_writing` gets what is about to be
    undone, before the first file is written."""
    meant = await asyncio.to_thread(versions, changes, only)  # There may be very many.
    outcome = Outcome()
    marks = await asyncio.to_thread(_marks, tree.root, meant)
    now, unknown = await _now(tree, set(meant))
    outcome.left |= {path: f"its present content cannot be compared ({why})" for path, why in unknown.items()}
    outcome.left |= {path: why for path, why in (doubts or {}).items() if path in meant}
    async with Blobs(tree.git) as blobs:
        order = await asyncio.to_thread(_in_order, meant.keys() - outcome.left.keys(), meant)
        async for path in unhurried(order):
            steps = own_steps(meant[path], (between or {}).get(path, ()))
            with _leaving(path, outcome):
                await _plan(tree, blobs, path, steps, now.get(path), outcome)
        if before_writing is not None:
            await before_writing(outcome)
        async for path in unhurried(list(outcome.was)):
            as_it_was = exact is not None and same(outcome.became[path], meant[path][0])
            with _leaving(path, outcome):
                await _write(tree, blobs, path, marks[path], outcome, (exact or {}).get(path) if as_it_was else "")
    for change in changes:
        if change.note and (only is None or change.path in only):
            outcome.left[change.path] = f"its earlier content was not kept ({change.note})"
    return outcome


async def unhurried(paths: Iterable[str]) -> AsyncIterator[str]:
    """Iterates over paths. There may be very many, so other tasks run in between."""
    for number, path in enumerate(paths):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
        yield path


@contextmanager
def _leaving(path: str, outcome: Outcome) -> Generator[None]:
    """A file that cannot be undone is left alone, and the outcome says why."""
    try:
        yield
    except MixedChanges:
        outcome.left[path] = "it was changed after the session wrote it"
    except OSError as error:
        outcome.left[path] = (error.strerror or str(error)).lower()
    except (GitError, RpcError) as error:
        outcome.left[path] = str(error)


def versions(changes: Iterable[FileChange], only: Collection[str] | None) -> dict[str, Pair]:
    """The states before and after of each path. A rename counts as a removal and a creation."""
    found: dict[str, Pair] = {}
    chosen = None if only is None else set(only)
    for change in changes:
        if change.note or (chosen is not None and chosen.isdisjoint(change.paths)):
            continue
        for path in change.paths:
            before = change.before if change.before and change.before.path == path else None
            after = change.after if change.after and change.after.path == path else None
            found[path] = (before, after)
    return found


def _in_order(paths: Collection[str], meant: Mapping[str, Pair]) -> list[str]:
    """Paths that are removed come first: a file that is restored may need the place of a folder. Then come the files
    that determine in which form others are restored."""
    return sorted(paths, key=lambda path: (meant[path][0] is not None, not _is_attributes_file(path), path))


def _is_attributes_file(path: str) -> bool:
    """Whether a file determines in which form git writes others into the work tree."""
    return os.path.basename(path) == ".gitattributes"


async def _now(tree: WorkTree, paths: set[str]) -> tuple[Mapping[str, Side], Mapping[str, str]]:
    """The files as they are now; and the files whose present content is not known, with the reasons."""
    checkpoint = await tree.checkpoint(paths)
    now = await tree.sides(checkpoint.tree, paths)
    there = await asyncio.to_thread(lambda: [path for path in paths - now.keys() if _is_file(tree, path)])
    ignored = dict.fromkeys(there, "git ignores it")
    return now, {**ignored, **{path: why for path, why in checkpoint.left_out.items() if path in paths}}


def _marks(root: Path, paths: Iterable[str]) -> dict[str, Mark]:
    """The present marks of some paths."""
    found: dict[str, Mark] = {}
    for path in paths:
        try:
            found[path] = _mark(os.lstat(root / path))
        except (OSError, ValueError):
            found[path] = None
    return found


def _mark(status: os.stat_result) -> Mark:
    """The time of the last change of the inode is left out: it also changes when another link to the file goes."""
    if stat.S_ISDIR(status.st_mode):
        return None
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns


def _is_file(tree: WorkTree, path: str) -> bool:
    """Whether something other than a folder exists at this path. A path that leads through a link does not count."""
    try:
        return _at(tree, path, lambda entry: not stat.S_ISDIR(entry.stat().st_mode))
    except (OSError, RpcError):
        return False


async def _plan(
    tree: WorkTree, blobs: Blobs, path: str, steps: Sequence[Pair], now: Side | None, outcome: Outcome
) -> None:
    """Find out what a file has to become, and keep the bytes that it has."""
    if (why := why_left(tree.root / path, steps[0][0])) is not None:
        outcome.left[path] = why
        return
    if SUBMODULE in {side.mode for side in (now, *(side for step in steps for side in step)) if side is not None}:
        outcome.left[path] = "it is a submodule; use git in it"
        return
    wanted = await without(tree, blobs, steps, now)
    if same(wanted, now):
        outcome.back[path] = now
        return
    taken = await _bytes_to_keep(tree, blobs, now, await _held(tree, path, now))
    outcome.was[path], outcome.became[path] = now, wanted
    if taken is not None:
        outcome.raw[path] = taken


async def _write(tree: WorkTree, blobs: Blobs, path: str, mark: Mark, outcome: Outcome, exact: str | None) -> None:
    """Put a file back. `exact`: the blob with the bytes that it had then; None: git stores them as they are; empty: git
    has to make them."""
    now, wanted = outcome.was[path], outcome.became[path]
    held = await _held(tree, path, now)
    if wanted is None or tree.was_left_out(wanted):
        await asyncio.to_thread(remove_file, tree, path, mark)
        mark = None
    # Git takes an existing file back into a sparse checkout, so its index is asked after the file was removed.
    if wanted is not None and not (tree.was_left_out(wanted) and await tree.is_left_out(path)):
        if exact == "":
            data = await _with_its_line_ends(tree, blobs, wanted, now, held)
        else:
            data = await blobs.read(wanted._replace(oid=exact or wanted.oid), on_disk_form=False)
        await asyncio.to_thread(write_file, tree, path, data, wanted.mode, mark)
    if _is_attributes_file(path):
        await blobs.begin_anew()
    outcome.undone.append(path)


async def _held(tree: WorkTree, path: str, now: Side | None) -> bytes | None:
    """The present bytes of a file; None if there is none, or a link."""
    is_file = now is not None and now.mode != LINK
    return await asyncio.to_thread(content, tree.root, path, False) if is_file else None


async def _bytes_to_keep(tree: WorkTree, blobs: Blobs, now: Side | None, held: bytes | None) -> str | None:
    """A blob with the bytes of a file that is about to be replaced; None if git stores them as they are. Empty if more
    than the line ends differs: then a filter makes the file's content, and the host must not keep it."""
    if now is None or held is None or await asyncio.to_thread(is_blob, held, now.oid):
        return None
    if await _is_filtered(blobs, now, held):
        return ""
    return await tree.keep(held, now.path, now.mode, as_is=True)


async def _is_filtered(blobs: Blobs, now: Side, held: bytes) -> bool:
    """Whether git's stored form of a file differs in more than line ends."""
    stored = await blobs.read(now, on_disk_form=False)
    return await asyncio.to_thread(lambda: _plain(stored) != _plain(held))


async def _with_its_line_ends(
    tree: WorkTree, blobs: Blobs, wanted: Side, now: Side | None, held: bytes | None
) -> bytes:
    """The bytes of a file that is restored. If git does not know which line ends it had, it keeps the present ones."""
    data = await blobs.read(wanted)
    if now is None or held is None:
        return data
    if await asyncio.to_thread(lambda: is_blob(held, now.oid) and is_blob(data, wanted.oid)):
        return data
    if await _is_filtered(blobs, now, held):
        return data
    alike = await asyncio.to_thread(with_line_ends, data, held)
    return alike if await tree.keep(alike, wanted.path, wanted.mode) == wanted.oid else data


def with_line_ends(text: bytes, of: bytes) -> bytes:
    """A text with the line ends of another text. Lines at the beginning or end that both texts share get the line ends
    of the other text; the lines in between get its most common line end."""
    *lines, rest = _plain(text).split(b"\n")
    others = of.split(b"\n")[:-1]
    bare = [line.removesuffix(b"\r") for line in others]
    usual = b"\r" if 2 * sum(line.endswith(b"\r") for line in others) > len(others) else b""
    shared = min(len(lines), len(others))
    first = next((at for at in range(shared) if lines[at] != bare[at]), shared)
    last = next((at for at in range(shared - first) if lines[-1 - at] != bare[-1 - at]), shared - first)
    middle = [line + usual for line in lines[first : len(lines) - last]]
    return b"\n".join([*others[:first], *middle, *others[len(others) - last :], rest])


def _plain(text: bytes) -> bytes:
    """A text with plain line ends."""
    return text.replace(b"\r\n", b"\n")


async def without(tree: WorkTree, blobs: Blobs, steps: Sequence[Pair], now: Side | None) -> Side | None:
    """The content of a file without a session's changes. The latest change is taken out first."""
    for before, after in reversed(steps):
        match decide(before, after, now):
            case Step.NOTHING:
                pass
            case Step.RESTORE:
                now = before
            case Step.MERGE:
                now = await _merged(tree, blobs, before, after, now)
    return now


def why_left(path: Path, new: Side | None) -> str | None:
    """Why a person has to change a file by hand to the new content; None if the host may write it."""
    if (what := why_sealed(path)) is not None:
        return f"it is {what}; change it yourself"
    if new is not None and new.mode == LINK and leads_to_sealed(path):
        return "it would be a link where files that can cause execution belong; change it yourself"
    return None


async def _merged(tree: WorkTree, blobs: Blobs, before: Side | None, after: Side | None, now: Side | None) -> Side:
    """The present file without the changes from `before` to `after`, if that can be computed with certainty."""
    if before is None or after is None or now is None or LINK in (before.mode, after.mode, now.mode):
        raise MixedChanges
    texts = [await blobs.read(side) for side in (now, after, before)]
    if any(b"\0" in text for text in texts):
        raise MixedChanges
    with tempfile.TemporaryDirectory(prefix="ahpkit-merge-") as place:
        files = [Path(place) / name for name in ("now", "after", "before")]
        for file, text in zip(files, texts, strict=True):
            file.write_bytes(text)
        try:
            merged = await tree.git.run("merge-file", "-p", "-q", *map(str, files))
        except GitError:  # The number of conflicts is its exit code.
            raise MixedChanges from None
    mode = before.mode if now.mode == after.mode else now.mode
    return Side(now.path, mode, await tree.keep(merged, now.path, mode))


def write_file(tree: WorkTree, path: str, data: bytes, mode: str, mark: Mark) -> None:
    """Put a file into the work tree in one step, unless what is there differs from its mark. No link on the way is
    followed.

    The permissions of an existing file do not change, because git does not store them.
    """

    def write(entry: Entry) -> None:
        folder, name = entry.folder, entry.name
        draft = f".{name[:100]}.ahpkit-undo-{os.getpid()}"
        try:
            if mode == LINK:
                os.symlink(os.fsdecode(data), draft, dir_fd=folder)
            else:
                _write_draft(draft, folder, data, mode, _rights(name, folder, mode))
            _check_mark(entry, mark)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _unlink(draft, folder)
            raise

    _at(tree, path, write, make=True)


def _write_draft(draft: str, folder: int, data: bytes, mode: str, kept: int | None) -> None:
    rights = 0o755 if mode == EXECUTABLE else 0o644
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
    with open(os.open(draft, flags, rights if kept is None else 0o600, dir_fd=folder), "wb") as file:
        if kept is not None:
            os.fchmod(file.fileno(), kept)
        file.write(data)


def _rights(name: str, folder: int, mode: str) -> int | None:
    """The permissions for a file: its present ones, with git's executable bit. None: there is no such file."""
    try:
        status = os.lstat(name, dir_fd=folder)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    rights = stat.S_IMODE(status.st_mode) & 0o777
    if mode != EXECUTABLE:
        return rights & ~0o111
    return rights if rights & 0o100 else rights | (rights & 0o444) >> 2


def remove_file(tree: WorkTree, path: str, mark: Mark) -> None:
    """Remove a file, unless it differs from its mark, and then the folders above it that became empty."""

    def remove(entry: Entry) -> None:
        _check_mark(entry, mark)
        os.unlink(entry.name, dir_fd=entry.folder)

    _at(tree, path, remove)
    with suppress(OSError, RpcError):
        while "/" in path:
            path = path.rsplit("/", 1)[0]
            _at(tree, path, lambda entry: os.rmdir(entry.name, dir_fd=entry.folder))


def _check_mark(entry: Entry, mark: Mark) -> None:
    """Raise if somebody wrote, replaced or removed a file since its mark was taken."""
    try:
        present = _mark(entry.stat())
    except FileNotFoundError:
        present = None
    if present != mark:
        raise OSError("it was changed while the undo ran")


def _at(tree: WorkTree, path: str, use: Callable[[Entry], T], *, make: bool = False) -> T:
    """Open the folder of a path that may be written in the work tree. A link on the way is an error."""
    if {"", ".", "..", ".git"} & set(path.split("/")[:-1]):
        raise OSError(f"{path} is not a path inside the work tree")
    place, opener = tree.root / path, tree.writing()

    def check(real: Path) -> None:
        if real != place:
            raise OSError("a link leads elsewhere")
        opener.check(real)

    return reach(place, SafeOpener(check, opener.barred), use, follow=False, make=make)


def _unlink(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def count_files(count: int) -> str:
    """`1 file`, `2 files`."""
    return "1 file" if count == 1 else f"{count} files"


__all__ = [
    "MixedChanges",
    "Outcome",
    "Step",
    "count_files",
    "decide",
    "undo",
    "unhurried",
    "versions",
    "why_left",
    "with_line_ends",
    "without",
    "write_file",
]
