"""File operations behind the `resource*` methods: blocking, bounded, atomic where it matters.

Every operation uses an open directory and a name in it (`safe_open.Entry`), so that no link can lead it to another
place. Large files do not need much memory. Every failure is an error of the protocol that names the path.
"""

from __future__ import annotations

import errno
import mimetypes
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ahpkit.host.resources.safe_open import Entry, PathChanged, check_regular, open_regular
from ahpkit.host.workers import progress
from ahpkit.platform.files import CLOSE_ON_EXEC, NO_FOLLOW, NON_BLOCKING
from ahpkit.protocol.common.commands import DirectoryEntry, ResourceListResult, ResourceResolveResult
from ahpkit.protocol.errors import AlreadyExists, Conflict, InvalidParams, NotFound, PermissionDenied, RpcError

MAX_ENTRIES = 20_000
"""The largest number of names in one resourceList. The rest of a larger directory is not listed."""

MAX_DEPTH = 100
"""The largest depth of folders that are copied or deleted, because each folder on the way is held open."""

_CHUNK = 1024 * 1024
"""Bytes copied at a time."""


# -- writing -----------------------------------------------------------------------------------------------------


def write(entry: Entry, data: bytes, *, mode: str, position: int, create_only: bool, if_match: str | None) -> None:
    """Write `data` to a file.

    A reader sees either the old content or the new one. Only text that is added at the end is written in place, so that
    a large file is not copied for one line.
    """
    with errors(entry.path):
        found = entry.find()
        if create_only and found is not None:
            raise AlreadyExists(f"{entry.path} exists already")
        if if_match is not None and (found is None or etag(found) != if_match):
            raise Conflict(f"{entry.path} has changed since you read it")
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise InvalidParams(f"uri: {entry.path} is not a file")
        size = 0 if found is None else found.st_size
        if not 0 <= position <= size:
            raise InvalidParams(f"position: {position} is outside the file's {size} bytes")
        if create_only:
            _create(entry, data)
        elif found is None or (mode == "truncate" and position == 0):
            _put(entry, found, SplicedContent(data=data))
        elif mode == "append" and position == 0 and found.st_nlink == 1:
            _append(entry, data)
        else:
            head = position if mode != "append" else size - position
            _put(entry, found, SplicedContent(head, data, keep_tail=mode != "truncate"))


class SplicedContent:
    """New content: the first bytes of the old, something new, and the rest of the old."""

    def __init__(self, head: int = 0, data: bytes = b"", *, keep_tail: bool = False) -> None:
        self.head = head
        self.data = data
        self.keep_tail = keep_tail


def _create(entry: Entry, data: bytes) -> None:
    descriptor = entry.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        _write_all(descriptor, data)
    except OSError:
        os.unlink(entry.name, dir_fd=entry.folder)
        raise
    finally:
        os.close(descriptor)


def _put(entry: Entry, found: os.stat_result | None, parts: SplicedContent) -> None:
    """Write a new file beside the old one, then replace the old one."""
    with _draft(entry, None if found is None else stat.S_IMODE(found.st_mode)) as (descriptor, draft):
        if found is not None and (parts.head or parts.keep_tail):
            old, _ = open_regular(entry)
            try:
                _copy_bytes(old, descriptor, parts.head)
                _write_all(descriptor, parts.data)
                if parts.keep_tail:
                    _copy_bytes(old, descriptor, None)
            finally:
                os.close(old)
        else:
            _write_all(descriptor, parts.data)
        os.replace(draft, entry.name, src_dir_fd=entry.folder, dst_dir_fd=entry.folder)


@contextmanager
def _draft(entry: Entry, mode: int | None) -> Generator[tuple[int, str]]:
    """A context with a new file beside the entry. It is removed if it does not replace the entry. It gets the old
    file's mode, or else that of the umask."""
    draft = f".{entry.name[:40]}.{secrets.token_hex(8)}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
    descriptor = os.open(draft, flags, 0o666, dir_fd=entry.folder)
    try:
        if mode is not None:
            os.fchmod(descriptor, mode)
        yield descriptor, draft
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=entry.folder)


