"""A watched directory, or some files of one, as a container with children. Pure: takes a `FileTree`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from ahpkit.customizations.build import Builder
from ahpkit.customizations.components import rule
from ahpkit.customizations.details import Container, Parsed
from ahpkit.customizations.folders import agents_in, commands_in, hooks_in, prompts_in, rules_in, skills_in
from ahpkit.customizations.hook_files import hook_file
from ahpkit.customizations.mcp_files import mcp_file
from ahpkit.customizations.places import Layout, Place
from ahpkit.customizations.tree import FileTree, parent
from ahpkit.protocol.common.state import JsonObject

_FOLDERS: Mapping[Layout, Callable[[Builder], None]] = {
    "agents": lambda builder: agents_in(builder, "", nested=False, readme=False),
    "nested-agents": lambda builder: agents_in(builder, "", nested=True, readme=False),
    "skills": lambda builder: skills_in(builder, ""),
    "commands": lambda builder: commands_in(builder, "", nested=True, readme=False),
    "prompts": lambda builder: prompts_in(builder, ""),
    "rules": lambda builder: rules_in(builder, ""),
    "always-rules": lambda builder: rules_in(builder, "", always=True),
    "hooks": lambda builder: hooks_in(builder, ""),
}
"""How a folder of each layout is read."""


def _always_rule(builder: Builder, path: str) -> None:
    rule(builder, path, always=True)


def _nested_rule(builder: Builder, path: str) -> None:
    rule(builder, path, only_for=f"{parent(path)}/**")


_FILES: Mapping[Layout, Callable[[Builder, str], None]] = {
    "always-rules": _always_rule,
    "nested-rules": _nested_rule,
    "settings": lambda builder, path: hook_file(builder, path, only_wrapped=True),
    "servers": mcp_file,
}
"""How a single file is read."""


def parse_directory(tree: FileTree, place: Place, shown: Container, *, root: str) -> Parsed:
    """The children of a place, in the container that was shown while it loaded. One that is not there has none."""
    builder = Builder(tree, shown["id"], "workspace")
    if place.files or place.layout == "nested-rules":
        for file in sorted(tree.files.values(), key=lambda file: file.linked):
            _FILES[place.layout](builder, file.path)
    elif "" in tree.folders:
        _FOLDERS[place.layout](builder)
    return builder.finish(cast("JsonObject", shown), root=root)


__all__ = ["parse_directory"]
