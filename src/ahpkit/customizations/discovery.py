"""Finds and reads the customizations of a session, and joins them in order of precedence.

Functions that read from the disk block; run them in a thread. Joining is pure.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ahpkit.customizations.details import Container, Detail, Parsed
from ahpkit.customizations.diagnostics import UNLISTED, Diagnostic, Level, load_state
from ahpkit.customizations.folders import parse_directory
from ahpkit.customizations.marketplace import Entry, Market, inner_plugins, is_plugin, read_market
from ahpkit.customizations.plugin import parse_plugin
from ahpkit.customizations.source import IGNORED_FOLDERS, DiskSource, load, run_now
from ahpkit.customizations.standard_places import NESTED, NESTED_NAMES, USER, WORKSPACE, StandardPlace
from ahpkit.customizations.text import clean_label, clean_name
from ahpkit.customizations.tree import Documents, FileTree, Limits, join
from ahpkit.platform.files import followed
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.customizations import stable_id

_log = logging.getLogger(__name__)

_NESTED_DEPTH = 5
_NESTED_FOLDERS = 2_000
"""How many folders below the working directory instructions are searched."""

_LISTS_IN_LISTS = 3
"""How deep marketplaces may be nested."""

_ANCESTORS = 20
"""Parents that are searched on the way to the repository's root."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place where customizations may be. `place` is None for a plugin."""

    id: str
    root: Path
    name: str
    place: StandardPlace | None = None
    boundary: Path | None = None
    """Links may lead to any place below this folder; None: only inside the root."""
    here: bool = True
    """Whether this place may be listed before it exists. Parents of the working directory may not."""
    trusted: bool = False
    """Whether the user has made or named it. Then its servers need no further trust."""
    entry: Mapping[str, Any] | None = field(default=None, hash=False)
    """The marketplace's entry for a plugin."""
    findings: tuple[Diagnostic, ...] = ()
    """Problems that were found during the search for this place."""
    inner: tuple[str, ...] = ()
    """Its folders that are read as separate plugins."""
    taken: tuple[str, ...] = ()
    """Its files and folders that other plugins of the same folder list."""
    names_rest: bool = True
    """Whether this plugin reports files that no plugin lists. Of several plugins in one folder only the first does."""
    absent: str = ""
    """The message for a plugin whose folder does not exist."""

    @property
    def key(self) -> str:
        """Identifies this place and the way in which it is read. The same folder is read differently for a session in
        it, for a session below it, and as the user's own."""
        return "\0".join((self.id, self.name, str(self.boundary), str(self.here), str(self.trusted)))

    @property
    def uri(self) -> str:
        """The folder, or the file where the place is a single one."""
        files = () if self.place is None else self.place.files
        return (self.root / files[0] if len(files) == 1 else self.root).absolute().as_uri()

    @property
    def expected(self) -> bool:
        """Whether this place is shown before it is read: it exists, or clients can save files into it. Reads from the
        disk."""
        if self.bare:
            return False
        if self.place is not None and self.place.files:
            return any(os.path.lexists(self.root / name) for name in self.place.files)
        if self.place is not None and self.place.quiet:
            return False
        offered = self.place is not None and self.place.offered and self.here
        return self.place is None or offered or os.path.lexists(self.root)

    @property
    def bare(self) -> bool:
        """Whether it holds the user's own servers, which are listed directly and not in a directory."""
        return self.trusted and self.place is not None and self.place.contents == "mcpServer"

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
    """All places to search, in order of precedence: the workspace and its parents, the user, the plugins, and the
    subfolders of the workspace."""
    found: list[Location] = []
    if working_directory is not None:
        folders = _up_to_repository(working_directory)
        for folder in folders:
            here = folder == folders[0]
            found += (located(folder, place, folders[-1], here=here) for place in WORKSPACE)
    if home is not None:
        found += (replace(located(home, place, home, prefix="~/"), trusted=True) for place in USER)
    for folder in plugins:
        found += _plugins(folder)
    if working_directory is not None:  # Last, so that a file of a plugin in the workspace belongs to the plugin.
        found.append(located(working_directory, NESTED, _up_to_repository(working_directory)[-1]))
    return list({location.id: location for location in reversed(found)}.values())[::-1]