def _append(entry: Entry, data: bytes) -> None:
    descriptor = entry.open(os.O_WRONLY | os.O_APPEND | NON_BLOCKING)
    try:
        found = os.fstat(descriptor)
        check_regular(found, entry.path)
        if found.st_nlink != 1:  # A hard link: the file may have another name in any place.
            raise PathChanged
        try:
            _write_all(descriptor, data)
        except OSError:
            os.ftruncate(descriptor, found.st_size)
            raise
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left[:_CHUNK]) :]
        progress()


def _copy_bytes(source: int, destination: int, count: int | None) -> None:
    """Copy this many bytes, or all that are left."""
    while (count is None or count > 0) and (part := os.read(source, _CHUNK if count is None else min(count, _CHUNK))):
        _write_all(destination, part)
        count = None if count is None else count - len(part)


# -- looking -----------------------------------------------------------------------------------------------------


def list_directory(entry: Entry) -> ResourceListResult:
    entries: list[DirectoryEntry] = []
    with errors(entry.path), entry.listed() as folder, os.scandir(folder) as found:
        for one in found:
            if len(entries) == MAX_ENTRIES:
                break
            entries.append({"name": one.name, "type": "directory" if one.is_dir() else "file"})
    entries.sort(key=lambda one: one["name"])
    return {"entries": entries}


def resolve_resource(entry: Entry) -> ResourceResolveResult:
    """The type of an entry, and its real path."""
    with errors(entry.path):
        found = entry.stat()
    kind = "symlink" if stat.S_ISLNK(found.st_mode) else "directory" if stat.S_ISDIR(found.st_mode) else "file"
    result: ResourceResolveResult = {
        "uri": entry.path.as_uri(),
        "type": kind,
        "mtime": _iso(found.st_mtime),
        "ctime": _iso(found.st_ctime),
        "etag": etag(found),
    }
    if kind == "file":
        result["size"] = found.st_size
        if content_type := mimetypes.guess_type(entry.name)[0]:
            result["contentType"] = content_type
    return result


def exists(entry: Entry) -> None:
    """Raise `NotFound` if the entry does not exist."""
    with errors(entry.path):
        entry.stat()


def etag(found: os.stat_result) -> str:
    """A value that changes whenever the content may have changed."""
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"


def walk(entry: Entry) -> Iterator[tuple[Path, bool]]:
    """All paths below an entry, relative to it, each with whether it is a link. Links are not followed."""
    with errors(entry.path):
        if not stat.S_ISDIR(entry.stat().st_mode):
            return
        top = f"./{entry.name}"
        for folder, folders, names, descriptor in os.fwalk(entry.name, dir_fd=entry.folder, follow_symlinks=False):
            inner = Path(os.path.relpath(f"./{folder}", top))
            if len(inner.parts) > MAX_DEPTH:
                raise InvalidParams(f"uri: {entry.path} is nested deeper than {MAX_DEPTH} folders")
            for name in (*folders, *names):
                progress()
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                yield inner / name, stat.S_ISLNK(found.st_mode)


# -- changing ----------------------------------------------------------------------------------------------------


def copy(source: Entry, destination: Entry, *, fail_if_exists: bool) -> None:
    """Copy a file, or a directory with everything in it. Links inside are copied as links."""
    with errors(source.path):
        _check_destination(source, destination, fail_if_exists)
        found = source.stat()
        if stat.S_ISDIR(found.st_mode):
            _copy_tree(source, destination, found)
        else:
            _copy_file(source, destination)


def _copy_file(source: Entry, destination: Entry) -> None:
    descriptor, found = open_regular(source)
    try:
        there = destination.find()
        if there is not None and not stat.S_ISREG(there.st_mode):
            raise InvalidParams(f"destination: {destination.path} is not a file")
        with _draft(destination, stat.S_IMODE(found.st_mode)) as (target, draft):
            _copy_bytes(descriptor, target, None)
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
            os.replace(draft, destination.name, src_dir_fd=destination.folder, dst_dir_fd=destination.folder)
    finally:
        os.close(descriptor)


