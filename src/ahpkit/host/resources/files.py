"""File operations behind the `resource*` methods: blocking, bounded, atomic where it matters. Knows no clients.

Paths come in resolved and checked. Every failure is an error of the protocol that names the path.
"""

from __future__ import annotations

import base64
import binascii
import errno
import mimetypes
import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AlreadyExists, Conflict, InvalidParams, NotFound, PermissionDenied, RpcError

MAX_READ = 10 * 1024 * 1024
"""Bytes of one resourceRead: with base64 it still fits a frame."""

MAX_ENTRIES = 20_000
"""Names in one resourceList; a directory with more is listed up to here."""


def read(path: Path, encoding: str | None) -> JsonObject:
    """The content: as asked for where possible, else text when it is text."""
    with _errors(path):
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise InvalidParams(f"uri: {path} is not a file")  # A pipe would be waited for, a device never ends.
        if found.st_size > MAX_READ:
            raise InvalidParams(f"uri: {path} is larger than {MAX_READ} bytes")
        data = path.read_bytes()
    content_type = mimetypes.guess_type(path.name)[0]
    return encode_content(data, encoding) | ({"contentType": content_type} if content_type else {})


def encode_content(data: bytes, encoding: str | None) -> JsonObject:
    """Bytes as a resource result carries them."""
    if encoding != "base64":
        try:
            return {"data": data.decode("utf-8"), "encoding": "utf-8"}
        except UnicodeDecodeError:
            pass
    return {"data": base64.b64encode(data).decode("ascii"), "encoding": "base64"}


def decode_content(data: str, encoding: str) -> bytes:
    if encoding == "utf-8":
        return data.encode("utf-8", "replace")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InvalidParams(f"data: not valid base64: {error}") from error


def write(path: Path, data: bytes, *, mode: str, position: int, create_only: bool, if_match: str | None) -> None:
    """Place `data` in a file. Whoever reads meanwhile sees the old content or the new, never half of it."""
    with _errors(path):
        exists = path.exists()
        if create_only and exists:
            raise AlreadyExists(f"{path} exists already")
        if if_match is not None and (not exists or etag(path.stat()) != if_match):
            raise Conflict(f"{path} has changed since you read it")
        if exists and not path.is_file():
            raise InvalidParams(f"uri: {path} is not a file")
        old = path.read_bytes() if exists and (mode != "truncate" or position) else b""
        _replace(path, _placed(old, data, mode, position), exclusive=create_only)


def _placed(old: bytes, data: bytes, mode: str, position: int) -> bytes:
    if not 0 <= position <= len(old):
        raise InvalidParams(f"position: {position} is outside the file's {len(old)} bytes")
    if mode == "truncate":
        return old[:position] + data
    at = len(old) - position if mode == "append" else position
    return old[:at] + data + old[at:]


def _replace(path: Path, content: bytes, *, exclusive: bool) -> None:
    if exclusive:
        with path.open("xb") as file:
            file.write(content)
        return
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(name, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def list_directory(path: Path) -> JsonObject:
    entries: list[JsonObject] = []
    with _errors(path), os.scandir(path) as found:
        for entry in found:
            if len(entries) == MAX_ENTRIES:
                break
            entries.append({"name": entry.name, "type": "directory" if entry.is_dir() else "file"})
    entries.sort(key=lambda entry: entry["name"])
    return {"entries": entries}


def resolve_resource(path: Path, *, follow: bool) -> JsonObject:
    """stat and realpath in one; `path` is resolved already unless links are not followed."""
    with _errors(path):
        found = path.stat(follow_symlinks=follow)
    kind = "symlink" if stat.S_ISLNK(found.st_mode) else "directory" if stat.S_ISDIR(found.st_mode) else "file"
    result: JsonObject = {
        "uri": path.as_uri(),
        "type": kind,
        "mtime": _iso(found.st_mtime),
        "ctime": _iso(found.st_ctime),
        "etag": etag(found),
    }
    if kind == "file":
        content_type = mimetypes.guess_type(path.name)[0]
        result |= {"size": found.st_size} | ({"contentType": content_type} if content_type else {})
    return result


def etag(found: os.stat_result) -> str:
    """Changes whenever the content may have."""
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"


def copy(source: Path, destination: Path, *, fail_if_exists: bool) -> None:
    with _errors(source):
        _check_destination(source, destination, fail_if_exists)
        if source.is_dir():
            shutil.copytree(source, destination, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, destination)


def move(source: Path, destination: Path, *, fail_if_exists: bool) -> None:
    with _errors(source):
        _check_destination(source, destination, fail_if_exists)
        os.replace(source, destination)


def _check_destination(source: Path, destination: Path, fail_if_exists: bool) -> None:
    if not source.exists():
        raise NotFound(f"{source} does not exist")
    if fail_if_exists and destination.exists():
        raise AlreadyExists(f"{destination} exists already")
    if destination.is_relative_to(source):
        raise InvalidParams(f"destination: {destination} is inside {source}")


def delete(path: Path, *, recursive: bool) -> None:
    with _errors(path):
        if not path.is_dir():
            path.unlink()
        elif recursive:
            shutil.rmtree(path)
        else:
            path.rmdir()


def mkdir(path: Path) -> None:
    with _errors(path):
        if path.exists() and not path.is_dir():
            raise AlreadyExists(f"{path} exists and is not a directory")
        path.mkdir(parents=True, exist_ok=True)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def _errors(path: Path) -> Generator[None]:
    """Errors of the system in the words of the protocol."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{error.filename or path} does not exist") from error
    except FileExistsError as error:
        raise AlreadyExists(f"{path} exists already") from error
    except PermissionError as error:
        raise PermissionDenied(f"the host may not access {path}") from error
    except OSError as error:
        raise _os_error(path, error) from error


def _os_error(path: Path, error: OSError) -> RpcError:
    if error.errno in (errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL):
        return InvalidParams(f"uri: {path}: {error.strerror}")
    return Conflict(f"{path}: {error.strerror}")


__all__ = [
    "MAX_ENTRIES",
    "MAX_READ",
    "copy",
    "decode_content",
    "delete",
    "encode_content",
    "etag",
    "list_directory",
    "mkdir",
    "move",
    "read",
    "resolve_resource",
    "write",
]
