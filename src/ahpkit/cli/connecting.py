"""What commands that talk to a host share: options, the connection, which session is meant. Knows no command."""

from __future__ import annotations

import asyncio
import functools
import signal
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from ahpkit.cli.config import trusted_settings
from ahpkit.cli.daemon import ensure_host
from ahpkit.cli.output import Output
from ahpkit.cli.progress import patiently
from ahpkit.cli.text import printable, shorten
from ahpkit.client import Client, Session, SessionFailed, connect
from ahpkit.client.endpoints import NAME_VARIABLE, find_endpoint
from ahpkit.client.responder import OnConfirmation, OnInput
from ahpkit.protocol.errors import AhpError

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130

_HOST_NAME = "ahpkit.host_name"
"""Where the command's `--host-name` is kept for whoever connects."""

_SHORTEST = 4
"""Characters of an id that may stand for all of it."""


def host_name_option(function: F) -> F:
    """Adds `--host-name`. Commands do not see it: `chosen_name` has it for whoever looks for the host."""

    def keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
        context.meta[_HOST_NAME] = value

    say = "Which host, when several are running."
    return click.option(
        "--host-name", envvar=NAME_VARIABLE, metavar="NAME", help=say, expose_value=False, callback=keep
    )(function)


def chosen_name() -> str | None:
    """The `--host-name` of the command that runs."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_HOST_NAME)


def host_command(function: Callable[P, Coroutine[Any, Any, int | None]]) -> Callable[P, None]:
    """Make an async function a command's body: adds the options that choose a host; it returns the exit code."""

    @click.option("--url", envvar="AHPKIT_URL", help="The host's address; without it, the one that is running.")
    @click.option("--token", envvar="AHPKIT_TOKEN", help="The host's token, where it cannot be found.")
    @host_name_option
    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = asyncio.run(function(*args, **kwargs))
        except (KeyboardInterrupt, asyncio.CancelledError):
            code = EXIT_INTERRUPTED
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Only the end is left; one more Ctrl-C must not spoil it.
        raise SystemExit(code or 0)

    return run


def session_options(function: F) -> F:
    """The options that choose a session, or say what a new one is like: name, provider, model, directory."""
    place = click.Path(path_type=Path, exists=True, file_okay=False)
    for option in (
        click.option("--dir", "directory", type=place, help="Working directory of a new session.  [default: this one]"),
        click.option("--model", help="Which model to use for a new session."),
        click.option("--agent", "provider", help="Which agent of the host to use for a new session."),
        click.option("--session", "name", help="Go on with a session: its URI, id, or part of its title."),
    ):
        function = option(function)
    return function


@asynccontextmanager
async def connected(
    url: str | None,
    token: str | None,
    *,
    on_confirmation: OnConfirmation | None = None,
    on_input: OnInput | None = None,
    start: bool = False,
) -> AsyncGenerator[Client]:
    """A client of that host, or of the running one; with `start` of one that is started when none runs."""
    name = chosen_name()
    if url is None:
        await ensure_host(name, None if not start else trusted_settings(None, Path.cwd()))
    asked = connect(url, token=token, host_name=name, on_confirmation=on_confirmation, on_input=on_input)
    async with asked as client:
        yield client


def tell_connection(client: Client, output: Output) -> None:
    """Have the person told when the connection is lost, and when it is back."""
    lost = False

    def tell(status: str) -> None:
        nonlocal lost
        if status == "reconnecting" and not lost:
            output.say("! connection lost; trying to get it back", "yellow", error=True)
        elif status == "connected" and lost:
            output.say("! connected again", "green", error=True)
        lost = status == "reconnecting"

    client.on_status(tell)


async def open_session(
    client: Client, name: str | None, *, provider: str | None, model: str | None, directory: Path | None
) -> Session:
    """The session that was named, or a new one."""
    if name is None:
        place = (directory or Path.cwd()).resolve()
        usual = trusted_settings(None, place)
        provider, model = provider or usual.agent, model or (None if provider else usual.model)
        uri = f"ahp-session:/{uuid.uuid4()}"
        await _tell_environment(uri)
        creating = client.create_session(uri=uri, provider=provider, model=model, working_directory=place.as_uri())
        try:
            return await patiently(creating, "Starting the agent")
        except SessionFailed as failed:
            await _forget(client, failed.session)
            raise click.ClickException(_why(failed, provider)) from failed
    if provider or model or directory:
        raise click.UsageError("--agent, --model and --dir are for new sessions; leave them out with --session")
    uri = await find_session(client, name)
    await _tell_environment(uri)
    return await client.session(uri)


async def _tell_environment(session: str) -> None:
    """Agents of a host in the background see what this shell has: its `PATH` and its keys."""
    endpoint = find_endpoint(name=chosen_name())
    if endpoint is not None and endpoint.background:
        from ahpkit.cli.shell_environment import send  # Late: most hosts do not need it.

        await send(endpoint, session)


async def _forget(client: Client, uri: str) -> None:
    """A session that never began is of no use to anybody."""
    with suppress(AhpError, TimeoutError):
        await client.request("disposeSession", channel=uri)


def _why(failed: SessionFailed, provider: str | None) -> str:
    reason = failed.error.get("message") or "the host could not create the session"
    needs_login = str(failed.error.get("errorType", "")).endswith("auth-required")
    return f"{reason}\nTo log in:  ahpkit login {provider or 'AGENT'}" if needs_login else reason


async def find_session(client: Client, name: str) -> str:
    """The URI of the session a person means: a URI, an id or its beginning, a title or part of it."""
    found = meant(await client.sessions(), name)
    if not found:
        raise click.ClickException(f"there is no session {name!r}; see: ahpkit sessions list --all")
    if len(found) > 1:
        lines = [f"  {short_id(one['resource'])}  {printable(shorten(one['title'], 60))}" for one in found]
        raise click.ClickException("\n".join([f"{name!r} could be any of these; use the id:", *lines]))
    return found[0]["resource"]


def meant(summaries: Sequence[Any], name: str) -> Sequence[Any]:
    """The sessions a name may stand for. The closest kind of match counts: part of a title only when all else fails."""
    folded = name.casefold()
    matches: Sequence[Callable[[str, str], bool]] = (
        lambda uri, title: uri == name or _id(uri) == name,
        lambda uri, title: len(name) >= _SHORTEST and _id(uri).startswith(name),
        lambda uri, title: title.casefold() == folded,
        lambda uri, title: folded in title.casefold(),
    )
    for match in matches:
        if found := [one for one in summaries if match(one["resource"], one["title"])]:
            return found
    return ()


def short_id(uri: str) -> str:
    """As much of a session's id as people type."""
    return _id(uri)[:8]


def _id(uri: str) -> str:
    return uri.rpartition("/")[2]


__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "chosen_name",
    "connected",
    "find_session",
    "host_command",
    "host_name_option",
    "meant",
    "open_session",
    "session_options",
    "short_id",
    "tell_connection",
]