def _copy_tree(source: Entry, destination: Entry, found: os.stat_result) -> None:
    with suppress(FileExistsError):
        os.mkdir(destination.name, dir_fd=destination.folder)
    with source.listed() as old, destination.listed() as new:
        for name in os.listdir(old):
            progress()
            one, other = Entry(old, name, source.path / name), Entry(new, name, destination.path / name)
            kind = one.stat()
            if stat.S_ISLNK(kind.st_mode):
                _copy_link(one, other)
            elif stat.S_ISDIR(kind.st_mode):
                _copy_tree(one, other, kind)
            elif stat.S_ISREG(kind.st_mode):
                _copy_file(one, other)
        os.fchmod(new, stat.S_IMODE(found.st_mode))


def _copy_link(source: Entry, destination: Entry) -> None:
    target = os.readlink(source.name, dir_fd=source.folder)
    if destination.find() is not None:
        os.unlink(destination.name, dir_fd=destination.folder)
    os.symlink(target, destination.name, dir_fd=destination.folder)


def move(source: Entry, destination: Entry, *, fail_if_exists: bool) -> None:
    """Rename an entry; a link is moved itself, not what it leads to."""
    with errors(source.path):
        _check_destination(source, destination, fail_if_exists)
        os.replace(source.name, destination.name, src_dir_fd=source.folder, dst_dir_fd=destination.folder)


def _check_destination(source: Entry, destination: Entry, fail_if_exists: bool) -> None:
    source.stat()
    if fail_if_exists:
        with suppress(FileNotFoundError):
            destination.stat()
            raise AlreadyExists(f"{destination.path} exists already")
    if destination.path.is_relative_to(source.path):
        raise InvalidParams(f"destination: {destination.path} is inside {source.path}")


def delete(entry: Entry, *, recursive: bool) -> None:
    """Remove an entry; a link itself is removed, not what it leads to."""
    with errors(entry.path):
        if not stat.S_ISDIR(entry.stat().st_mode):
            os.unlink(entry.name, dir_fd=entry.folder)
        elif recursive:
            _delete_tree(entry)
        else:
            os.rmdir(entry.name, dir_fd=entry.folder)


def _delete_tree(entry: Entry) -> None:
    with entry.listed() as folder:
        for name in os.listdir(folder):
            progress()
            one = Entry(folder, name, entry.path / name)
            if stat.S_ISDIR(one.stat().st_mode):
                _delete_tree(one)
            else:
                os.unlink(name, dir_fd=folder)
    os.rmdir(entry.name, dir_fd=entry.folder)


def mkdir(entry: Entry) -> None:
    """Create a directory, unless it exists."""
    with errors(entry.path):
        try:
            os.mkdir(entry.name, dir_fd=entry.folder)
        except FileExistsError:
            if not stat.S_ISDIR(entry.stat().st_mode):
                raise AlreadyExists(f"{entry.path} exists and is not a directory") from None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def errors(path: Path) -> Generator[None]:
    """Turn errors of the system into errors of the protocol."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist") from error
    except FileExistsError as error:
        raise AlreadyExists(f"{path} exists already") from error
    except PermissionError as error:
        raise PermissionDenied(f"the host may not access {path}") from error
    except OSError as error:
        raise _os_error(path, error) from error


def _os_error(path: Path, error: OSError) -> RpcError:
    wrong = (errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.ENXIO)
    if error.errno in wrong:
        return InvalidParams(f"uri: {path}: {error.strerror}")
    return Conflict(f"{path}: {error.strerror}")


__all__ = [
    "MAX_DEPTH",
    "MAX_ENTRIES",
    "copy",
    "delete",
    "errors",
    "etag",
    "exists",
    "list_directory",
    "mkdir",
    "move",
    "resolve_resource",
    "walk",
    "write",
]
