"""Which files a client or an agent may touch: its roots, and the one check that everything passes. Knows no JSON-RPC.

A path is resolved first, links and parents included, and checked afterwards: what is opened is what was checked. The
default is no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, PermissionDenied


@dataclass(slots=True)
class Roots:
    """Directories below which clients may read, write, or must not write although an outer root allows it."""

    read: set[Path] = field(default_factory=set[Path])
    write: set[Path] = field(default_factory=set[Path])
    sealed: set[Path] = field(default_factory=set[Path])
    grown: set[Path] = field(default_factory=set[Path])
    """Writable directories that come into being with the first file that is written into them."""


def file_path(uri: str) -> Path:
    """The absolute path a `file:` URI names."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise InvalidParams(f"uri: {uri!r} is not a file: URI of this machine")
    if not path.startswith("/") or "\0" in path:
        raise InvalidParams(f"uri: {uri!r} does not name an absolute path")
    return Path(path)


def resolve(path: Path) -> Path:
    """Where a path really is; for what does not exist yet, where its nearest existing parent really is."""
    try:
        return path.resolve(strict=False)
    except (OSError, RuntimeError) as error:
        raise InvalidParams(f"uri: {path} cannot be resolved: {error}") from error


class Access:
    """Decides, per client, about one path at a time."""

    def __init__(self, roots: Callable[[], Roots], *, grantable: Iterable[Path] = ()) -> None:
        self._roots = roots
        self._grantable = [path.resolve() for path in grantable]
        self._granted: dict[str, Roots] = {}

    def reading(self, client_id: str, uri: str) -> Path:
        """The path to read, or `PermissionDenied` with the request that would unlock it."""
        path = resolve(file_path(uri))
        granted = self._granted.get(client_id, Roots())
        roots = self._roots()
        if not _inside(path, roots.read | roots.write | granted.read | granted.write):
            raise _denied(uri, path, write=False)
        return path

    def writing(self, client_id: str, uri: str, *, whole: bool = False) -> Path:
        """The path to write, delete or create; `whole` when everything below it goes along."""
        path = resolve(file_path(uri))
        granted = self._granted.get(client_id, Roots())
        roots = self._roots()
        if _inside(path, roots.sealed) or (whole and any(sealed.is_relative_to(path) for sealed in roots.sealed)):
            raise PermissionDenied(f"{path} is not to be written through the host")
        if not _inside(path, roots.write | granted.write):
            raise _denied(uri, path, write=True)
        return path

    def may_grow(self, path: Path) -> bool:
        """Whether missing parents of a file are to be made: it is written into a directory that may not exist yet."""
        return _inside(path, self._roots().grown)

    def grant(self, client_id: str, uri: str, *, read: bool, write: bool) -> None:
        """`resourceRequest`: what the host's settings let clients ask for, nothing else."""
        path = resolve(file_path(uri))
        if not _inside(path, self._grantable):
            raise PermissionDenied(f"{path} is not among the directories this host lets clients ask for")
        granted = self._granted.setdefault(client_id, Roots())
        if read or not write:
            granted.read.add(path)
        if write:
            granted.write.add(path)

    def forget(self, client_id: str) -> None:
        """A client is gone, and what it was granted with it."""
        self._granted.pop(client_id, None)


def _inside(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _denied(uri: str, path: Path, *, write: bool) -> PermissionDenied:
    request: JsonObject = {"channel": ROOT_URI, "uri": uri, "read": True, **({"write": True} if write else {})}
    verb = "write" if write else "read"
    return PermissionDenied(f"{path} is outside what you may {verb}; ask with resourceRequest", request=request)


__all__ = ["Access", "Roots", "file_path", "resolve"]
