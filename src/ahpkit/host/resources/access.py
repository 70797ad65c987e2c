"""Decides which files a client or an agent may touch.

Answers are checks of real paths (`beneath.Passage`): they are made in the worker, in one step with the use. The default
is no.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from ahpkit.host.resources.beneath import Passage, real_path
from ahpkit.host.resources.fence import Cuts, Fence
from ahpkit.host.resources.sealed import why_sealed
from ahpkit.platform.files import local_path
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, PermissionDenied

Opening = Literal["work", "saved", "shown"]
"""Why clients may use a directory: it is a working directory, a customization directory that they may write, or one
that they may only read."""


MAX_PATH = 4096
"""Bytes of a path: what operating systems accept."""

MAX_PATH_DEPTH = 100
"""Folders in a path: as deep as `files` copies and deletes."""


def file_path(uri: str) -> Path:
    """The absolute path a `file:` URI names."""
    path = local_path(uri)
    if path is None:
        raise InvalidParams(f"uri: {uri!r} is not a file: URI of an absolute path on this machine")
    if len(str(path).encode("utf-8", "replace")) > MAX_PATH or len(path.parts) > MAX_PATH_DEPTH:
        raise InvalidParams(f"uri: a path has at most {MAX_PATH} bytes and {MAX_PATH_DEPTH} folders")
    return path


class Opened:
    """The directories that sessions open, by their real place. One more costs the same however many there are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, tuple[tuple[Opening, str], ...]] = {}
        self._counts: dict[Opening, Counter[str]] = {"work": Counter(), "saved": Counter(), "shown": Counter()}

    def set(self, session_uri: str, opened: Iterable[tuple[Opening, Path]]) -> None:
        """Set what a session opens; nothing when it is gone. Blocks, because it resolves paths."""
        real: tuple[tuple[Opening, str], ...] = tuple((kind, str(real_path(path))) for kind, path in opened)
        with self._lock:
            for kind, path in self._of.pop(session_uri, ()):
                self._counts[kind][path] -= 1
                if not self._counts[kind][path]:
                    del self._counts[kind][path]
            for kind, path in real:
                self._counts[kind][path] += 1
            if real:
                self._of[session_uri] = real

    def opens(self, kind: Opening, real: Path) -> bool:
        counts = self._counts[kind]
        return any(str(place) in counts for place in (real, *real.parents))

    def only_shows(self, real: Path) -> bool:
        """Whether the nearest open directory is one that clients may only read."""
        for place in map(str, (real, *real.parents)):
            if place in self._counts["work"] or place in self._counts["saved"]:
                return False
            if place in self._counts["shown"]:
                return True
        return False


class Access:
    """Decides, per client, about one path at a time."""

    def __init__(
        self,
        opened: Opened,
        *,
        fence: Fence | None = None,
        grantable: Iterable[Path] = (),
        sealed: Callable[[], frozenset[str]] = frozenset,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """`sealed` names further files and directories that nobody writes, beside those of `sealed.py`.

        `refresh` brings `opened` up to date before a direct question.
        """
        self.fence = fence or Fence(Cuts(Path.home()))
        self._opened = opened
        self._sealed = sealed
        self.refresh = refresh
        self._grantable = [path.resolve() for path in grantable]
        self._granted: dict[str, tuple[set[Path], set[Path]]] = {}

    def reading(self, client_id: str, uri: str) -> Path:
        """The real path, if it may be read, for code that opens it itself; else raises `PermissionDenied`. Blocks for a
        moment."""
        self.refresh()
        path = real_path(file_path(uri))
        self.to_read(client_id, uri).check(path)
        return path

    def to_read(self, client_id: str, uri: str) -> Passage:
        """Lets real paths through that may be read. A denial carries the request that would unlock it."""
        read, write = self._granted.get(client_id, (set[Path](), set[Path]()))
        granted = frozenset(read | write)

        def check(path: Path) -> None:
            self._check_open(path, granted, _denied(uri, path, write=False), ("work", "saved", "shown"))

        return Passage(check, self.fence.barred())

    def to_write(self, client_id: str, uri: str, *, approved: Path | None = None) -> Passage:
        """Lets real paths through that may be written. `approved`: a person agreed to this one, although sealed."""
        granted = frozenset(self._granted.get(client_id, (set[Path](), set[Path]()))[1])

        sealed = self._sealed()

        def check(path: Path) -> None:
            self._check_open(path, granted, _denied(uri, path, write=True), ("work", "saved"))
            if _is_odd(str(path)):
                raise InvalidParams(f"uri: {path} is not UTF-8; a new name must be")
            if path != approved and (what := self._why_sealed(path, sealed)) is not None:
                raise PermissionDenied(f"{path} cannot be written through the host: it is {what}")

        return Passage(check, self.fence.barred())

    def to_restore(self) -> Passage:
        """Lets real paths through that an operation on a changeset may write: inside the roots, and not sealed."""
        sealed = self._sealed()

        def check(path: Path) -> None:
            self.fence.check(path)
            if (what := self._why_sealed(path, sealed)) is not None:
                raise PermissionDenied(f"it is {what}; change it yourself")

        return Passage(check, self.fence.barred())

    def why_sealed(self, path: Path) -> str | None:
        """What kind of file a real path is, if it may be written only with an approval."""
        return self._why_sealed(path, self._sealed())

    def _why_sealed(self, path: Path, sealed: frozenset[str]) -> str | None:
        if (what := why_sealed(path)) is not None:
            return what
        if any(str(place) in sealed for place in (path, *path.parents)):
            return "part of what runs on this machine: a program, a plugin, or something that was trusted"
        if self._opened.only_shows(path):
            return "in a customization directory that clients do not write"
        return None

    def may_grow(self, path: Path) -> bool:
        """Whether missing parents of a file are created: when it is written into a directory that clients may write
        before it exists."""
        return self._opened.opens("saved", path)

    def _check_open(self, path: Path, granted: Iterable[Path], denial: PermissionDenied, by: Sequence[Opening]) -> None:
        if any(path.is_relative_to(place) for place in granted):
            self.fence.check_cuts(path)
        elif self._opened.opens("work", path):
            self.fence.check(path)
        elif any(self._opened.opens(kind, path) for kind in by):
            self.fence.check_cuts(path)
        else:
            raise denial

    def grant(self, client_id: str, uri: str, *, read: bool, write: bool) -> None:
        """`resourceRequest`: what the host's settings let clients ask for, nothing else. Blocks for a moment."""
        path = real_path(file_path(uri))
        if not any(path.is_relative_to(place) for place in self._grantable):
            raise PermissionDenied(f"{path} is not among the directories this host lets clients ask for")
        may_read, may_write = self._granted.setdefault(client_id, (set(), set()))
        if read or not write:
            may_read.add(path)
        if write:
            may_write.add(path)

    def forget(self, client_id: str) -> None:
        """A client is gone: forget what it was granted."""
        self._granted.pop(client_id, None)


def _is_odd(path: str) -> bool:
    """Whether a name has bytes that are not UTF-8: such names break many programs."""
    return any("\ud800" <= character <= "\udfff" for character in path)


def _denied(uri: str, path: Path, *, write: bool) -> PermissionDenied:
    request: JsonObject = {"channel": ROOT_URI, "uri": uri, "read": True, **({"write": True} if write else {})}
    verb = "write" if write else "read"
    return PermissionDenied(f"{path} is outside what you may {verb}; ask with resourceRequest", request=request)


__all__ = ["Access", "Opened", "Opening", "file_path"]
