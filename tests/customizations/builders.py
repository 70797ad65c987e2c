"""Builds plugin packages and workspaces of every family, and reads them: shared by the customization tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ahpkit.customizations.details import Parsed
from ahpkit.customizations.discovery import Discovery, Library, discover, locate
from ahpkit.customizations.tree import Limits
from ahpkit.protocol.common.state import JsonObject

AGENT_PLUGIN = {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "portable"}

Files = Mapping[str, str | bytes | Mapping[str, Any] | list[Any]]


def write(root: Path, files: Files) -> Path:
    """Write files below `root`; mappings and lists become JSON."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
    return root


def text(body: str = "Do it.", **header: str) -> str:
    """A markdown file with a header; `_` in a key stands for `-`."""
    lines = [f"{key.replace('_', '-')}: {value}" for key, value in header.items()]
    return "\n".join(["---", *lines, "---", "", body, ""])


def skill(name: str, description: str = "Does a thing.", **header: str) -> str:
    return text(f"# {name}", name=name, description=description, **header)


def read_plugin(root: Path, *, limits: Limits | None = None) -> Parsed:
    [location] = locate(None, home=None, plugins=[root])
    parsed = Library(limits=limits).read(location)
    assert parsed is not None
    return parsed


def read_workspace(root: Path, *, home: Path | None = None, plugins: tuple[Path, ...] = ()) -> Discovery:
    """A working directory that is a repository of its own."""
    (root / ".git").mkdir(exist_ok=True)
    return discover(root, home=home, plugins=plugins)


def container(discovery: Discovery, name: str) -> JsonObject:
    return next(cast("JsonObject", entry) for entry in discovery.containers if entry["name"] == name)


def children(entry: Parsed | Mapping[str, Any], type: str | None = None) -> list[JsonObject]:
    source = cast("JsonObject", entry.container if isinstance(entry, Parsed) else entry)
    return [child for child in source["children"] if type is None or child["type"] == type]


def names(entry: Parsed | Mapping[str, Any], type: str | None = None) -> list[str]:
    return [child["name"] for child in children(entry, type)]


def child(entry: Parsed | Mapping[str, Any], name: str) -> JsonObject:
    return next(item for item in children(entry) if item["name"] == name)


def load(entry: Parsed) -> JsonObject:
    return cast("JsonObject", entry.container.get("load"))


def codes(entry: Parsed, level: str | None = None) -> list[str]:
    return [item.code for item in entry.diagnostics if level is None or item.level == level]


def messages(entry: Parsed) -> str:
    return "\n".join(str(item) for item in entry.diagnostics)