def located(base: Path, place: StandardPlace, boundary: Path, *, here: bool = True, prefix: str = "") -> Location:
    """A place below a folder."""
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


def _plugins(folder: Path, above: tuple[Path, ...] = ()) -> list[Location]:
    """A plugin; or the plugins that a marketplace or a folder of plugins holds. Touches the disk.

    `above` are the lists that contain this folder.
    """
    market = read_market(folder)
    if market is None:
        inner = [] if is_plugin(folder) else inner_plugins(folder)
        return [_plugin(folder, inner=inner), *(one for each in inner for one in _of_entry(Entry(each, ""), above))]
    real = Path(followed(folder))
    inner = [entry.folder for entry in market.local if entry.folder != real]
    said = tuple(_market_findings(market, broken="warning" if is_plugin(folder) else "error"))
    here = [_plugin(real, entry, said, inner) for entry in market.local if entry.folder == real]
    if not here:  # Other files beside the plugins of a list are reported.
        only_list = None if is_plugin(folder) or not inner else Entry(real, folder.name, {"name": folder.name})
        here = [_plugin(real, only_list, said, inner)]
    others = [_of_entry(entry, (*above, real)) for entry in market.local if entry.folder != real]
    own = [found[0] for found in others if len(found) == 1]
    return [*_side_by_side([*here, *own], market), *(one for found in others if len(found) > 1 for one in found)]


def _of_entry(entry: Entry, above: tuple[Path, ...]) -> list[Location]:
    """A plugin of a list. If its folder contains a list, also the plugins of that list."""
    market = None
    if entry.declared is None and entry.folder not in above and len(above) < _LISTS_IN_LISTS:
        market = read_market(entry.folder)
    if market is None or _is_alone(entry.folder, market):
        return [_plugin(entry.folder, entry)]
    return _plugins(entry.folder, above)


def _is_alone(folder: Path, market: Market) -> bool:
    """Whether a plugin's list holds only the plugin itself on this disk, which is common."""
    others = [one for one in market.local if one.folder != folder or one.declared is not None]
    return not others and (bool(market.local) or is_plugin(folder))


def _side_by_side(found: Sequence[Location], market: Market) -> Iterator[Location]:
    """The plugins of one list. Plugins that share a folder do not report each other's files.

    A folder with a manifest is one plugin, however often it is listed: its manifest says what it holds.
    """
    named: dict[Path, set[str]] = {}
    for entry in market.local:
        named.setdefault(entry.folder, set()).update(entry.named)
    listed = Counter(location.root for location in found)
    seen: set[Path] = set()
    for location in found:
        if listed[location.root] > 1 and is_plugin(location.root):
            if location.root in seen:
                continue
            message = f"names this folder {listed[location.root]} times; its manifest makes it one plugin"
            often = Diagnostic("note", "marketplace", message, market.path)
            location = replace(location, findings=(*location.findings, often))
        taken = tuple(sorted(named.get(location.root, ())))
        yield replace(location, taken=taken, names_rest=location.root not in seen)
        seen.add(location.root)


def _market_findings(market: Market, *, broken: Level) -> Iterator[Diagnostic]:
    if market.broken:
        yield Diagnostic(broken, "marketplace", f"the list of plugins cannot be read ({market.broken})", market.path)
    elif not (market.local or market.elsewhere or market.missing or market.odd):
        yield Diagnostic("warning", "marketplace", "the list names no plugins", market.path)
    if market.elsewhere:
        names = ", ".join(map(clean_name, market.elsewhere[:5]))
        more = f" and {len(market.elsewhere) - 5} more" if len(market.elsewhere) > 5 else ""
        message = f"not on this machine, and nothing is fetched: {names}{more}; install them, then name their folders"
        yield Diagnostic("warning", "marketplace", message, market.path)
    if market.odd:
        entries = "1 entry" if market.odd == 1 else f"{market.odd} entries"
        yield Diagnostic("warning", "marketplace", f"{entries} without a name or a `source`", market.path)
    if market.missing:
        names = ", ".join(repr(clean_label(source)) for source in market.missing[:5])
        more = f" and {len(market.missing) - 5} more" if len(market.missing) > 5 else ""
        what = "the folder" if len(market.missing) == 1 else "folders"
        message = f"names {what} {names}{more}, which {'is' if len(market.missing) == 1 else 'are'} not there"
        yield Diagnostic("warning", "marketplace", message, market.path)


