"""Reads a plugin's manifest: its family, its name, and the paths that it declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ahpkit.customizations.build import Builder
from ahpkit.customizations.folders import in_skill, is_skill_file
from ahpkit.customizations.formats import (
    AGENT_PLUGIN,
    AGENT_PLUGIN_SCHEMA,
    CLAUDE,
    COPILOT,
    KIRO,
    MANIFEST_KEYS,
    MANIFESTS,
    MARKET_ENTRY,
    OPEN_PLUGIN,
    POWER_FILE,
    WITHOUT_TYPE,
    Format,
)
from ahpkit.customizations.globs import Paths
from ahpkit.customizations.jsonc import Json, Node
from ahpkit.customizations.jsonc import parse as parse_json
from ahpkit.customizations.marketplace import MARKETPLACES, as_manifest
from ahpkit.customizations.text import clean_name


@dataclass(frozen=True, slots=True)
class Manifest:
    """`path` and `json` are None for a plugin without one."""

    format: Format
    path: str | None = None
    json: Json | None = None

    def get(self, key: str) -> Any:
        return None if self.json is None else self.json.root.get(key)

    def node(self, key: str) -> Node | None:
        node = None if self.json is None else self.json.root.members.get(key)
        return None if node is None or node.value is None else node


@dataclass(frozen=True, slots=True)
class Declared:
    """What a manifest says about one kind of component: paths, inline values, and whether they replace the default
    folder."""

    paths: tuple[tuple[str, Node], ...] = ()
    inline: tuple[Node, ...] = ()
    exclusive: bool = False


def find_manifest(builder: Builder) -> Manifest | None:
    """The manifest to use; None if it is not fetched yet, or is broken. A broken manifest is an error of the whole
    plugin."""
    candidates = [(path, form) for path, form in MANIFESTS if path in builder.tree.files]
    if any(path == "plugin.json" for path, _ in candidates):
        root = _read(builder, "plugin.json", fatal=len(candidates) == 1)
        if root is None and (builder.tree.missing or builder.report.failed):
            return None
        if root is not None and _is_agent_plugin(root):
            return _chosen(builder, Manifest(AGENT_PLUGIN, "plugin.json", root), candidates)
    if not candidates:
        return _other(builder)
    path, form = candidates[0]
    parsed = _read(builder, path, fatal=True)
    return None if parsed is None else _chosen(builder, Manifest(form, path, parsed), candidates)


def listed_manifest(entry: Mapping[str, Any], path: str) -> Manifest:
    """The manifest made of a marketplace's entry."""
    return Manifest(MARKET_ENTRY, path, parse_json(as_manifest(entry)))


_WILD = frozenset("*?[{")
"""Characters that make a path a pattern."""

_SHAPES: Mapping[str, tuple[str, ...]] = {
    "version": ("a text",),
    "description": ("a text",),
    "author": ("an object", "a text"),
    "homepage": ("a text",),
    "repository": ("a text", "an object"),
    "license": ("a text", "an object"),
    "keywords": ("a list",),
    "displayName": ("a text",),
}
"""The types that the formats allow in fields that only describe a plugin."""


def report_shapes(builder: Builder, manifest: Manifest) -> None:
    """Report fields of a type that no format allows. The plugin is still read, but shown as degraded."""
    members = {} if manifest.json is None else manifest.json.root.members
    for key, kinds in _SHAPES.items():
        node = members.get(key)
        if node is None or (node.value is None and node.object is None and not node.is_list):
            continue
        kind = "an object" if node.object is not None else "a list" if node.is_list else "a text"
        if kind not in kinds or (kind == "a text" and not isinstance(node.value, str)):
            wanted = " or ".join(kinds)
            builder.report.warn("manifest-shape", f"`{key}` should be {wanted}", manifest.path or "")


def _is_agent_plugin(parsed: Json) -> bool:
    schema = parsed.root.get("$schema")
    begin, end = AGENT_PLUGIN_SCHEMA
    return isinstance(schema, str) and schema.startswith(begin) and schema.endswith(end)


def _other(builder: Builder) -> Manifest | None:
    """The manifest of another tool (`.<tool>-plugin/plugin.json`), if there is one."""
    for folder in builder.tree.folders[""].folders:
        path = f"{folder}/plugin.json"
        if folder.startswith(".") and path in builder.tree.files:
            parsed = _read(builder, path, fatal=True)
            return None if parsed is None else Manifest(OPEN_PLUGIN, path, parsed)
    if POWER_FILE in builder.tree.files:
        return Manifest(KIRO)
    markets = [path for path in MARKETPLACES if path in builder.tree.files] or [
        path for path in builder.tree.files if path.startswith(".") and path.endswith("-plugin/marketplace.json")
    ]
    if markets:
        builder.claimed.add(markets[0])
        builder.report.note("marketplace", "a list of plugins; the folders it names are read as plugins", markets[0])
    builder.report.note("no-manifest", "there is no manifest; the folder's name is the plugin's")
    return Manifest(CLAUDE if "/.claude/" in builder.tree.uri else COPILOT)


