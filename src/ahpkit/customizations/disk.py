"""Reads a folder on disk as a `Source`. It follows no link out of its boundary, and opens only regular files.

Its methods are coroutines only by name: they block, so they run in a worker thread (`run_now`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ahpkit.customizations.diagnostics import Diagnostic, Level
from ahpkit.customizations.source import Listing
from ahpkit.customizations.tree import Content, File, Unreadable, join, parent
from ahpkit.host.resources.beneath import Entry, Passage, open_regular, reach
from ahpkit.platform.files import followed
from ahpkit.protocol.errors import InvalidParams, PermissionDenied, RpcError

_ATTEMPTS = 3
"""How often a file that changes meanwhile is read before the last result is used."""


class DiskSource:
    """Files below `root`. Links are followed as long as they stay inside `boundary` (the root itself by default)."""

    def __init__(self, root: Path, *, boundary: Path | None = None, only: Sequence[str] | None = None) -> None:
        self.uri = root.absolute().as_uri()
        self.name = root.absolute().name
        self._root = root
        self._real_root = followed(root)
        self._boundary = self._real_root if boundary is None else followed(boundary)
        self._only = only
        self._real_folders = {"": self._real_root}
        self._passage = Passage(self._check)

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
        """Only some files of the root, wherever below it they are."""
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


__all__ = ["DiskSource"]