def _plugin(
    folder: Path,
    entry: Entry | None = None,
    findings: tuple[Diagnostic, ...] = (),
    inner: Sequence[Path] = (),
) -> Location:
    absent = why_absent(folder)
    folder = folder.absolute()
    given = "" if entry is None else clean_name(entry.name)
    declared = None if entry is None else entry.declared
    key = (folder.as_uri(), given) if declared is not None else (folder.as_uri(),)
    return Location(
        id=stable_id("plugin", *key),
        root=folder,
        name=given or clean_name(folder.name) or "plugin",
        trusted=True,
        entry=declared,
        findings=findings,
        inner=tuple(one.absolute().relative_to(folder).as_posix() for one in inner),
        absent=absent,
    )


def why_absent(named: Path) -> str:
    """Why the name that a person gave for a plugin is not a folder."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", str(named)) or re.fullmatch(r"[^/]+@[^/].*", str(named)):
        return "packages and marketplaces by URI are not supported; install it, and name its folder"
    return "there is no such folder"


def _nested_instructions(root: Path) -> list[str]:
    """`AGENTS.md` and the like below a folder, within bounds: a workspace can be very large."""
    found: list[str] = []
    seen = 0
    level = [""]
    for _ in range(_NESTED_DEPTH):
        below: list[str] = []
        for folder in level:
            try:
                with os.scandir(root / folder) as entries:
                    names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, 10_000)]
            except OSError:
                continue
            inner = sorted(name for name, is_folder in names if is_folder)
            below += [join(folder, name) for name in inner if name not in IGNORED_FOLDERS and name[0] != "."]
            if folder:
                found += [join(folder, name) for name in NESTED_NAMES if (name, False) in names]
            seen += 1
            if seen >= _NESTED_FOLDERS:
                return found
        level = below
    return found


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
    """Reads locations, and remembers parsed texts, so that reading a container again costs little."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._documents: dict[str, Documents] = {}

    def read(self, location: Location) -> Parsed | None:
        """Read a container; None: there is nothing to list.

        Blocks. Never raises, so that one bad container does not affect others.
        """
        try:
            parsed = self._parsed(location)
        except Exception:  # Strangers write these files. All other containers are still read.
            _log.exception("reading %s failed", location.root)
            return _failed(location, "could not be read; the host's log says why")
        return parsed if _listed(location, parsed) else None

    def _parsed(self, location: Location) -> Parsed:
        place = location.place
        only = place.files if place and place.files else None
        if place is NESTED:
            only = _nested_instructions(location.root)
        source = DiskSource(location.root, boundary=location.boundary, only=only)

        def parse(tree: FileTree) -> Parsed:
            root = str(location.root.absolute())
            if place is None:
                return parse_plugin(
                    tree,
                    id=location.id,
                    root=root,
                    name=location.name,
                    entry=location.entry,
                    findings=location.findings,
                    inner=location.inner,
                    taken=location.taken,
                    names_rest=location.names_rest,
                    absent=location.absent,
                )
            return parse_directory(tree, place, location.loading, root=root)

        known = self._documents.get(location.key)
        parsed, self._documents[location.key] = run_now(load(source, parse, limits=self._limits, known=known))
        return parsed

    def forget(self, key: str) -> None:
        self._documents.pop(key, None)


def _failed(location: Location, message: str) -> Parsed:
    diagnostics = (Diagnostic("error", "failed", message),)
    return Parsed(cast("Container", {**location.loading, "load": load_state(diagnostics)}), {}, diagnostics)


def _listed(location: Location, parsed: Parsed) -> bool:
    """Single files count as a container only when they contain something, or when something is wrong with them."""
    if location.inner:  # A folder of plugins is listed itself only when it holds something else.
        odd = any(item.level != "note" or item.code in UNLISTED for item in parsed.diagnostics)
        return odd or bool(parsed.container.get("children"))
    found = bool(parsed.container.get("children") or parsed.diagnostics)
    only_files = location.place is not None and bool(location.place.files or location.place.quiet)
    return found or (location.expected and not only_files)


