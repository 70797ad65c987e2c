"""`ahpkit sessions`: what is on a host, and tidying it up."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from ahpkit.cli.connecting import connected, find_session, host_command
from ahpkit.cli.show_turn import as_json, plain
from ahpkit.client import Client
from ahpkit.host.porting import FORMAT

_ACTIVITIES = ((24, "needs input"), (8, "running"), (2, "error"), (1, "idle"))
_ARCHIVED = 64


@click.group()
def sessions() -> None:
    """List, show, rename, archive, dispose, export and import sessions.

    \b
    Example:
      ahpkit sessions list
      ahpkit sessions export 3f2a > session.json
    """


@sessions.command("list")
@click.option("--all", "everything", is_flag=True, help="Archived ones too.")
@click.option("--json", "json_output", is_flag=True, help="The summaries as JSON.")
@host_command
async def list_sessions(url: str | None, token: str | None, everything: bool, json_output: bool) -> None:
    """List sessions, the one changed last first.

    \b
    Example:
      ahpkit sessions list --all
    """
    async with connected(url, token) as client:
        found = [one for one in await client.sessions() if everything or not one["status"] & _ARCHIVED]
    found.sort(key=lambda one: one["modifiedAt"], reverse=True)
    if json_output:
        click.echo(as_json(found))
    elif not found:
        click.echo("There are no sessions. Start one with: ahpkit chat")
    else:
        for one in found:
            click.echo(_summary_line(one))


def _summary_line(summary: Any) -> str:
    status = next((word for bits, word in _ACTIVITIES if summary["status"] & bits == bits), "?")
    when = datetime.fromtimestamp(summary["modifiedAt"] / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    archived = ", archived" if summary["status"] & _ARCHIVED else ""
    identity = summary["resource"].rpartition("/")[2][:8]
    return f"{identity:8}  {when}  {summary['provider']:10}  {status}{archived:10}  {summary['title']}"


@sessions.command()
@click.argument("session")
@click.option("--json", "json_output", is_flag=True, help="The export as JSON.")
@host_command
async def show(url: str | None, token: str | None, session: str, json_output: bool) -> None:
    """Print a session's conversation. SESSION is a URI, an id, or part of a title.

    \b
    Example:
      ahpkit sessions show 3f2a
    """
    async with connected(url, token) as client:
        document = await export_session(client, await find_session(client, session))
    if json_output:
        click.echo(as_json(document))
        return
    click.echo(f"{document['title']}  ({document['provider']})")
    for chat in document["chats"]:
        for turn in chat["turns"]:
            click.echo(f"\n> {turn['message']['text']}")
            click.echo(_answer(turn))


def _answer(turn: Any) -> str:
    shown: list[str] = []
    for part in turn["responseParts"]:
        if part["kind"] == "markdown":
            shown.append(part["content"])
        elif part["kind"] == "toolCall":
            call = part["toolCall"]
            shown.append(f"[{plain(call.get('pastTenseMessage')) or call['displayName']}: {call['status']}]")
    if "error" in turn:
        shown.append(f"✗ {turn['error']['message']}")
    return "\n".join(shown)


async def export_session(client: Client, uri: str) -> dict[str, Any]:
    """A session as a document: what `import` takes."""
    session = await client.session(uri)
    summary = session.state["summary"]
    chats: list[Any] = []
    for entry in session.chats:
        chat = await session.chat(entry["resource"])
        turns = [turn async for turn in chat.history()]
        chats.append({"title": entry["title"], "turns": turns[::-1]})
    return {"format": FORMAT, "title": summary["title"], "provider": summary["provider"], "chats": chats}


@sessions.command()
@click.argument("session")
@click.argument("title")
@host_command
async def rename(url: str | None, token: str | None, session: str, title: str) -> None:
    """Give a session another title.

    \b
    Example:
      ahpkit sessions rename 3f2a "Release notes"
    """
    async with connected(url, token) as client:
        await (await client.session(await find_session(client, session))).rename(title).accepted()


@sessions.command()
@click.argument("session")
@click.option("--undo", is_flag=True, help="Take it out of the archive again.")
@host_command
async def archive(url: str | None, token: str | None, session: str, undo: bool) -> None:
    """Archive a session: it is kept, and no longer listed.

    \b
    Example:
      ahpkit sessions archive 3f2a
    """
    async with connected(url, token) as client:
        await (await client.session(await find_session(client, session))).archive(not undo).accepted()


@sessions.command()
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask.")
@host_command
async def dispose(url: str | None, token: str | None, session: str, yes: bool) -> None:
    """Delete a session with all its chats.

    \b
    Example:
      ahpkit sessions dispose 3f2a --yes
    """
    async with connected(url, token) as client:
        uri = await find_session(client, session)
        if not yes:
            click.confirm(f"Delete {uri} for good?", abort=True)
        await (await client.session(uri)).dispose()


@sessions.command("export")
@click.argument("session")
@click.option("--output", type=click.File("w", encoding="utf-8"), default="-", help="Write to a file.")
@host_command
async def export_command(url: str | None, token: str | None, session: str, output: Any) -> None:
    """Write a session as JSON.

    \b
    Example:
      ahpkit sessions export 3f2a --output session.json
    """
    async with connected(url, token) as client:
        document = as_json(await export_session(client, await find_session(client, session)))
    click.echo(document, file=output)


@sessions.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@host_command
async def import_command(url: str | None, token: str | None, file: Any) -> None:
    """Make a new session of an exported one; prints its URI.

    \b
    Example:
      ahpkit sessions import session.json
    """
    try:
        document = json.load(file)
    except ValueError as error:
        raise click.ClickException(f"{file.name}: not JSON: {error}") from error
    async with connected(url, token) as client:
        made = await client.extension_request("_ahpkit/sessions/import", {"document": document})
        click.echo(made["session"])


__all__ = ["export_session", "sessions"]
