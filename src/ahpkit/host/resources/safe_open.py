"""Opens paths by directory descriptors that follow no link, so that the checked file is the one that is used.

A path is resolved, checked, and then walked from the top, name by name, each without following a link. If a link or
another directory took the place of a directory meanwhile, the walk notices this, and all three steps are repeated.
Blocks; runs in a worker.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ahpkit.platform.files import CLOSE_ON_EXEC, DIRECTORY, NO_FOLLOW, NON_BLOCKING, PATH_ONLY, followed, local_path
from ahpkit.protocol.errors import Conflict, InvalidParams, PermissionDenied

T = TypeVar("T")

Check = Callable[[Path], None]
"""Raises when a real path must not be used."""

Identity = tuple[int, int]
"""Device and inode of a directory: they identify it under any name and mount point."""

_ATTEMPTS = 16
"""How many times a path is tried again if it changes meanwhile."""

MAX_PATH = 4096
"""Bytes of a path: what operating systems accept."""

MAX_PATH_DEPTH = 100
"""Folders in a path: as deep as `files` copies and deletes."""

_DIRECTORY = os.O_RDONLY | DIRECTORY | NO_FOLLOW | CLOSE_ON_EXEC
_PASSED = PATH_ONLY | DIRECTORY | NO_FOLLOW | CLOSE_ON_EXEC
"""Flags for a directory on the way: it need not be readable."""

READ = os.O_RDONLY | NO_FOLLOW | NON_BLOCKING | CLOSE_ON_EXEC
"""Flags for a file to read: links are not followed, and a pipe in its place does not block."""

_NOT_REAL = frozenset(
    {
        *("proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "pstore"),
        *("efivarfs", "bpf", "configfs", "fusectl", "mqueue", "binfmt_misc", "autofs", "rpc_pipefs", "nsfs"),
        *("selinuxfs", "devfs"),
    }
)
"""File systems without real files: reading from them may block for ever, or reveal secrets of the system."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in an open directory. `path` is only for messages: all work is done with `folder` and `name`."""

    folder: int
    name: str
    path: Path

    def stat(self) -> os.stat_result:
        """The status of the entry itself, without following a link."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def is_link(self) -> bool:
        return stat.S_ISLNK(self.stat().st_mode)

    def find(self) -> os.stat_result | None:
        """The status of the entry, or None if it does not exist. Raises if a link has appeared in its place
        meanwhile."""
        try:
            found = self.stat()
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            raise PathChanged
        return found

    def open(self, flags: int, mode: int = 0o666) -> int:
        try:
            return os.open(self.name, flags | NO_FOLLOW | CLOSE_ON_EXEC, mode, dir_fd=self.folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise PathChanged from error
            raise

    @contextmanager
    def listed(self) -> Generator[int]:
        """The entry itself as an open directory."""
        try:
            descriptor = os.open(self.name, _DIRECTORY, dir_fd=self.folder)
        except NotADirectoryError as error:
            if stat.S_ISLNK(self.stat().st_mode):
                raise PathChanged from error
            raise
        try:
            yield descriptor
        finally:
            os.close(descriptor)


class PathChanged(Exception):
    """The path has changed since it was checked."""


@dataclass(frozen=True, slots=True)
class SafeOpener:
    """Opens real paths that pass the check. A path through one of the barred directories is never opened."""

    check: Check
    barred: frozenset[Identity] = frozenset()


def anywhere() -> SafeOpener:
    """Opens every path."""
    return SafeOpener(lambda _: None)


def reach(path: Path, opener: SafeOpener, use: Callable[[Entry], T], *, follow: bool = True, make: bool = False) -> T:
    """Resolve, check and use a path in one step. `follow`: a link at the end of the path is followed. `make`: missing
    parents are created."""
    for _ in range(_ATTEMPTS):
        real = real_path(path, follow=follow)
        opener.check(real)
        try:
            with _entered(real, opener.barred, make=make) as entry:
                return use(entry)
        except PathChanged:
            continue
    raise Conflict(f"{path} changes while it is used; try again")


def file_path(uri: str) -> Path:
    """The absolute path a `file:` URI names."""
    path = local_path(uri)
    if path is None:
        raise InvalidParams(f"uri: {uri!r} is not a file: URI of an absolute path on this machine")
    if len(str(path).encode("utf-8", "replace")) > MAX_PATH or len(path.parts) > MAX_PATH_DEPTH:
        raise InvalidParams(f"uri: a path has at most {MAX_PATH} bytes and {MAX_PATH_DEPTH} folders")
    return path


def real_path(path: Path, *, follow: bool = True) -> Path:
    """The real path of a path; if it does not exist yet, the part that exists is resolved."""
    try:
        if follow or path.name in ("", ".."):
            return Path(followed(path))
        return Path(followed(path.parent)) / path.name
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidParams(f"uri: {path} cannot be resolved: {error}") from error


@contextmanager
def _entered(real: Path, barred: frozenset[Identity], *, make: bool) -> Generator[Entry]:
    """The entry at a real path, with its directory open."""
    folder = os.open(real.anchor, _PASSED)
    try:
        for name in real.parts[1:-1]:
            following = _step(folder, name, make)
            os.close(folder)
            folder = following
            if barred and identity(os.fstat(folder)) in barred:
                raise PermissionDenied(f"{real}: it belongs to the host itself, and --root cannot allow it")
        yield Entry(folder, real.name or ".", real)
    finally:
        os.close(folder)


@contextmanager
def standing_in(folder: Path) -> Generator[str]:
    """A path to this open folder, as a working directory for a process. Raises `OSError` if a link has taken its
    place."""
    try:
        with _entered(folder, frozenset(), make=False) as entry:
            descriptor = os.open(entry.name, _PASSED, dir_fd=entry.folder)
    except PathChanged:
        raise OSError(errno.ELOOP, "a link took its place", str(folder)) from None
    try:
        yield f"/proc/self/fd/{descriptor}" if os.path.isdir("/proc/self/fd") else str(folder)
    finally:
        os.close(descriptor)


def _step(folder: int, name: str, make: bool) -> int:
    try:
        return os.open(name, _PASSED, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        try:
            os.mkdir(name, dir_fd=folder)
        except FileExistsError as error:
            raise PathChanged from error
        return os.open(name, _PASSED, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) or (error.errno == errno.ENOTDIR and _is_link(folder, name)):
            raise PathChanged from error
        raise


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return True


def open_regular(entry: Entry) -> tuple[int, os.stat_result]:
    """A regular file of a real file system, open for reading. The caller closes it."""
    descriptor = entry.open(READ)
    try:
        found = os.fstat(descriptor)
        check_regular(found, entry.path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found


def check_regular(found: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise InvalidParams(f"uri: {path} is a directory")
    if not stat.S_ISREG(found.st_mode) or found.st_dev in _not_real_devices():
        raise InvalidParams(f"uri: {path} is not a file")  # Reading a pipe waits; a device may never end.


def _not_real_devices() -> frozenset[int]:
    """The devices of file systems that are not real, as they are mounted now."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            lines = mounts.readlines()
    except OSError:
        return frozenset()  # On other systems than Linux the excluded places of the fence are enough.
    return frozenset(device for line in lines for device in _device(line))


def _device(line: str) -> Generator[int]:
    """mountinfo: `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`."""
    before, _, after = line.partition(" - ")
    fields, kind = before.split(), after.split(" ", 1)[0]
    if kind in _NOT_REAL and len(fields) > 2:
        major, _, minor = fields[2].partition(":")
        yield os.makedev(int(major), int(minor))


def identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


__all__ = [
    "READ",
    "Check",
    "Entry",
    "Identity",
    "PathChanged",
    "SafeOpener",
    "anywhere",
    "check_regular",
    "file_path",
    "identity",
    "open_regular",
    "reach",
    "real_path",
    "standing_in",
]