def discover(
    working_directory: Path | None, *, home: Path | None, plugins: Sequence[Path] = (), library: Library | None = None
) -> Discovery:
    """All customizations for a session in `working_directory`. Blocks while it reads."""
    library = library or Library()
    locations = locate(working_directory, home=home, plugins=plugins)
    read = (library.read(location) for location in locations)
    found = assemble(parsed for parsed in read if parsed is not None)
    return replace(found, bare=frozenset(location.id for location in locations if location.bare))


@dataclass(frozen=True, slots=True)
class Discovery:
    """The containers in order of precedence, and the details that stay on the host."""

    containers: list[Container]
    details: Mapping[str, Detail]
    diagnostics: Mapping[str, tuple[Diagnostic, ...]]
    """Container id → its diagnostics."""
    roots: Mapping[str, str] = field(default_factory=dict[str, str])
    """Container id → its folder on this machine."""
    bare: frozenset[str] = frozenset()
    """Containers of the user's own servers, which are listed directly and not in a directory."""

    def entries(self) -> list[JsonObject]:
        """The containers as a session lists them, with bare servers in place of theirs."""
        listed: list[JsonObject] = []
        for container in cast("list[JsonObject]", self.containers):
            children: list[JsonObject] = container.get("children") or []
            listed += children if container["id"] in self.bare and children else [container]
        return listed


def assemble(parsed: Iterable[Parsed]) -> Discovery:
    """Join containers: a file is listed once, and two plugins with the same name are told apart."""
    containers: list[Container] = []
    details: dict[str, Detail] = {}
    diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
    roots: dict[str, str] = {}
    for entry in _named_once(_listed_once(parsed)):
        container_id = entry.container["id"]
        containers.append(entry.container)
        details.update(entry.details)
        diagnostics[container_id] = entry.diagnostics
        if entry.root is not None:
            roots[container_id] = entry.root
    return Discovery(containers, details, diagnostics, roots)


def _listed_once(parsed: Iterable[Parsed]) -> Iterator[Parsed]:
    """Leave out children whose file an earlier container lists."""
    seen: dict[str, str] = {}
    for entry in parsed:
        twice = {child_id: seen[real] for child_id, real in entry.real_paths.items() if real in seen}
        for real in entry.real_paths.values():
            seen.setdefault(real, entry.container["name"])
        yield _without(entry, twice) if twice else entry


def _without(entry: Parsed, listed: Mapping[str, str]) -> Parsed:
    """The container without the children that another one lists, by child id."""
    children = entry.container.get("children", [])
    notes = [
        Diagnostic("note", "same-file", f"`{child['name']}` is the same file as in {listed[child['id']]}")
        for child in children
        if child["id"] in listed
    ]
    kept = [child for child in children if child["id"] not in listed]
    return replace(
        entry,
        container=cast("Container", {**entry.container, "children": kept}),
        details={key: detail for key, detail in entry.details.items() if key not in listed},
        diagnostics=(*entry.diagnostics, *notes),
    )


def _named_once(parsed: Iterable[Parsed]) -> Iterator[Parsed]:
    """Report the second of two plugins with the same name, because names are found in the first one."""
    seen: dict[str, str] = {}
    for entry in parsed:
        container = entry.container
        if container["type"] == "plugin":
            other = seen.setdefault(container["name"], container["uri"])
            if other != container["uri"]:
                message = (
                    f"another plugin is called `{container['name']}` too ({other}); its components are found first"
                )
                entry = _warned(entry, Diagnostic("warning", "plugin-twice", message))
        yield entry


def _warned(entry: Parsed, warning: Diagnostic) -> Parsed:
    diagnostics = (*entry.diagnostics, warning)
    container = cast("Container", {**entry.container, "load": load_state(diagnostics)})
    return replace(entry, container=container, diagnostics=diagnostics)


__all__ = ["Discovery", "Library", "Location", "assemble", "discover", "locate", "located", "why_absent"]
