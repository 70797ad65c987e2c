"""The file of a Unix socket: private, never stolen from a live server, gone at the end. Knows no messages."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote, unquote

from ahpkit.transports.errors import BindError

_SCHEME = "ws+unix://"


def unix_url(path: Path) -> str:
    """The URL of a WebSocket server on a Unix socket: `ws+unix:///run/user/1000/ahpkit.sock`."""
    return _SCHEME + quote(os.fspath(path.absolute()))


def unix_path(url: str) -> Path | None:
    """The path in such a URL; None for any other."""
    return Path(unquote(url.removeprefix(_SCHEME))) if url.startswith(_SCHEME) else None


@contextlib.contextmanager
def unix_listener(path: Path) -> Generator[socket.socket]:
    """A socket bound to `path` (mode 0600), ready for `listen`. A file that nobody listens on is replaced."""
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        try:
            listener.bind(os.fspath(path))
        except OSError as exc:
            raise BindError(f"{path}: {_why(exc)}") from exc
        path.chmod(0o600)  # Before `listen`: nobody can have connected yet.
        ours = _identity(path)
        try:
            yield listener
        finally:
            if _identity(path) == ours:
                path.unlink()


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise BindError(f"{path} exists and is not a socket")
    if _is_listened_on(path):
        raise BindError(f"another process listens on {path}")
    path.unlink()


def _is_listened_on(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        # Only a refusal proves that nobody is there; a full backlog or missing permission does not.
        return probe.connect_ex(os.fspath(path)) != errno.ECONNREFUSED


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _why(exc: OSError) -> str:
    if exc.errno is None:  # Python's own check, which sets no number.
        return "the path is too long for a socket"
    return exc.strerror or str(exc)


__all__ = ["unix_listener", "unix_path", "unix_url"]
