"""Which customizations a session gets: where to look, and reading what is there. Knows no sessions and no clients.

Everything here touches the disk and blocks; run it in a thread.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from ahpkit.customizations.assemble import Discovery, assemble
from ahpkit.customizations.details import Container, Parsed
from ahpkit.customizations.diagnostics import Diagnostic, load_state
from ahpkit.customizations.directory import parse_directory
from ahpkit.customizations.disk import DiskSource
from ahpkit.customizations.ids import stable_id
from ahpkit.customizations.places import USER, WORKSPACE, Place
from ahpkit.customizations.plugin import parse_plugin
from ahpkit.customizations.source import load, run_now
from ahpkit.customizations.text import clean_name
from ahpkit.customizations.tree import Documents, FileTree, Limits

_log = logging.getLogger(__name__)

_ANCESTORS = 20
"""Parents looked at on the way to the repository's root."""


@dataclass(frozen=True, slots=True)
class Location:
    """Somewhere customizations may be. `place` is None for a plugin."""

    id: str
    root: Path
    name: str
    place: Place | None = None
    boundary: Path | None = None
    """Links may lead anywhere in here; None: only inside the root."""
    here: bool = True
    """Listed while it is missing, if its place is offered; parents of the working directory are not."""
    trusted: bool = False
    """The user put it there or named it: its servers need no further trust. What a workspace brings does."""

    @property
    def uri(self) -> str:
        """The folder, or the file where the place is a single one."""
        files = () if self.place is None else self.place.files
        return (self.root / files[0] if len(files) == 1 else self.root).absolute().as_uri()

    @property
    def expected(self) -> bool:
        """There is something, or clients can save into it: shown before it is read. Touches the disk."""
        if self.place is not None and self.place.files:
            return any(os.path.lexists(self.root / name) for name in self.place.files)
        offered = self.place is not None and self.place.offered and self.here
        return self.place is None or offered or os.path.lexists(self.root)

    @property
    def loading(self) -> Container:
        """How the container is shown before it is read."""
        shown: dict[str, Any] = {
            "type": "plugin" if self.place is None else "directory",
            "id": self.id,
            "uri": self.uri,
            "name": self.name,
            "enabled": True,
            "load": {"kind": "loading"},
        }
        if self.place is not None:
            shown.update(contents=self.place.contents, writable=self.place.writable)
        return cast("Container", shown)


def locate(working_directory: Path | None, *, home: Path | None, plugins: Sequence[Path] = ()) -> list[Location]:
    """Everywhere to look, in order of precedence: the workspace and its parents, the user, the plugins."""
    found: list[Location] = []
    if working_directory is not None:
        folders = _up_to_repository(working_directory)
        for folder in folders:
            here = folder == folders[0]
            found += (_located(folder, place, folders[-1], here=here) for place in WORKSPACE)
    if home is not None:
        found += (replace(_located(home, place, home, prefix="~/"), trusted=True) for place in USER)
    found += (_plugin(folder) for folder in plugins)
    return list({location.id: location for location in reversed(found)}.values())[::-1]


def _located(base: Path, place: Place, boundary: Path, *, here: bool = True, prefix: str = "") -> Location:
    root = base / place.folder if place.folder else base
    name = place.title or f"{prefix}{place.path}"
    name = name if here else f"{clean_name(base.name)}/{name}"
    return Location(
        id=stable_id("directory", root.absolute().as_uri(), place.contents, place.layout, *place.files),
        root=root,
        name=name,
        place=place,
        boundary=boundary,
        here=here,
    )


def _plugin(folder: Path) -> Location:
    folder = folder.absolute()
    name = clean_name(folder.name) or "plugin"
    return Location(id=stable_id("plugin", folder.as_uri()), root=folder, name=name, trusted=True)


def _up_to_repository(folder: Path) -> list[Path]:
    """The folder and its parents up to the one that holds `.git`; without a repository the folder alone."""
    chain = [folder.absolute()]
    for _ in range(_ANCESTORS):
        if (chain[-1] / ".git").exists():
            return chain
        if chain[-1].parent == chain[-1]:
            break
        chain.append(chain[-1].parent)
    return chain[:1]


class Library:
    """Reads locations, and remembers parsed texts so that a second look at a container costs little."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._documents: dict[str, Documents] = {}

    def read(self, location: Location) -> Parsed | None:
        """Read a container now; None: there is nothing to list. Blocks; never raises: one container costs itself."""
        try:
            parsed = self._parsed(location)
        except Exception:
            _log.exception("reading %s failed", location.root)
            return _failed(location, "could not be read; the host's log says why")
        return parsed if _listed(location, parsed) else None

    def _parsed(self, location: Location) -> Parsed:
        place = location.place
        source = DiskSource(
            location.root, boundary=location.boundary, only=place.files if place and place.files else None
        )

        def parse(tree: FileTree) -> Parsed:
            root = str(location.root.absolute())
            if place is None:
                return parse_plugin(tree, id=location.id, root=root)
            return parse_directory(tree, place, location.loading, root=root)

        known = self._documents.get(location.id)
        parsed, self._documents[location.id] = run_now(load(source, parse, limits=self._limits, known=known))
        return parsed

    def forget(self, location_id: str) -> None:
        self._documents.pop(location_id, None)


def _failed(location: Location, message: str) -> Parsed:
    diagnostics = (Diagnostic("error", "failed", message),)
    return Parsed(cast("Container", {**location.loading, "load": load_state(diagnostics)}), {}, diagnostics)


def _listed(location: Location, parsed: Parsed) -> bool:
    """Single files are no container unless they hold something, or something is wrong with them."""
    found = bool(parsed.container.get("children") or parsed.diagnostics)
    only_files = location.place is not None and bool(location.place.files)
    return found or (location.expected and not only_files)


def discover(
    working_directory: Path | None, *, home: Path | None, plugins: Sequence[Path] = (), library: Library | None = None
) -> Discovery:
    """Everything a session in `working_directory` would get. Blocks while it reads."""
    library = library or Library()
    read = (library.read(location) for location in locate(working_directory, home=home, plugins=plugins))
    return assemble(parsed for parsed in read if parsed is not None)


__all__ = ["Library", "Location", "discover", "locate"]
