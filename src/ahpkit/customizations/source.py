"""Reads the files of a container: the interface, a folder on disk, and the loop that gives files to a parser.

`Source` is the interface. A folder on disk implements it here, a client behind a connection in `client_plugins`. Its
methods take batches, so that a remote source can ask for many things at once.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ahpkit.customizations.diagnostics import Diagnostic, Level
from ahpkit.customizations.tree import Content, Documents, File, FileTree, Folder, Limits, Unreadable, join, parent
from ahpkit.host.resources.safe_open import Entry, SafeOpener, open_regular, reach
from ahpkit.platform.files import followed
from ahpkit.protocol.errors import InvalidParams, PermissionDenied, RpcError

T = TypeVar("T")

IGNORED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
"""Folders that no format uses. They are the usual reason for a tree of 100,000 files."""

_BATCH = 256
"""Folders or files requested at once: few enough that the limits are checked often."""


@dataclass(slots=True)
class Listing:
    """The content of one folder."""

    files: list[File] = field(default_factory=list[File])
    folders: list[str] = field(default_factory=list[str])
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    missing: bool = False


class Source(Protocol):
    """A folder somewhere. Names the root by `uri`; paths are relative to it."""

    uri: str
    name: str

    async def list(self, folders: Sequence[str], *, limit: int) -> Sequence[Listing]:
        """The entries of each folder, at most `limit` in all."""
        ...

    async def read(self, files: Sequence[File], *, limit: int) -> Sequence[Content | Unreadable]:
        """Up to `limit` bytes of each file; a longer one is cut, with a warning."""
        ...


async def load(
    source: Source,
    parse: Callable[[FileTree], T],
    *,
    limits: Limits,
    known: Documents | None = None,
    in_thread: bool = False,
) -> tuple[T, Documents]:
    """List the files, then parse and fetch what the parser needs, until nothing is missing. Returns its result and the
    texts it used.

    With `in_thread` the parser runs in a thread, for sources that use the event loop.
    """
    tree = await survey(source, limits)
    tree.known = known or {}
    budget = limits.total_bytes
    while True:
        result = await asyncio.to_thread(parse, tree) if in_thread else parse(tree)
        if not tree.missing:
            return result, tree.documents
        budget = await _fetch(source, tree, limits, budget)


async def _fetch(source: Source, tree: FileTree, limits: Limits, budget: int) -> int:
    """Fetch the contents that the parser needs; returns the bytes still allowed."""
    wanted = sorted(tree.missing)
    tree.missing.clear()
    allowed = max(0, limits.files - len(tree.contents))
    for path in wanted[allowed:]:
        tree.contents[path] = Unreadable(f"not read: more than {limits.files} files")
    for start in range(0, min(len(wanted), allowed), _BATCH):
        batch = wanted[start : min(start + _BATCH, allowed)]
        if budget <= 0:
            tree.contents.update(dict.fromkeys(batch, Unreadable(f"not read: more than {limits.total_bytes} bytes")))
            continue
        contents = await source.read([tree.files[path] for path in batch], limit=limits.file_bytes)
        tree.contents.update(zip(batch, contents, strict=True))
        budget -= sum(len(content.data) for content in contents if isinstance(content, Content))
    return budget


async def survey(source: Source, limits: Limits) -> FileTree:
    """List everything below the root, level by level, so that files near the root are listed first if a limit is
    reached."""
    tree = FileTree(source.uri, source.name)
    left = limits.entries
    level = [""]
    for _ in range(limits.depth):
        for start in range(0, len(level), _BATCH):
            batch = level[start : start + _BATCH]
            listings = await source.list(batch, limit=left)
            for folder, listing in zip(batch, listings, strict=True):
                left -= _add(tree, folder, listing)
        level = [join(folder, name) for folder in level for name in _entered(tree, folder)]
        if not level or left <= 0:
            break
    if left <= 0:
        tree.findings.append(_cut("too-many-entries", f"more than {limits.entries} entries; the rest is not looked at"))
    elif level:
        tree.findings.append(_cut("too-deep", f"deeper than {limits.depth} folders; not looked at", level[0]))
    return tree


def _add(tree: FileTree, folder: str, listing: Listing) -> int:
    tree.findings.extend(listing.findings)
    if listing.missing:
        tree.exists = bool(folder)
        return 0
    names = sorted(file.path.rpartition("/")[2] for file in listing.files)
    tree.folders[folder] = Folder(names, sorted(listing.folders))
    tree.files.update((file.path, file) for file in listing.files)
    return len(names) + len(listing.folders)


def _entered(tree: FileTree, folder: str) -> list[str]:
    entry = tree.folders.get(folder)
    return [] if entry is None else [name for name in entry.folders if name not in IGNORED_FOLDERS]


def _cut(code: str, message: str, path: str = "") -> Diagnostic:
    return Diagnostic("warning", code, message, path)


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose source never waits (the disk) to its end, on this thread and without an event loop."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value
    work.close()
    raise RuntimeError("this source waits; await it on an event loop")


_ATTEMPTS = 3
"""How many times a file that changes meanwhile is read before the last result is used."""


class DiskSource:
    """Files below `root`. Links are followed as long as they stay inside `boundary` (the root itself by default).

    Its methods are coroutines only by name: they block, so they run in a worker thread (`run_now`).
    """

    def __init__(self, root: Path, *, boundary: Path | None = None, only: Sequence[str] | None = None) -> None:
        self.uri = root.absolute().as_uri()
        self.name = root.absolute().name
        self._root = root
        self._real_root = followed(root)
        self._boundary = self._real_root if boundary is None else followed(boundary)
        self._only = only
        self._real_folders = {"": self._real_root}
        self._passage = SafeOpener(self._check)

    async def list(self, folders: Sequence[str], *, limit: int) -> Sequence[Listing]:
        if self._only is not None:
            return [self._named(self._only)]
        listings: list[Listing] = []
        for folder in folders:
            listing = self._list(folder, max(0, limit))
            limit -= len(listing.files) + len(listing.folders)
            listings.append(listing)
        return listings

    async def read(self, files: Sequence[File], *, limit: int) -> Sequence[Content | Unreadable]:
        return [self._read(file, limit) for file in files]

    def _named(self, paths: Sequence[str]) -> Listing:
        """Only some files of the root, in any folder below it."""
        listing = Listing(missing=not os.path.isdir(self._real_root))
        for path in paths:
            full = os.path.join(self._real_root, path)
            if os.path.lexists(full) and not os.path.isdir(full):
                self._link(listing, path, full)
        return listing

    def _list(self, folder: str, limit: int) -> Listing:
        listing = Listing()
        real = self._real_folders[folder]
        if folder == "" and not self._inside(real):
            _find(listing, "error", "link-escapes", "this folder is a link that leads outside", folder)
            return listing
        try:
            reach(Path(real), self._passage, lambda entry: self._scan(listing, folder, entry, limit))
        except RpcError as error:
            _find(listing, "warning", "unreadable", error.message, folder)
        except FileNotFoundError:
            listing.missing = True
        except NotADirectoryError:
            _find(listing, "error", "not-a-folder", "this is a file, not a folder", folder)
        except OSError as error:
            _find(listing, "error" if folder == "" else "warning", "unreadable", _reason(error), folder)
        return listing

    def _scan(self, listing: Listing, folder: str, opened: Entry, limit: int) -> None:
        with opened.listed() as descriptor, os.scandir(descriptor) as entries:
            for entry in islice(entries, limit):
                self._entry(listing, folder, entry, str(opened.path / entry.name))

    def _entry(self, listing: Listing, folder: str, entry: os.DirEntry[str], full: str) -> None:
        path = join(folder, entry.name)
        if entry.is_symlink():
            self._link(listing, path, full)
        elif entry.is_dir(follow_symlinks=False):
            self._real_folders[path] = full
            listing.folders.append(entry.name)
        else:
            with suppress(FileNotFoundError):
                self._file(listing, path, full, entry.stat(follow_symlinks=False))

    def _link(self, listing: Listing, path: str, full: str) -> None:
        real = followed(full)
        try:
            status = os.stat(real)
        except OSError as error:
            _find(listing, "warning", "broken-link", f"this link leads nowhere ({_reason(error)})", path)
            return
        if not self._inside(real):
            _find(listing, "warning", "link-escapes", "this link leads outside; it is not followed", path)
        elif not stat.S_ISDIR(status.st_mode):
            self._file(listing, path, real, status)
        elif real in self._ancestors(path):
            _find(listing, "note", "link-loop", "this link leads back to a folder it is in", path)
        else:
            self._real_folders[path] = real
            listing.folders.append(path.rpartition("/")[2])

    def _file(self, listing: Listing, path: str, real: str, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode):
            linked = real != os.path.join(self._real_root, path)
            listing.files.append(File(path, real, _stamp(status), linked))
        else:
            _find(listing, "note", "not-a-file", "neither a regular file nor a folder", path)

    def _inside(self, real: str) -> bool:
        return real == self._boundary or real.startswith(self._boundary.rstrip(os.sep) + os.sep)

    def _ancestors(self, path: str) -> Iterator[str]:
        while path:
            path = parent(path)
            yield self._real_folders[path]

    def _read(self, file: File, limit: int) -> Content | Unreadable:
        try:
            return self._read_stable(file, limit)
        except FileNotFoundError:
            return Unreadable("the file is gone")
        except OSError as error:
            return Unreadable(f"cannot be read ({_reason(error)})")
        except InvalidParams:
            return Unreadable("this is not a regular file")
        except RpcError:
            return Unreadable("the path leads outside now; not read")

    def _read_stable(self, file: File, limit: int) -> Content | Unreadable:
        content = Content(b"")
        for _ in range(_ATTEMPTS):
            descriptor, before = reach(Path(self._real_root, file.path), self._passage, open_regular)
            try:
                content = _take(descriptor, limit)
                if _stamp(os.fstat(descriptor)) == _stamp(before):
                    return content
            finally:
                os.close(descriptor)
        return Content(content.data, "the file changed while it was read")

    def _check(self, real: Path) -> None:
        if not self._inside(str(real)):
            raise PermissionDenied(f"{real} is outside")


def _take(descriptor: int, limit: int) -> Content:
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    data = b"".join(parts)
    if len(data) > limit:
        return Content(data[:limit], f"longer than {limit} bytes; the rest was not read")
    return Content(data)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _find(listing: Listing, level: Level, code: str, message: str, path: str) -> None:
    listing.findings.append(Diagnostic(level, code, message, path))


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


__all__ = ["IGNORED_FOLDERS", "DiskSource", "Listing", "Source", "load", "run_now", "survey"]
