"""`ahpkit agents`: lists the agents that are installed, with version and state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import click

from ahpkit.agents.acp.installing import FoundAgent, check_all, look
from ahpkit.agents.acp.installing import install as install_agent
from ahpkit.agents.acp.registry import KNOWN_AGENTS, KnownAgent
from ahpkit.cli.output import progress, tilde
from ahpkit.cli.watching import repeat, watch_option
from ahpkit.client.endpoints import find_endpoint

__all__ = ["agents"]


class _ListedByDefault(click.Group):
    """The group of `ahpkit agents`: without a command it runs `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ListedByDefault)
def agents() -> None:
    """List the agents that ahpkit knows by name, or install one in its own folder.

    \b
    Example:
      ahpkit agents
      ahpkit agents --check
      ahpkit agents install gemini
    """


def _complete_name(context: click.Context, option: click.Parameter, begun: str) -> list[str]:
    return [name for name in sorted(KNOWN_AGENTS) if name.startswith(begun)]


@agents.command()
@click.argument("name", shell_complete=_complete_name)
@click.option("--json", "as_json", is_flag=True, help="Print the name and the program as JSON.")
def install(name: str, as_json: bool) -> None:
    """Install an agent in its own folder, with the Node or the Python it needs. Nothing of the system is changed.

    \b
    Example:
      ahpkit agents install gemini
      ahpkit chat --agent gemini
    """
    agent = _known(name)
    with progress(f"Installing {agent.title}"):
        program = install_agent(agent)
    if as_json:
        click.echo(json.dumps({"name": name, "program": str(program)}))
    else:
        click.echo(
            f"{agent.title} is in {tilde(program.parent.parent / name)}. Every host that starts from now on has it."
        )
        restart = "ahpkit up --restart; " if find_endpoint() is not None else ""
        click.echo(f"Try it:  {restart}ahpkit chat --agent {name}")


def _known(name: str) -> KnownAgent:
    if name in KNOWN_AGENTS:
        return KNOWN_AGENTS[name]
    close = get_close_matches(name, KNOWN_AGENTS, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(KNOWN_AGENTS))}"
    raise click.UsageError(f"there is no known agent {name!r}; {advice}")


@agents.command("list")
@click.option("--check", is_flag=True, help="Also start each installed agent and see whether it answers.")
@watch_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array; with --watch one on each line.")
def list_agents(*, check: bool, watching: bool, as_json: bool) -> None:
    """List the agents that ahpkit knows by name: installed or not, version, whether they ask before they act, key.

    \b
    Example:
      ahpkit agents
      ahpkit serve --agent goose
    """
    repeat(
        lambda: asyncio.run(check_all(look())) if check else look(),
        lambda found: _list(found) if not as_json else _list_json(found, indent=None if watching else 2),
        watching=watching,
        clear=not as_json,
    )


def _list_json(found: Sequence[FoundAgent], *, indent: int | None) -> None:
    click.echo(json.dumps([_as_json(entry) for entry in found], indent=indent))


def _list(found: Sequence[FoundAgent]) -> None:
    for line in _table([_row(entry) for entry in found]):
        click.echo(line)
    notes: list[str] = []
    for entry in found:
        if entry.state != "missing" and not any(entry.keys.values()):
            notes.append(f"{entry.agent.name}: no key in {entry.agent.keys[0]}; you may be logged in instead")
        if entry.detail:
            notes.append(f"{entry.agent.name}: {entry.detail}")
    if notes:
        click.echo("\n" + "\n".join(notes))
    if any(entry.state == "missing" for entry in found):
        click.echo("\nTo install one in its own folder:  ahpkit agents install NAME")


def _as_json(found: FoundAgent) -> dict[str, Any]:
    agent = found.agent
    return {
        "name": agent.name,
        "title": agent.title,
        "command": [agent.command, *agent.args],
        "state": found.state,
        "path": found.path,
        "version": found.version,
        "keys": found.keys,
        "install": agent.install,
        "asks": agent.asks,
        "detail": found.detail,
    }


def _row(found: FoundAgent) -> tuple[str, ...]:
    if found.state == "missing":
        return found.agent.name, "not installed", "", found.agent.asks, ""
    key = "set" if any(found.keys.values()) else "not set"
    return found.agent.name, found.state, found.version or "?", found.agent.asks, key


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """The rows as aligned lines. Also the widest row fits into 80 columns."""
    rows = [("NAME", "STATE", "VERSION", "ASKS BEFORE IT ACTS", "KEY"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
