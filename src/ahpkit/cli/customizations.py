"""`ahpkit customizations`: the tree a session in a directory would get, what is wrong with it, and switching it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ahpkit.cli.asking import Place
from ahpkit.cli.connection import connected, find_session, host_command, last_session, short_id, taken
from ahpkit.cli.shell_completion import SESSION
from ahpkit.cli.watching import repeat, watch_option
from ahpkit.protocol.session.enablement import PlacedCustomization, is_enabled

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from ahpkit.customizations.diagnostics import Diagnostic
    from ahpkit.customizations.discovery import Discovery
    from ahpkit.protocol.common.state import JsonObject

_WIDEST = 40
"""Columns of the names of containers. Longer names move what follows them."""

_STYLES = {"loaded": "green", "degraded": "yellow", "error": "red", "note": "dim", "warning": "yellow"}


class _ShownByDefault(click.Group):
    """`ahpkit customizations DIRECTORY` shows; `on` and `off` are commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ShownByDefault)
def customizations() -> None:
    """Show what a session in a directory would get, and switch what a session has on or off.

    \b
    Example:
      ahpkit customizations
      ahpkit customizations ~/project --json
      ahpkit customizations off reviews
    """


def _switch(name: str) -> click.Command:
    enabled = name == "on"

    @customizations.command(
        name,
        help=f"""Switch a customization of a session {name}: by its name or its id.

    Without NAME: list what is off in the session, since when, and how to undo it.

    \b
    Example:
      ahpkit customizations {name} reviews --session 3f2a
    """,
    )
    @click.argument("name", required=False)
    @click.option(
        "--session", shell_complete=SESSION, help="Of this session.  [default: the last one of this directory]"
    )
    @host_command
    async def switch(url: str | None, token: str | None, name: str | None, session: str | None) -> None:
        async with connected(url, token) as client:
            found = await (find_session(client, session) if session else last_session(client, Path.cwd()))
            opened = await client.session(found)
            if name is None:
                click.echo("\n".join(_off(opened.customizations())) or "nothing is off")
                return
            chosen = _meant(opened.customizations(), name)
            await taken(opened.toggle_customization(chosen["id"], enabled))
            click.echo(f"{chosen['name']} is {'on' if enabled else 'off'} in {short_id(found)}")

    return switch


def _off(placed: Sequence[PlacedCustomization]) -> list[str]:
    """What was switched off directly, by whom, and how to undo it. Children that are off only because of their
    container are not listed."""
    off = [one for one in placed if "id" in one.entry and not is_enabled(one.entry)]
    undo = "undo: ahpkit customizations on"
    return [f"{one.entry['name']}  {one.effective.why}; {undo} {one.entry['id']}" for one in off]


def _meant(placed: Sequence[Any], name: str) -> Any:
    """The one customization with that id or name."""
    entries = [one.entry for one in placed if "id" in one.entry]
    found = [one for one in entries if one["id"] == name] or [one for one in entries if one["name"] == name]
    if not found:
        known = ", ".join(sorted({one["name"] for one in entries})[:20]) or "none"
        raise click.ClickException(f"the session has no customization {name!r}; it has: {known}")
    if len(found) > 1:
        listed = [f"  {one['id']}  ({one['type']})" for one in found]
        raise click.ClickException("\n".join([f"{name!r} could be any of these; use the id:", *listed]))
    return found[0]


@customizations.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True), default=".")
@click.option("--plugin", "plugins", multiple=True, type=Place(path_type=Path), help="Add a plugin (repeatable).")
@click.option("--no-user", is_flag=True, help="Leave out the customizations in your home directory.")
@click.option("--notes", is_flag=True, help="Also show oddities that do no harm.")
@watch_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --watch one tree on each line.")
def show(directory: Path, plugins: tuple[Path, ...], no_user: bool, notes: bool, watching: bool, as_json: bool) -> None:
    """Show what a session in DIRECTORY would get: skills, agents, prompts, rules, hooks, MCP servers.

    Nothing is executed. Plugins and switches in the host's settings are not looked at: `ahpkit customizations off`
    lists what is off in a session, and why.

    \b
    Example:
      ahpkit customizations
      ahpkit customizations ~/project --plugin ~/plugins/reviews --json
    """
    from ahpkit.customizations.discovery import discover

    def tell(found: Discovery) -> None:
        if as_json:
            click.echo(json.dumps(as_data(found), indent=None if watching else 2))
        else:
            _show(found, notes=notes)

    home = None if no_user else Path.home()
    repeat(
        lambda: discover(directory.resolve(), home=home, plugins=plugins),
        tell,
        watching=watching,
        clear=not as_json,
        content=as_data,
    )


for _name in ("on", "off"):
    _switch(_name)


def as_data(found: Discovery) -> JsonObject:
    """The tree as clients get it, and the diagnostics with the containers that they are about."""
    from ahpkit.customizations.diagnostics import grouped

    diagnostics = [
        {"container": container_id, **{key: value for key, value in asdict(item).items() if value not in (None, ())}}
        for container_id, items in found.diagnostics.items()
        for item in grouped(items)
    ]
    return {"customizations": found.entries(), "diagnostics": diagnostics}


def _show(found: Discovery, *, notes: bool) -> None:
    from rich.console import Console

    console = Console()
    entries = found.entries()
    containers = [entry for entry in entries if entry["type"] in ("plugin", "directory")]
    width = min(max((len(entry["name"]) for entry in containers), default=0), _WIDEST)
    for entry in entries:
        diagnostics = found.diagnostics.get(entry["id"], ())
        console.print(_tree(entry, diagnostics, width, notes=notes) if entry in containers else _child(entry))
    for id in found.bare & found.diagnostics.keys():
        for line in (
            [] if any(entry["id"] == id for entry in entries) else _diagnostic_lines(found.diagnostics[id], notes=notes)
        ):
            console.print(line)
    bare = len(entries) - len(containers)
    children = [child for container in containers for child in container.get("children", [])]
    console.print(f"{len(containers)} containers, {len(children) + bare} customizations", style="dim")


def _tree(container: JsonObject, diagnostics: Sequence[Diagnostic], width: int, *, notes: bool) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    kind = container["load"]["kind"]
    writable = ", writable" if container.get("writable") else ""
    label = Text.assemble(
        (container["name"].ljust(width), "bold"),
        f"  {container['type']}{writable}  ",
        (kind, _STYLES[kind]),
        "" if container["enabled"] else "  off",
    )
    tree = Tree(label, guide_style="dim")
    for child in container.get("children", ()):
        tree.add(_child(child))
    for line in _diagnostic_lines(diagnostics, notes=notes):
        tree.add(line)
    return tree


def _diagnostic_lines(diagnostics: Sequence[Diagnostic], *, notes: bool) -> list[Text]:
    from rich.text import Text

    from ahpkit.customizations.diagnostics import UNLISTED, grouped

    shown = (item for item in grouped(diagnostics) if notes or item.level != "note" or item.code in UNLISTED)
    return [Text.assemble((f"{item.level}: ", _STYLES.get(item.level, "red")), str(item)) for item in shown]


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
    """Words for what is special about a child."""
    return (
        child.get("enabled") is False and "off",
        child.get("disableModelInvocation") and "not by the model",
        child.get("disableUserInvocation") and "not by the user",
        child.get("alwaysApply") and "always",
        ", ".join(child.get("globs", ())),
        child.get("state", {}).get("kind", ""),
    )


__all__ = ["as_data", "customizations"]
