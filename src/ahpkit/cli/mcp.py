"""`ahpkit mcp`: the MCP servers of a session, their tools, calling one by hand, logging in."""

from __future__ import annotations

import asyncio
import json
import sys
import webbrowser
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from ahpkit.cli.asking import read_whole
from ahpkit.cli.connection import EXIT_FAILED, connected, find_session, host_command
from ahpkit.cli.output import Output, patiently
from ahpkit.cli.shell_completion import SESSION
from ahpkit.cli.text import as_json, printable, shorten
from ahpkit.cli.watching import json_text, show, watch_option
from ahpkit.client import Client, McpServer, Session
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import DIRECT, LEFT_OUT, TRUST
from ahpkit.tools.registry import tool_hints

F = TypeVar("F", bound=Callable[..., Any])

_GLANCE = 0.5
"""Seconds between two looks at the servers of a watched session. A look costs nothing: the client holds their state."""
_NO_SESSION = "there is no session in this directory to log in for: begin one (ahpkit chat), or name one with --session"
_START = 20.0
"""Seconds to wait for servers that start. After that they are shown as they are."""


@click.group()
def mcp() -> None:
    """List MCP servers and their tools, call a tool by hand, log in.

    Servers belong to sessions. Without --session the newest session in this directory is used. If there is none, a new
    session is created and disposed of at the end.

    \b
    Example:
      ahpkit mcp list
      ahpkit mcp call time get_current_time '{"timezone": "UTC"}'
    """


def _session_options(function: F) -> F:
    place = click.Path(path_type=Path, exists=True, file_okay=False)
    for option in (
        click.option("--json", "json_output", is_flag=True, help="Print JSON."),
        click.option("--dir", "directory", type=place, help="The directory to look at.  [default: this one]"),
        click.option("--session", "name", shell_complete=SESSION, help="The session: URI, id, or part of its title."),
    ):
        function = option(function)
    return function


@mcp.command("list")
@watch_option
@_session_options
@host_command
async def list_servers(
    url: str | None, token: str | None, name: str | None, directory: Path | None, watching: bool, json_output: bool
) -> None:
    """List the MCP servers of a session and their states.

    \b
    Example:
      ahpkit mcp list
      ahpkit mcp list --session hello --json
    """

    async def lines() -> str:
        servers = session.mcp_servers()
        if json_output:
            data = [_as_data(server) for server in servers]
            return json_text(data, watching=watching)
        return "\n".join(map(_line, servers)) or "This session has no MCP servers."

    async with _opened(url, token, name, directory) as session:
        await show(lines, watching=watching, every=_GLANCE, clear=not json_output)


def _as_data(server: McpServer) -> dict[str, Any]:
    placed = server.placed
    entry = {key: value for key, value in placed.entry.items() if key != "range"}
    where = None if placed.container is None else placed.container["uri"]
    return {**entry, "enabled": placed.effective.enabled, "container": where}


def _line(server: McpServer) -> str:
    placed, state = server.placed, server.state
    off = "" if placed.effective.enabled else "  off"
    where = "configuration" if placed.container is None else placed.container["name"]
    meta: dict[str, Any] = placed.entry.get("_meta") or {}
    trust = meta.get(TRUST)
    why = f"  not trusted ({trust}); see: ahpkit trust list" if trust else ""
    if meta.get(DIRECT):
        why = "  the agent runs it, not the host"
    if left_out := meta.get(LEFT_OUT):
        why = "".join(f"  without {name}: {shorten(words, 100)}" for name, words in left_out.items())
    if state["kind"] == "error":
        why = f"  {shorten(state['error']['message'], 200)}"
    if state["kind"] == "authRequired":
        why = f"  {state['reason']}; log in with: ahpkit mcp login {server.name}"
    return printable(f"{server.name:20}  {state['kind']:12}{off}  ({where}){why}")


@mcp.command()
@click.argument("server", required=False)
@_session_options
@host_command
async def tools(
    url: str | None, token: str | None, server: str | None, name: str | None, directory: Path | None, json_output: bool
) -> None:
    """List the tools of a server, or of all servers that run.

    Each tool is listed with its declared effect. A tool that declares none may destroy something.

    \b
    Example:
      ahpkit mcp tools
      ahpkit mcp tools time --json
    """
    output = Output()
    async with _opened(url, token, name, directory, server) as session:
        meant = [_meant(session, server)] if server else [one for one in session.mcp_servers() if one.channel]
        listed = {one.name: await one.tools() for one in meant}
    if json_output:
        output.say(as_json(listed))
        return
    for owner, found in listed.items():
        for tool in found:
            words = shorten(tool.get("description", ""), 100)
            output.say(printable(f"{owner:20}  {tool['name']:30}  {effect(tool):24}  {words}"))


def effect(tool: JsonObject) -> str:
    """What a tool says about its effect on the world."""
    hints = tool_hints(tool)
    if hints.read_only:
        effects = ["reads only"]
    else:
        effects = ["may destroy" if hints.destructive else "changes"]
        effects += ["repeatable"] if hints.idempotent else []
    return ", ".join([*effects, *([] if hints.open_world else ["nothing outside"])])


