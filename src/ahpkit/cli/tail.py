"""`ahpkit tail`: follow any channel, for people or as JSON lines."""

from __future__ import annotations

import json
import signal
from typing import Any

import click

from ahpkit.cli.connecting import connected, find_session, host_command
from ahpkit.protocol.channels import channel_of
from ahpkit.protocol.codec import encode

_LONGEST = 160
"""Characters of an action shown to people."""


@click.command()
@click.argument("uri")
@click.option("--json", "json_lines", is_flag=True, help="Print the snapshot and every envelope as a line of JSON.")
@host_command
async def tail(url: str | None, token: str | None, uri: str, json_lines: bool) -> None:
    """Print what happens on a channel until Ctrl-C. URI is any channel, or the id or title of a session.

    \b
    Example:
      ahpkit tail ahp-root://
      ahpkit tail 3f2a --json | jq .action.type
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    async with connected(url, token) as client:
        channel = uri if channel_of(uri) else await find_session(client, uri)
        async with client.subscribe(channel) as subscription:
            click.echo(_snapshot(channel, subscription.confirmed, json_lines=json_lines))
            async for envelope in subscription:
                click.echo(encode(envelope).decode() if json_lines else describe(envelope))


def _snapshot(channel: str, state: Any, *, json_lines: bool) -> str:
    if json_lines:
        return encode({"resource": channel, "state": state}).decode()
    return f"{channel}: {', '.join(state)}"


def describe(envelope: Any) -> str:
    """One action for a person: number, type, what it carries, who sent it."""
    action = {key: value for key, value in envelope["action"].items() if key != "type"}
    carried = json.dumps(action, ensure_ascii=False)
    if len(carried) > _LONGEST:
        carried = f"{carried[:_LONGEST]}…"
    sender = f"  by {envelope['origin']['clientId']}" if "origin" in envelope else ""
    return f"{envelope['serverSeq']:>8}  {envelope['action']['type']}  {carried}{sender}"


__all__ = ["describe", "tail"]
