"""Reads lists of plugins (marketplaces and packs), so that each listed folder is read as a plugin.

It reads small JSON files and folder names, and fetches nothing. Entries that are not on this disk are only named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ahpkit.customizations.formats import MANIFESTS, POWER_FILE
from ahpkit.customizations.jsonc import JsonError
from ahpkit.customizations.jsonc import parse as parse_json
from ahpkit.platform.files import followed

MARKETPLACES = (
    ".claude-plugin/marketplace.json",
    ".github/plugin/marketplace.json",
    ".cursor-plugin/marketplace.json",
    ".plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
    "marketplace.json",
)
"""The places where products keep the list, by precedence."""

_MANIFESTS = (*(path for path, _ in MANIFESTS), POWER_FILE)

_COMPONENTS = ("skills", "commands", "agents", "rules", "hooks", "mcpServers", "prompts")

_LIMIT = 1024 * 1024
"""Bytes of a list; the largest public one has 300 kB."""

_MOST = 2_000
"""The largest number of entries that are loaded."""

_PACK_FOLDERS = 2_000
"""Folders that are searched for plugins, inside a folder that is not a plugin itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A plugin in a list: its folder, and its entry in the list."""

    folder: Path
    name: str
    declared: Mapping[str, Any] | None = None
    """The entry, if it names components and so replaces a manifest."""

    @property
    def named(self) -> tuple[str, ...]:
        """Files and folders below its folder that the entry names as components."""
        said = [] if self.declared is None else [self.declared.get(key) for key in _COMPONENTS]
        each = [one for value in said for one in (cast("list[Any]", value) if isinstance(value, list) else [value])]
        paths = (os.path.normpath(one) for one in each if isinstance(one, str) and one)
        return tuple(path for path in paths if path != "." and not path.startswith(("..", "/")))


@dataclass(slots=True)
class Market:
    """The content of a list."""

    path: str
    local: list[Entry] = field(default_factory=list[Entry])
    elsewhere: list[str] = field(default_factory=list[str])
    """Names of plugins that would have to be fetched."""
    missing: list[str] = field(default_factory=list[str])
    """Folders that are named but do not exist."""
    odd: int = 0
    """Entries that name neither a folder nor anything else."""
    broken: str = ""
    """Why the list cannot be read; None: it can."""


def is_plugin(folder: Path) -> bool:
    """Whether a folder has its own manifest."""
    return any((folder / name).is_file() for name in _MANIFESTS) or bool(_of_tools(folder, "plugin.json"))


def _of_tools(folder: Path, name: str) -> list[str]:
    """Files of this name that further products keep: `.<tool>-plugin/<name>`."""
    try:
        return sorted(path.relative_to(folder).as_posix() for path in folder.glob(f".*-plugin/{name}"))
    except OSError:
        return []


def _market_path(root: Path) -> str | None:
    known = next((name for name in MARKETPLACES if (root / name).is_file()), None)
    return known or next(iter(_of_tools(root, "marketplace.json")), None)


def read_market(root: Path) -> Market | None:
    """The list of plugins in a folder; None if the folder has none. Reads from the disk."""
    path = _market_path(root)
    if path is None:
        return None
    market = Market(path)
    try:
        with (root / path).open("rb") as file:
            data = file.read(_LIMIT + 1)
        parsed = parse_json(data[:_LIMIT].decode("utf-8-sig", "replace")).root.object or {}
    except (OSError, JsonError) as error:
        market.broken = str(error)
        return market
    metadata = parsed.get("metadata")
    base = cast("dict[str, Any]", metadata).get("pluginRoot", "") if isinstance(metadata, dict) else ""
    listed = parsed.get("plugins")
    entries = cast("list[Any]", listed)[:_MOST] if isinstance(listed, list) else []
    for entry in entries:
        if isinstance(entry, dict) and isinstance(cast("dict[str, Any]", entry).get("source"), str | dict):
            _sort(market, root, base if isinstance(base, str) else "", cast("dict[str, Any]", entry))
        else:
            market.odd += 1
    return market


def _sort(market: Market, root: Path, base: str, entry: Mapping[str, Any]) -> None:
    name = entry.get("name") if isinstance(entry.get("name"), str) else ""
    source = _local_source(entry.get("source"))
    if source is None:
        market.elsewhere.append(str(name or "unnamed"))
        return
    real_root = followed(root)
    tried = [os.path.normpath(os.path.join(real_root, base, source)), os.path.normpath(os.path.join(real_root, source))]
    for folder in tried:
        real = followed(folder)
        if (real == real_root or real.startswith(real_root + os.sep)) and os.path.isdir(real):
            declared = entry if any(key in entry for key in _COMPONENTS) else None
            market.local.append(Entry(Path(real), str(name or ""), declared))
            return
    market.missing.append(source)


def _local_source(source: Any) -> str | None:
    """A path inside the list's folder; None for git, npm, archives and other hosts."""
    if isinstance(source, Mapping):
        about = cast("Mapping[str, Any]", source)
        kind, path = about.get("source", about.get("type")), about.get("path")
        return path if kind in ("local", "directory", "path", None) and isinstance(path, str) else None
    if not isinstance(source, str) or "://" in source or source.startswith(("git@", "/", "~")):
        return None
    return source if source.startswith(".") or ":" not in source else None


def inner_plugins(root: Path) -> list[Path]:
    """Plugins and lists of plugins in the folders below a folder that is neither of them."""
    return [folder for folder in _folders(root) if _is_whole(folder)]


def _is_whole(folder: Path) -> bool:
    return is_plugin(folder) or _market_path(folder) is not None


def _folders(root: Path) -> Iterator[Path]:
    seen = 0
    level = [root]
    for _ in range(3):
        below: list[Path] = []
        for folder in level:
            try:
                with os.scandir(folder) as entries:
                    names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            except OSError:
                continue
            below += [folder / name for name in names if not name.startswith(".") and name != "node_modules"]
        for folder in below:
            seen += 1
            if seen > _PACK_FOLDERS:
                return
            yield folder
        level = [folder for folder in below if not _is_whole(folder)]


def as_manifest(entry: Mapping[str, Any]) -> str:
    """An entry as the text of a manifest."""
    return json.dumps({key: value for key, value in entry.items() if key not in ("source", "strict")})


__all__ = ["MARKETPLACES", "Entry", "Market", "as_manifest", "inner_plugins", "is_plugin", "read_market"]
