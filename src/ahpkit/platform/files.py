"""Writes files that only their owner can read, as a whole; locks files; follows links; reads `file:` URIs. Also has the
flags of `os.open` that not every system has.

Functions that use files block for a moment. No other module reads a `file:` URI, except `ahpkit.tools.subject`: rules
look at every path that a text may mean, on any machine. `Path.as_uri` writes them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote_to_bytes, urlsplit

from ahpkit.platform import Unsupported

# Flags for `os.open`. One that a system lacks is 0. That is safe for `NO_FOLLOW`: such a system cannot open files below
# an open directory (`dir_fd`) either. Every use of `NO_FOLLOW` does that, so it fails there, and never follows a link.
CLOSE_ON_EXEC: Final[int] = getattr(os, "O_CLOEXEC", 0)
DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)
NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
NON_BLOCKING: Final[int] = getattr(os, "O_NONBLOCK", 0)
PATH_ONLY: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
"""Opens only the path, which need not be readable. macOS has no such flag."""


_LOOKS = 20
"""How many times a path is looked up while somebody replaces links on it."""


def followed(path: str | Path) -> str:
    """The path with all its links followed (`os.path.realpath`), also while somebody replaces one of them.

    Python 3.12 and older raise `FileNotFoundError` when a link goes between two looks at it.
    """
    for _ in range(_LOOKS):
        with suppress(FileNotFoundError):
            return os.path.realpath(path)
    return os.path.realpath(path)


def local_path(uri: str, *, any_host: bool = False) -> Path | None:
    """The absolute path that a `file:` URI names on this machine; None for everything else.

    A URI with a host name is refused, except for `localhost`, because it is a file of another machine. A shell puts its
    own machine's name there; `any_host` accepts that. Names that are not UTF-8 keep their bytes.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.query or parts.fragment:
        return None
    if not any_host and parts.netloc.lower() not in ("", "localhost"):
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if not path.startswith("/") or "\0" in path:
        return None
    path = f"/{path.lstrip('/')}"
    return Path(path[1:] if sys.platform == "win32" and path[2:3] == ":" else path)


def make_private_directory(path: Path) -> None:
    """Make a directory and what is missing above it, each level for its owner only."""
    for missing in [level for level in (*reversed(path.parents), path) if not level.exists()]:
        missing.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def private_draft(path: Path, *, replace: bool = True) -> Generator[IO[bytes]]:
    """A file to write that becomes `path` when it is whole and on disk. It is never readable by others.

    If writing fails, the previous file at `path` stays. Without `replace` it always stays.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # Mode 0600 on POSIX.
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_private(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Write a file that is complete or does not exist, is on disk when this returns, and is never readable by others.

    Without `replace` an existing file stays as it is.
    """
    with private_draft(path, replace=replace) as file:
        file.write(data)


def is_ours(path: Path) -> bool:
    """Whether the file belongs to this user. Where files have no owner, the directory's protection is relied on."""
    return not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process, unless another process has it. The lock ends with the process."""
    try:
        _lock(descriptor, wait=False)
    except BlockingIOError:
        return False
    return True


def wait_lock(descriptor: int) -> None:
    """Lock an open file for this process; waits while another process has it."""
    _lock(descriptor, wait=True)


def _lock(descriptor: int, *, wait: bool) -> None:
    try:
        import fcntl
    except ImportError:
        raise Unsupported("locking a file") from None
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


__all__ = [
    "CLOSE_ON_EXEC",
    "DIRECTORY",
    "NON_BLOCKING",
    "NO_FOLLOW",
    "PATH_ONLY",
    "followed",
    "is_ours",
    "local_path",
    "make_private_directory",
    "private_draft",
    "try_lock",
    "wait_lock",
    "write_private",
]
