"""Makes sure that what git read lies in the work tree, and not behind a link that was there for a moment.

Git looks at a path and then opens it by its name. If somebody replaces a folder by a link in between, a file from
outside gets into a checkpoint, where clients can read it. Such a swap changes the time of the folder above. So the
folders are checked before and after git reads. If one of them has changed, the files below it are read again, by
descriptors that follow no link, and this content is kept.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ahpkit.host.resources.safe_open import Entry, SafeOpener, open_regular, reach
from ahpkit.protocol.errors import RpcError

_TICK = 50_000_000
"""Nanoseconds. Two changes within a tick of the system's clock leave the same time, so a folder that changed just
before the look may have changed again."""

Looks = Mapping[str, tuple[int, int, int]]
"""Folder → its device, its inode and the time of its last change. A folder that is a link, or gone, is missing."""


def look(root: Path, paths: Iterable[str], now: int) -> Looks:
    """The present state of all folders above some files. Folders that changed just now are left out.

    `now` is in nanoseconds since the epoch.
    """
    found: dict[str, tuple[int, int, int]] = {}
    recent = now - _TICK
    for folder in {above for path in paths for above in _above(path)}:
        try:
            status = os.lstat(root / folder)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_ctime_ns < recent:
            found[folder] = (status.st_dev, status.st_ino, status.st_ctime_ns)
    return found


def doubtful(root: Path, paths: Collection[str], before: Looks, now: int) -> list[str]:
    """The files that may have been read from another place, because a folder above them has changed."""
    after = look(root, paths, now)
    return [path for path in paths if any(before.get(above, 0) != after.get(above, 1) for above in _above(path))]


def _above(path: str) -> Iterable[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def has_content(root: Path, path: str, oid: str) -> bool:
    """Whether a file has exactly the content of a blob. No link in its path is followed."""
    data = content(root, path)
    return data is not None and is_blob(data, oid)


def is_blob(data: bytes, oid: str) -> bool:
    """Whether a blob's name is the hash of exactly these bytes."""
    made = hashlib.new("sha1" if len(oid) == 40 else "sha256", usedforsecurity=False)
    made.update(b"blob %d\0" % len(data))
    made.update(data)
    return made.hexdigest() == oid


def content(root: Path, path: str, link: bool | None = None) -> bytes | None:
    """The content of a file in the work tree, or the target of a link; None if it does not exist or its path leads
    through a link.

    With `link`, also None if it is not a link (True) or is one (False).
    """
    place = root / path

    def check(real: Path) -> None:
        if real != place:
            raise OSError("a link leads elsewhere")

    def read(entry: Entry) -> bytes:
        is_link = entry.is_link()
        if link is not None and is_link != link:
            raise OSError("it became something else")
        if is_link:
            return os.fsencode(os.readlink(entry.name, dir_fd=entry.folder))
        with open(open_regular(entry)[0], "rb") as file:
            return file.read()

    try:
        return reach(place, SafeOpener(check), read, follow=False)
    except (OSError, RpcError):
        return None


__all__ = ["Looks", "content", "doubtful", "has_content", "is_blob", "look"]