@mcp.command()
@click.argument("server")
@click.argument("tool")
@click.argument("arguments", default="{}")
@_session_options
@host_command
async def call(
    url: str | None,
    token: str | None,
    server: str,
    tool: str,
    arguments: str,
    name: str | None,
    directory: Path | None,
    json_output: bool,
) -> int:
    """Call a tool of a server. ARGUMENTS is a JSON object; "-" reads it from standard input.

    Nobody is asked for approval, because you make the call yourself. Hooks and rules that deny a call still apply.
    Exits with 1 when the tool fails.

    \b
    Example:
      ahpkit mcp call time get_current_time '{"timezone": "UTC"}'
    """
    given = _arguments(read_whole(sys.stdin, "standard input") if arguments == "-" else arguments)
    async with _opened(url, token, name, directory, server) as session:
        result = await patiently(_meant(session, server).call(tool, given), f"Calling {tool}")
    Output().say(as_json(result) if json_output else printable(shown_result(result)))
    return EXIT_FAILED if result.get("isError") else 0


def _arguments(text: str) -> dict[str, Any]:
    try:
        given: Any = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not valid JSON: {error}", param_hint="'ARGUMENTS'") from None
    if not isinstance(given, dict):
        raise click.BadParameter("a JSON object is expected", param_hint="'ARGUMENTS'")
    return cast("dict[str, Any]", given)


def shown_result(result: JsonObject) -> str:
    """The result of a tool as text. Files and pictures are named; `--json` has all of them."""
    parts: list[JsonObject] = result.get("content") or []
    structured = result.get("structuredContent")
    if not parts and structured is not None:
        return as_json(structured)
    return "\n".join(map(_shown_part, parts))


def _shown_part(part: JsonObject) -> str:
    if part.get("type") == "resource_link":
        return f"{part.get('title') or part.get('name')}: {part.get('uri')}"
    file: JsonObject = part.get("resource") or {}
    text = part.get("text", file.get("text"))
    words = (part.get("type"), file.get("uri"), part.get("mimeType") or file.get("mimeType"))
    return text if isinstance(text, str) else f"({', '.join(str(word) for word in words if word)})"


@mcp.command()
@click.argument("server")
@click.option("--client-id", help="An OAuth client that is registered already.")
@click.option("--client-secret", envvar="AHPKIT_CLIENT_SECRET", help="Its secret, if it has one.")
@click.option("--paste", is_flag=True, help="Read a token from standard input, instead of logging in.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@_session_options
@host_command
async def login(
    url: str | None,
    token: str | None,
    server: str,
    client_id: str | None,
    client_secret: str | None,
    paste: bool,
    no_browser: bool,
    name: str | None,
    directory: Path | None,
    json_output: bool,
) -> None:
    """Log in at a server that wants a token: OAuth 2.1, in your browser.

    The host keeps the token in memory, for this session, until the session or the host ends. So there has to be a
    session.

    \b
    Example:
      ahpkit mcp login tickets
      ahpkit mcp login tickets --paste < token.txt
    """
    async with _opened(url, token, name, directory, server, temporary=False) as session:
        meant = _meant(session, server)
        if paste:
            await meant.authenticate(read_whole(sys.stdin, "standard input").strip(), keep=True)
        else:
            opening = _print if no_browser else _open
            await meant.log_in(open_browser=opening, client_id=client_id, client_secret=client_secret, keep=True)
        await meant.wait_ready()
        Output().say(as_json(_as_data(meant)) if json_output else printable(f"{meant.name} is {meant.state['kind']}."))


def _print(page: str) -> None:
    click.echo(f"Log in here:\n{printable(page)}", err=True)


def _open(page: str) -> None:
    if not webbrowser.open(page):
        _print(page)


@asynccontextmanager
async def _opened(
    url: str | None,
    token: str | None,
    name: str | None,
    directory: Path | None,
    server: str | None = None,
    *,
    temporary: bool = True,
) -> AsyncGenerator[Session]:
    """The session that the options name; a `temporary` one is created where there is none. Returns when its servers, or
    the named one, have started or failed."""
    if name is not None and directory is not None:
        raise click.UsageError("--dir is for when no --session is given")
    async with connected(url, token, mcp_apps=True) as client:
        folder = _uri(directory)
        uri = await find_session(client, name) if name is not None else await _newest(client, folder)
        if uri is None and not temporary:
            raise click.ClickException(_NO_SESSION)
        session = await client.session(uri) if uri is not None else await _temporary(client, folder)
        try:
            await patiently(_wait_started(session, server), "Starting the servers")
            yield session
        finally:
            if uri is None:
                await session.dispose()


def _uri(directory: Path | None) -> str:
    return (directory or Path.cwd()).resolve().as_uri()


async def _newest(client: Client, folder: str) -> str | None:
    """The URI of the session in this directory that changed last."""
    found = [one for one in await client.sessions() if folder in (one.get("workingDirectories") or ())]
    found.sort(key=lambda one: one["modifiedAt"])
    return found[-1]["resource"] if found else None


async def _temporary(client: Client, folder: str) -> Session:
    providers = [agent["provider"] for agent in client.root["agents"]]
    provider = "demo" if "demo" in providers else None  # The demo agent starts no program.
    return await client.create_session(provider=provider, working_directory=folder)


async def _wait_started(session: Session, name: str | None) -> None:
    """Wait until each server, or the named one, has started or failed, but not for long."""
    meant = [server for server in session.mcp_servers() if name in (None, server.id, server.name)]
    waits = [server.wait_ready() for server in meant if DIRECT not in (server.placed.entry.get("_meta") or {})]
    with suppress(TimeoutError):
        async with asyncio.timeout(_START):
            await asyncio.gather(*waits, return_exceptions=True)


def _meant(session: Session, name: str) -> McpServer:
    try:
        return session.mcp_server(name)
    except LookupError as error:
        raise click.ClickException(str(error)) from None


__all__ = ["effect", "mcp", "shown_result"]
