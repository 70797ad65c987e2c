"""The fence: the directories below which sessions live, and what is excluded from all of them.

Roots are named when the host starts. The defaults are the user's home and the directory in which the host was started.
The owner can change them while the host runs (`ahpkit roots`): the change is kept in a private file, which is read
again when it changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from ahpkit.host.owner_file import OwnerFile
from ahpkit.host.resources.safe_open import Identity, identity
from ahpkit.host.resources.sealed import plain
from ahpkit.platform.files import followed
from ahpkit.protocol.errors import InvalidParams, PermissionDenied

_SYSTEM = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys"),
    *("/usr", "/var", "/root", "/lost+found", "/snap", "/nix"),
    *("/System", "/Library", "/Applications", "/Volumes/Recovery", "/private", "/cores"),
)
"""Directories of the operating system. No root allows them, except for a home directory in one of them."""

_NOT_SYSTEM = (
    "/var/tmp",
    "/var/www",
    "/var/folders",
    "/var/home",
    "/run/media",
    "/private/tmp",
    "/private/var/folders",
)
"""Exceptions: directories below the system's in which people keep projects."""

_HOMES = ("/home", "/Users", "/var/home", "/export/home")
"""Directories that hold one home directory for each user."""


@dataclass(frozen=True, slots=True)
class ExcludedPlaces:
    """The places that are excluded from every root. Pure: takes real paths."""

    home: Path
    private: Sequence[Path] = ()
    """The data and runtime directories, files with the host's own settings and keys."""
    open_folders: Sequence[str] = ()
    """Folders below hidden entries of a home that clients may use: customization folders that are listed as
    writable."""

    def reason(self, path: PurePath) -> str | None:
        """Why this path cannot be reached with any roots; None: it can."""
        if any(_inside(path, private) for private in self.private):
            return "it belongs to the host itself"
        home = self._home_of(path)
        if home is None:
            return "it is a system directory" if _is_system(path) else None
        inner = path.relative_to(home)
        if inner.parts and plain(inner.parts[0]).startswith(".") and not self._is_open(inner):
            return f"{inner.parts[0]} is a hidden entry of a home directory"
        return None

    def opens(self, path: PurePath) -> bool:
        """Whether this path is in a hidden folder of the user's home that clients may use."""
        return (
            path.is_relative_to(self.home) and self._is_open(path.relative_to(self.home)) and self.reason(path) is None
        )

    def _home_of(self, path: PurePath) -> PurePath | None:
        if path.is_relative_to(self.home):
            return self.home
        for homes in map(PurePath, _HOMES):
            if path.is_relative_to(homes) and path != homes:
                return homes / path.relative_to(homes).parts[0]
        return None

    def _is_open(self, inner: PurePath) -> bool:
        return any(inner.is_relative_to(folder) for folder in self.open_folders)


@dataclass(slots=True)
class Fence:
    """Roots and excluded places together. Without `start` everything that is not excluded is allowed."""

    excluded: ExcludedPlaces
    start: Sequence[Path] | None = None
    """The roots from the start of the host."""
    owner_file: OwnerFile | None = None
    """The roots that the owner has added and removed since."""
    _real: dict[str, Path] = field(default_factory=dict[str, Path])

    def roots(self) -> list[Path]:
        """The roots now, in the order they were named."""
        if self.start is None:
            return [Path("/")]
        said = {} if self.owner_file is None else self.owner_file.read()
        return list(dict.fromkeys(self._resolved(root) for root in effective_roots(self.start, said)))

    def refusal(self, path: Path) -> str | None:
        """Why no session may live at a real path, with the option that would allow it; None: it may."""
        if (reason := self.excluded.reason(path)) is not None:
            return f"{path}: {reason}, and --root cannot allow it"
        roots = self.roots()
        if any(path.is_relative_to(root) for root in roots):
            return None
        named = ", ".join(map(str, roots)) or "none"
        return (
            f"{path} is outside the directories this host works in ({named}). To allow it, start the host with "
            f"--root {path}, or run on its machine: ahpkit roots add {path}"
        )

    def check(self, path: Path) -> None:
        """Raise `PermissionDenied` for a real path outside of the fence."""
        if (reason := self.refusal(path)) is not None:
            raise PermissionDenied(reason)

    def check_cuts(self, path: Path) -> None:
        """Raise `PermissionDenied` for a real path in an excluded place. The path may lie outside of the roots."""
        if (reason := self.excluded.reason(path)) is not None:
            raise PermissionDenied(f"{path}: {reason}, and --root cannot allow it")

    def check_customization(self, path: Path) -> None:
        """Raise `PermissionDenied` for a customization directory that may not be used. Those of the home may be used
        with any roots. Those of a project must lie inside the roots."""
        if not self.excluded.opens(path):
            self.check(path)

    def barred(self) -> frozenset[Identity]:
        """The host's own directories, identified by device and inode."""
        found: set[Identity] = set()
        for path in self.excluded.private:
            with suppress(OSError):
                found.add(identity(os.stat(path)))
        return frozenset(found)

    def _resolved(self, root: Path) -> Path:
        if str(root) not in self._real:
            self._real[str(root)] = Path(followed(root))
        return self._real[str(root)]


def effective_roots(start: Iterable[Path], said: Mapping[str, Sequence[str]]) -> list[Path]:
    """The roots of the start and those that were added, without those that were removed."""
    removed = set(said.get("removed", ()))
    named = [*map(str, start), *said.get("added", ())]
    return [Path(root) for root in dict.fromkeys(named) if root not in removed]


def default_roots(started_in: Path, home: Path, excluded: ExcludedPlaces) -> list[Path]:
    """The default roots: the home directory, and the directory where the host was started if it is suitable."""
    here = Path(followed(started_in))
    usable = here != Path(here.anchor) and here not in map(Path, _HOMES) and excluded.reason(here) is None
    return [*([here] if usable else []), Path(followed(home))]


def check_root(root: Path, excluded: ExcludedPlaces) -> Path:
    """The real path of a directory that somebody names as a root; raises `InvalidParams` when it cannot be a root."""
    real = Path(followed(root))
    if not real.is_dir():
        raise InvalidParams(f"{root} is not a directory, so it cannot be a root")
    if real != Path(real.anchor) and (reason := excluded.reason(real)) is not None:
        raise InvalidParams(f"{root} cannot be a root: {reason}")
    return real


def _is_system(path: PurePath) -> bool:
    return any(_inside(path, PurePath(system)) for system in _SYSTEM) and not any(
        _inside(path, PurePath(place)) for place in _NOT_SYSTEM
    )


def _inside(path: PurePath, folder: PurePath) -> bool:
    """Whether a path lies in a directory, also in another spelling: on some file systems `/ETC` is `/etc`."""
    parts, wanted = path.parts, folder.parts
    return len(parts) >= len(wanted) and all(
        one == other or plain(one) == plain(other) for one, other in zip(parts, wanted, strict=False)
    )


__all__ = ["ExcludedPlaces", "Fence", "check_root", "default_roots", "effective_roots"]
