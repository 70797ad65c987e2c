"""`ahpkit login`: gives the host what an agent needs for a login. The command itself stores nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from ahpkit.cli.asking import ask, read_whole
from ahpkit.cli.connection import connected, host_command
from ahpkit.cli.shell_completion import AGENT
from ahpkit.client import Client


@click.command()
@click.argument("agent", shell_complete=AGENT)
@click.argument("way", required=False)
@host_command
async def login(url: str | None, token: str | None, agent: str, way: str | None) -> None:
    """Log an agent of the host in.

    WAY is one of the ways to log in that the agent offers, by its name or a part of it; needed when there are several.
    A key is asked for, or read from a pipe; the host keeps it in memory only. Ways without a key, such as a page in the
    browser, are left to the agent.

    \b
    Example:
      ahpkit login goose
      ahpkit login codex "API key" < key.txt
    """
    async with connected(url, token) as client:
        resource = _way(agent, _ways(client, agent), way)
        await client.authenticate(resource["resource"], _key(resource))
    click.echo(f"Done. Try it:  ahpkit chat --agent {agent}")


def _ways(client: Client, agent: str) -> Sequence[Any]:
    agents: dict[str, Any] = {one["provider"]: one for one in client.root["agents"]}
    if agent not in agents:
        raise click.ClickException(f"the host has no agent {agent!r}; it has: {', '.join(agents)}")
    ways = agents[agent].get("protectedResources", ())
    if not ways:
        raise click.ClickException(
            f"{agent} offers no way to log in. An agent says what it needs when a session is started with it."
        )
    return ways


def _way(agent: str, ways: Sequence[Any], wanted: str | None) -> Any:
    found = [way for way in ways if (wanted or "").casefold() in _name(way).casefold()]
    exact = [way for way in found if wanted is not None and _name(way).casefold() == wanted.casefold()]
    if len(exact or found) == 1:
        return (exact or found)[0]
    names = "\n".join(f"  {_name(way)}" for way in ways)
    raise click.ClickException(f"{agent} offers these; name one of them:\n{names}")


def _name(way: Any) -> str:
    return way.get("resource_name") or way["resource"]


def _key(way: Any) -> str:
    if not sys.stdin.isatty():
        return read_whole(sys.stdin, "standard input").strip()
    return ask(f"{_name(way)} (nothing, if there is no key)", hide_input=True, default="", show_default=False)


__all__ = ["login"]