def _read(builder: Builder, path: str, *, fatal: bool) -> Json | None:
    """Read a manifest, which must be a JSON object. If the only manifest is not, the plugin cannot be read."""
    before = len(builder.report.items)
    parsed = builder.json(path)
    if parsed is not None and parsed.root.object is None:
        builder.report.warn("manifest-shape", "the manifest is not an object", path)
        parsed = None
    if fatal and parsed is None and len(builder.report.items) > before:
        builder.report.error("manifest", builder.report.items.pop().message, path)
    return parsed


def _chosen(builder: Builder, manifest: Manifest, candidates: list[tuple[str, Format]]) -> Manifest:
    for path, form in candidates:
        builder.claimed.add(path)
        if path != manifest.path:
            message = f"a second manifest ({form.title}); the plugin was read as {manifest.format.title}"
            builder.report.note("other-manifest", message, path)
    return manifest


def plugin_name(builder: Builder, manifest: Manifest, otherwise: str = "") -> str:
    """The manifest's name, else the one that its marketplace gives it, else the folder's."""
    given = manifest.get("name")
    name = clean_name(given) if isinstance(given, str) else ""
    if manifest.path and not name:
        builder.report.warn("plugin-name", "the manifest has no usable name; the folder's is used", manifest.path)
    elif manifest.path and name != given:
        builder.report.warn("name-cleaned", f"the plugin's name is shown as `{name}`", manifest.path)
    return name or otherwise or clean_name(builder.tree.name) or "plugin"


def report_keys(builder: Builder, manifest: Manifest) -> None:
    """Report keys that have no meaning, and components that AHP does not have."""
    if manifest.path is None or manifest.json is None:
        return
    members = manifest.json.root.members
    unknown = sorted(members.keys() - MANIFEST_KEYS)
    if unknown:
        builder.report.note("unknown-keys", f"unknown keys: {', '.join(unknown[:8])}", manifest.path)
    for key in WITHOUT_TYPE:
        if members.get(key) is not None and members[key].value:
            builder.report.note("no-type", f"`{key}`: AHP has no such customization; not listed", manifest.path)
    if not manifest.format.declares:
        for key in ("skills", "commands", "agents", "rules", "hooks", "mcpServers"):
            if key in members:
                message = f"`{key}` ignored: the places of this family ({manifest.format.title}) are fixed"
                builder.report.warn("fixed-places", message, manifest.path)


def declared(builder: Builder, manifest: Manifest, key: str) -> Declared:
    """The manifest's declaration of one kind of component: a path, a list of paths, `{paths, exclusive}`, or inline
    values."""
    node = manifest.node(key) if manifest.format.declares else None
    if node is None:
        return Declared()
    paths: list[tuple[str, Node]] = []
    inline: list[Node] = []
    listed = node.members.get("paths")
    for item in _items(listed or node):
        if isinstance(item.value, str):
            paths += ((path, item) for path in _inside(builder, manifest, key, item))
        elif item.object is not None:
            inline.append(item)
        else:
            _warn(builder, manifest, item, f"`{key}` holds something that is neither a path nor an object")
    return Declared(tuple(paths), tuple(inline), node.get("exclusive") is True)


def _items(node: Node) -> Iterator[Node]:
    if node.is_list:
        yield from node.items
    else:
        yield node


def _inside(builder: Builder, manifest: Manifest, key: str, item: Node) -> list[str]:
    """A declared path relative to the plugin, or what a pattern matches.

    A path that leads out of the plugin is refused; a missing one is reported.
    """
    given = str(item.value).strip().replace("\\", "/")
    path = inside(given)
    if path is None:
        _warn(builder, manifest, item, f"`{key}`: {given!r} is not a path inside the plugin")
    elif path in builder.tree.files or path in builder.tree.folders:
        return [path]
    elif not _WILD.intersection(path):
        _warn(builder, manifest, item, f"`{key}`: {given!r} is not there")
    elif found := _matched(builder, key, path):
        return found
    else:
        _warn(builder, manifest, item, f"`{key}`: {given!r} matches nothing")
    return []


def _matched(builder: Builder, key: str, pattern: str) -> list[str]:
    """What a pattern matches: files that can be such a component, and folders. For skills only their own files."""
    endings = (".json",) if key in ("hooks", "mcpServers") else (".md", ".mdc", ".toml")
    files = [path for path in Paths(builder.tree.files).matching(f"/{pattern}") if path.endswith(endings)]
    if key == "skills":
        alone = pattern.endswith(".md")
        files = [path for path in files if is_skill_file(path) or (alone and not in_skill(builder, path))]
    folders = Paths(builder.tree.folders).matching(f"/{pattern}")
    found = sorted({*files, *(folder for folder in folders if folder)})
    return [path for path in found if not any(path.startswith(f"{other}/") for other in found)]


def inside(given: str) -> str | None:
    """A path without `.` and `..`; None if it is absolute, a URL or empty, or leads out of the plugin."""
    if not given or given.startswith(("/", "~")) or ":" in given.split("/")[0]:
        return None
    parts: list[str] = []
    for part in given.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _warn(builder: Builder, manifest: Manifest, node: Node, message: str) -> None:
    line = None if manifest.json is None else manifest.json.line(node)
    builder.report.warn("manifest-path", message, manifest.path or "", line)


__all__ = [
    "Declared",
    "Manifest",
    "declared",
    "find_manifest",
    "inside",
    "listed_manifest",
    "plugin_name",
    "report_keys",
    "report_shapes",
]
