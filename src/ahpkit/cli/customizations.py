"""`ahpkit customizations`: the tree a session in a directory would get, and what is wrong with it. Starts no host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from ahpkit.customizations.assemble import Discovery
    from ahpkit.customizations.diagnostics import Diagnostic
    from ahpkit.protocol.common.state import JsonObject

_STYLES = {"loaded": "green", "degraded": "yellow", "error": "red", "note": "dim", "warning": "yellow"}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True), default=".")
@click.option("--plugin", "plugins", multiple=True, type=click.Path(path_type=Path), help="Add a plugin (repeatable).")
@click.option("--no-user", is_flag=True, help="Leave out what is in your home directory.")
@click.option("--notes", is_flag=True, help="Show what is odd but harmless, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def customizations(directory: Path, plugins: tuple[Path, ...], no_user: bool, notes: bool, as_json: bool) -> None:
    """Show what a session in DIRECTORY would get: skills, agents, prompts, rules, hooks, MCP servers.

    Nothing is executed.

    \b
    Example:
      ahpkit customizations
      ahpkit customizations ~/project --plugin ~/plugins/reviews --json
    """
    from ahpkit.customizations.discovery import discover

    found = discover(directory.resolve(), home=None if no_user else Path.home(), plugins=plugins)
    if as_json:
        click.echo(json.dumps(as_data(found), indent=2))
    else:
        _show(found, notes=notes)


def as_data(found: Discovery) -> JsonObject:
    """The tree as it goes to clients, and every diagnostic with the container it belongs to."""
    diagnostics = [
        {"container": container_id, **{key: value for key, value in asdict(item).items() if value is not None}}
        for container_id, items in found.diagnostics.items()
        for item in items
    ]
    return {"customizations": found.containers, "diagnostics": diagnostics}


def _show(found: Discovery, *, notes: bool) -> None:
    from rich.console import Console

    console = Console()
    for container in found.containers:
        console.print(_tree(cast("JsonObject", container), found.diagnostics[container["id"]], notes=notes))
    children = [child for container in found.containers for child in container.get("children", [])]
    console.print(f"{len(found.containers)} containers, {len(children)} customizations", style="dim")


def _tree(container: JsonObject, diagnostics: Sequence[Diagnostic], *, notes: bool) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    kind = container["load"]["kind"]
    writable = ", writable" if container.get("writable") else ""
    label = Text.assemble(
        (container["name"], "bold"),
        f"  {container['type']}{writable}  ",
        (kind, _STYLES[kind]),
        "" if container["enabled"] else "  off",
    )
    tree = Tree(label, guide_style="dim")
    for child in container.get("children", ()):
        tree.add(_child(child))
    for item in diagnostics:
        if notes or item.level != "note":
            tree.add(Text.assemble((f"{item.level}: ", _STYLES.get(item.level, "red")), str(item)))
    return tree


def _child(child: JsonObject) -> Text:
    from rich.text import Text

    facts = [word for word in _facts(child) if word]
    description = " ".join(str(child.get("description", "")).split())
    label = Text.assemble((f"{child['type']} ", "cyan"), child["name"])
    if facts:
        label.append(f"  ({', '.join(facts)})", "dim")
    if description:
        label.append(f"  {description}", "dim")
    label.no_wrap = True
    label.overflow = "ellipsis"
    return label


def _facts(child: JsonObject) -> Sequence[Any]:
    """What is special about a child, in words."""
    return (
        child.get("enabled") is False and "off",
        child.get("disableModelInvocation") and "not by the model",
        child.get("disableUserInvocation") and "not by the user",
        child.get("alwaysApply") and "always",
        ", ".join(child.get("globs", ())),
        child.get("state", {}).get("kind", ""),
    )


__all__ = ["as_data", "customizations"]
