"""Creates the file of a Unix socket: private, never taken from a live server, and removed at the end."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote, unquote

from ahpkit.transports.errors import BindError

_SCHEME = "ws+unix://"

_LONGEST = 103
"""Bytes of a socket's path that every system takes; Linux takes four more."""


def unix_url(path: Path) -> str:
    """The URL of a WebSocket server on a Unix socket: `ws+unix:///run/user/1000/ahpkit.sock`."""
    return _SCHEME + quote(os.fspath(path.absolute()))


def unix_path(url: str) -> Path | None:
    """The path in such a URL; None for any other."""
    return Path(unquote(url.removeprefix(_SCHEME))) if url.startswith(_SCHEME) else None


def reachable(path: Path) -> Path:
    """The path to connect to for the socket `path`: the target, if `path` is a link to a socket with a shorter name."""
    return path.parent / path.readlink() if path.is_symlink() else path


@contextlib.contextmanager
def unix_listener(path: Path) -> Generator[socket.socket]:
    """A socket bound to `path` (mode 0600), ready for `listen`. A file that nobody listens on is replaced.

    Where the path is too long for a socket it becomes a link to one in a private directory with a short name.
    """
    _remove_stale(path)
    with contextlib.ExitStack() as stack:
        place = path if len(os.fsencode(path)) <= _LONGEST else stack.enter_context(_linked(path))
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        try:
            listener.bind(os.fspath(place))
        except OSError as exc:
            raise BindError(f"{path}: {exc.strerror or exc}") from exc
        place.chmod(0o600)  # Before `listen`: nobody can have connected yet.
        with _removed_at_the_end(place):
            yield listener


@contextlib.contextmanager
def _linked(path: Path) -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="ahpkit-") as directory:
        place = Path(directory) / "socket"
        try:
            path.symlink_to(place)
        except OSError as exc:
            raise BindError(f"{path}: {exc.strerror or exc}") from exc
        with _removed_at_the_end(path):
            yield place


@contextlib.contextmanager
def _removed_at_the_end(path: Path) -> Generator[None]:
    """Remove the socket, unless another host has taken it over."""
    ours = _identity(path)
    try:
        yield
    finally:
        if _identity(path) == ours:
            path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    place = reachable(path)
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        path.unlink(missing_ok=True)  # A link that leads nowhere.
        return
    if not stat.S_ISSOCK(mode):
        raise BindError(f"{path} exists and is not a socket")
    if _is_listened_on(place):
        raise BindError(f"another process listens on {path}")
    place.unlink()
    path.unlink(missing_ok=True)


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


__all__ = ["reachable", "unix_listener", "unix_path", "unix_url"]
