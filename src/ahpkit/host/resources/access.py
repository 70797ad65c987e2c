"""Decides which files a client or an agent may touch.

The result is a `SafeOpener` of `safe_open`: the worker checks a real path and opens it in one step. By default a path
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ahpkit.host.resources.fence import ExcludedPlaces, Fence
from ahpkit.host.resources.safe_open import SafeOpener, file_path, real_path
from ahpkit.host.resources.sealed import why_sealed
from ahpkit.host.resources.session_directories import OpenedDirectories, Opening
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.commands import ResourceRequestParams
from ahpkit.protocol.errors import InvalidParams, PermissionDenied


class Access:
    """Decides, per client, about one path at a time."""

    def __init__(
        self,
        opened: OpenedDirectories,
        *,
        fence: Fence | None = None,
        grantable: Iterable[Path] = (),
        sealed: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """`sealed` returns further files and directories that nobody may write, besides those of `sealed.py`."""
        self.fence = fence or Fence(ExcludedPlaces(Path.home()))
        self._opened = opened
        self._sealed = sealed
        self._grantable = [path.resolve() for path in grantable]
        self._granted: dict[str, tuple[set[Path], set[Path]]] = {}

    def reading(self, client_id: str, uri: str) -> Path:
        """The real path, for code that opens it itself; raises `PermissionDenied` if it may not be read. Blocks."""
        path = real_path(file_path(uri))
        self.to_read(client_id, uri).check(path)
        return path

    def to_read(self, client_id: str, uri: str) -> SafeOpener:
        """Opens real paths that may be read. A denial contains the request that would allow the path."""
        read, write = self._granted.get(client_id, (set[Path](), set[Path]()))
        granted = frozenset(read | write)

        def check(path: Path) -> None:
            self._check_open(path, granted, _denied(uri, path, write=False), ("saved", "shown", "picture"))

        return SafeOpener(check, self.fence.barred())

    def to_write(self, client_id: str, uri: str, *, approved: Path | None = None) -> SafeOpener:
        """Opens real paths that may be written. `approved`: a sealed path to which a person has agreed."""
        granted = frozenset(self._granted.get(client_id, (set[Path](), set[Path]()))[1])

        sealed = self._sealed()

        def check(path: Path) -> None:
            self._check_open(path, granted, _denied(uri, path, write=True), ("saved",))
            if _is_odd(str(path)):
                raise InvalidParams(f"uri: {path} is not UTF-8; a new name must be")
            if path != approved and (what := self._why_sealed(path, sealed)) is not None:
                raise PermissionDenied(f"{path} cannot be written through the host: it is {what}")

        return SafeOpener(check, self.fence.barred())

    def to_restore(self) -> SafeOpener:
        """Opens real paths that an operation on a changeset may write: inside the roots, and not sealed."""
        sealed = self._sealed()

        def check(path: Path) -> None:
            self.fence.check(path)
            if (what := self._why_sealed(path, sealed)) is not None:
                raise PermissionDenied(f"it is {what}; change it yourself")

        return SafeOpener(check, self.fence.barred())

    def why_sealed(self, path: Path) -> str | None:
        """The kind of file at a real path, if it may be written only with an approval; otherwise None."""
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
        """Whether missing parents of a file are created: only in directories that clients may write before they
        exist."""
        return self._opened.opens("saved", path)

    def _check_open(self, path: Path, granted: Iterable[Path], denial: PermissionDenied, by: Sequence[Opening]) -> None:
        if any(path.is_relative_to(place) for place in granted):
            self.fence.check_cuts(path)
        elif self._opened.opens("work", path):
            self.fence.check(path)
        elif "picture" in by and self._opened.opens("picture", path):
            self.fence.check_cuts(path)
        elif any(self._opened.opens(kind, path) for kind in by):
            self.fence.check_customization(path)
        else:
            raise denial

    def grant(self, client_id: str, uri: str, *, read: bool, write: bool) -> None:
        """`resourceRequest`: grants only what the host's settings let clients ask for. Blocks for a moment."""
        path = real_path(file_path(uri))
        if not any(path.is_relative_to(place) for place in self._grantable):
            raise PermissionDenied(f"{path} is not among the directories this host lets clients ask for")
        may_read, may_write = self._granted.setdefault(client_id, (set(), set()))
        if read or not write:
            may_read.add(path)
        if write:
            may_write.add(path)

    def forget(self, client_id: str) -> None:
        """Forget the grants of a client that is gone."""
        self._granted.pop(client_id, None)


def _is_odd(path: str) -> bool:
    """Whether a name has bytes that are not UTF-8: such names break many programs."""
    return any("\ud800" <= character <= "\udfff" for character in path)


def _denied(uri: str, path: Path, *, write: bool) -> PermissionDenied:
    request: ResourceRequestParams = {"channel": ROOT_URI, "uri": uri, "read": True}
    if write:
        request["write"] = True
    verb = "write" if write else "read"
    return PermissionDenied(f"{path} is not among the places you may {verb}; ask with resourceRequest", request=request)


__all__ = ["Access"]
