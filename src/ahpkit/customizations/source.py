"""The interface of a container's files, and the loop that feeds them to a parser.

`Source` is the interface: the disk implements it (`disk.py`), and so does a client behind a connection (`remote.py`).
Its methods take batches, so that a remote source can ask for many things at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ahpkit.customizations.diagnostics import Diagnostic
from ahpkit.customizations.tree import Content, Documents, File, FileTree, Folder, Limits, Unreadable, join

T = TypeVar("T")

IGNORED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
"""Folders that no format uses, and the usual reason for a tree of 100,000 files."""

_BATCH = 256
"""Folders or files requested at once: few enough that the limits are checked often."""


@dataclass(slots=True)
class Listing:
    """What is in one folder."""

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
    """List everything below the root, level by level: what is near the root is seen first when a limit is hit."""
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


__all__ = ["IGNORED_FOLDERS", "Listing", "Source", "load", "run_now", "survey"]
