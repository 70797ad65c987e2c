"""Shared by commands that talk to a host: their options, the connection, and finding a session by name."""

from __future__ import annotations

import asyncio
import functools
import logging
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from ahpkit.cli.config import trusted_settings
from ahpkit.cli.daemon import check_host_name, ensure_host, log_file
from ahpkit.cli.output import Explain, Output, Tell, patiently, tilde
from ahpkit.cli.session_search import session_title
from ahpkit.cli.shell_completion import AGENT, HOST_NAME, MODEL, SESSION
from ahpkit.cli.text import printable, shorten
from ahpkit.client import Client, Dispatch, Session, SessionFailed, UnknownSetting, connect
from ahpkit.client.client import REQUEST_TIMEOUT
from ahpkit.client.endpoints import NAME_VARIABLE, find_endpoint
from ahpkit.client.errors import UNREADABLE
from ahpkit.client.responder import OnConfirmation, OnInput
from ahpkit.platform.signals import handling_signals
from ahpkit.protocol.errors import AhpError
from ahpkit.protocol.meta_keys import CLIENTS
from ahpkit.protocol.session.state import SessionStatus

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

EXIT_FAILED, EXIT_TIMEOUT, EXIT_INTERRUPTED = 1, 124, 130

Choose = Callable[[Sequence[Any]], str]
"""Asks the person which of several sessions they mean; returns its URI."""

_ACTIVITY = 300
"""Characters of an agent's activity that are shown while the agent starts."""

_BACK = 20.0
"""Seconds to wait for a lost connection to come back."""

_LOGGED = 500
"""Characters of a line that the client logs."""

_MAX_LOGGED = 5
"""Lines of what the client logs that one command shows."""

_QUIET = 3.0
"""If a turn says nothing for this many seconds, the host is asked whether something is wrong."""

_SHORTEST = 4
"""The fewest characters of an id that may stand for the whole id."""


def host_name_option(function: F) -> F:
    """Adds `--host-name` to a command. The command's function does not get the option; `chosen_name` returns it."""

    def keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
        context.meta[HOST_NAME] = check_host_name(context, option, value)

    say = "Which host, when several are running."
    return click.option(
        "--host-name", envvar=NAME_VARIABLE, metavar="NAME", help=say, expose_value=False, callback=keep
    )(function)


def chosen_name() -> str | None:
    """The `--host-name` of the command that runs."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(HOST_NAME)


def host_command(function: Callable[P, Coroutine[Any, Any, int | None]]) -> Callable[P, None]:
    """Make an async function the body of a command. Adds the options that choose a host. The function returns the exit
    code."""

    @click.option("--url", envvar="AHPKIT_URL", help="The host's address; without it, the one that is running.")
    @click.option("--token", envvar="AHPKIT_TOKEN", help="The host's token, where it cannot be found.")
    @host_name_option
    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        logging.lastResort = _OneLine(logging.WARNING)
        try:
            code = asyncio.run(_until_told_to_end(function(*args, **kwargs)))
        except UNREADABLE as error:
            raise click.ClickException(_unreadable(error)) from error
        except (KeyboardInterrupt, asyncio.CancelledError):
            code = EXIT_INTERRUPTED
        # The command is about to end; another Ctrl-C must not disturb that.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise SystemExit(code or 0)

    return run


async def _until_told_to_end(command: Coroutine[Any, Any, int | None]) -> int | None:
    """Run a command. SIGTERM and a terminal that is closed end it in the way Ctrl-C does, so that it cleans up."""
    running = asyncio.current_task()
    assert running is not None
    wanted = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [name for name in wanted if signal.getsignal(signal.Signals[name]) is not signal.SIG_IGN]  # `nohup`
    with handling_signals(dict.fromkeys(heard, running.cancel)):
        return await command


class _OneLine(logging.Handler):
    """Writes the first few messages that the client logs, in one line each and without tracebacks.

    A host that sends nonsense can make the client log as much as the host likes.
    """

    _left = _MAX_LOGGED

    def emit(self, record: logging.LogRecord) -> None:
        if self._left:
            self._left -= 1
            last = "" if self._left else " (more of this is not shown)"
            click.echo(printable(shorten(record.getMessage(), _LOGGED)) + last, err=True)


def _unreadable(error: Exception) -> str:
    """An unexpected error in one line, with the place in the code, for a bug report."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = shorten(f"{type(error).__name__}: {error}", _LOGGED)
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"the host sent something that this command did not expect ({what}; {where})"


def session_options(function: F) -> F:
    """Adds the options that choose a session or describe a new one: name, resume, provider, model, directory."""
    place = click.Path(path_type=Path, exists=True, file_okay=False)
    for option in (
        click.option("--worktree", is_flag=True, help="Give a new session a git work tree and a branch of its own."),
        click.option(
            "--add-dir", "more", multiple=True, type=place, help="One more directory for a new session (repeatable)."
        ),
        click.option("--dir", "directory", type=place, help="Working directory of a new session.  [default: this one]"),
        click.option("--model", shell_complete=MODEL, help="Which model to use for a new session."),
        click.option("--agent", "provider", shell_complete=AGENT, help="Which agent to use for a new session."),
        click.option("--continue", "resume", is_flag=True, help="Go on with the last session of this directory."),
        click.option("--session", "name", shell_complete=SESSION, help="Go on with a session: URI, id, or title."),
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
    lasting: bool = False,
    mcp_apps: bool = False,
    patience: float = _BACK,
) -> AsyncGenerator[Client]:
    """A client of the host at `url`, or of the running host. With `start` a host is started if none runs.

    A lost connection is reported. If it does not come back soon, that is an error; `lasting` commands wait without end.
    """
    name = chosen_name()
    if url is not None and not url.strip():
        raise click.UsageError("--url is empty; leave it out for the host that is running")
    if url is None:
        await ensure_host(name, None if not start else trusted_settings(None, Path.cwd()))
    asked = connect(
        url, token=token, host_name=name, mcp_apps=mcp_apps, on_confirmation=on_confirmation, on_input=on_input
    )
    async with asked as client:
        if lasting:
            yield client
        else:
            tell_connection(client, Output())
            async with _given_up(client, None if start or _is_watching() else patience):
                yield client


async def taken(dispatch: Dispatch) -> None:
    """Wait until the host has taken an action. Raises `ActionRejected` or `TimeoutError`."""
    async with asyncio.timeout(REQUEST_TIMEOUT):
        await dispatch.accepted()


def _is_watching() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("watching"))


@asynccontextmanager
async def _given_up(client: Client, patience: float | None) -> AsyncGenerator[None]:
    """End with an error if the connection is lost for this many seconds; with None, wait without end."""
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)
    try:
        async with limit:

            def watch(status: str) -> None:
                if patience is not None:
                    limit.reschedule(loop.time() + patience if status == "reconnecting" else None)

            stop = client.on_status(watch)
            try:
                yield
            finally:
                stop()
    except TimeoutError:
        if not limit.expired():
            raise
        raise click.ClickException(f"the connection to the host did not come back within {patience:g} s") from None


def tell_connection(client: Client, output: Output) -> None:
    """Tell the person when the connection is lost, and when it is back."""
    lost = False

    def tell(status: str) -> None:
        nonlocal lost
        if status == "reconnecting" and not lost:
            output.say("! connection lost; trying to get it back", "yellow", error=True)
        elif status == "connected" and lost:
            output.say("! connected again", "green", error=True)
        lost = status == "reconnecting"

    client.on_status(tell)


async def say_why_it_waits(client: Client, output: Output, heard: Callable[[], int]) -> None:
    """If nothing comes for a while, ask the host whether it can store actions. A host that cannot store them sends
    nothing. `heard()` counts what came."""
    last_reason: str | None = None
    while True:
        before = heard()
        await asyncio.sleep(_QUIET)
        if before == heard():
            reason = await _why_nothing_is_stored(client)
            if reason is not None and reason != last_reason:
                output.say(f"! waiting: the host cannot store anything: {reason}", "yellow", error=True)
            last_reason = reason


async def _why_nothing_is_stored(client: Client) -> str | None:
    with suppress(AhpError, OSError):
        if CLIENTS in client.host.meta:
            return (await client.request(f"x-{CLIENTS}/list", {})).get("notStored")
    return None


async def open_session(
    client: Client,
    name: str | None,
    *,
    resume: bool = False,
    provider: str | None,
    model: str | None,
    directory: Path | None,
    more: Sequence[Path] = (),
    worktree: bool = False,
    choose: Choose | None = None,
) -> Session:
    """The session that was named, the last one of the directory, or a new one. `choose` picks one if there are
    several."""
    check_session_options(
        name, resume=resume, provider=provider, model=model, directory=directory, more=more, worktree=worktree
    )
    if resume:
        name = await last_session(client, directory or Path.cwd(), choose)
    if name is None:
        place = (directory or Path.cwd()).resolve()
        usual = trusted_settings(None, place)
        provider, model = provider or usual.agent, model or (None if provider else usual.model)
        uri = client.new_session_uri(provider)
        await _tell_environment(uri)
        config = {"isolation": "worktree"} if worktree else None
        creating = client.create_session(
            uri=uri,
            provider=provider,
            model=model,
            working_directory=place.as_uri(),
            more_directories=[one.resolve().as_uri() for one in more],
            config=config,
        )
        try:
            return await patiently(creating, "Starting the agent", explain=_slow_start(client, uri, provider))
        except UnknownSetting as unknown:
            raise click.ClickException(
                f"--worktree: {place} is in no git repository with a commit, or the host makes no work trees"
            ) from unknown
        except SessionFailed as failed:
            await _forget(client, failed.session)
            raise click.ClickException(_why(failed, provider)) from failed
    return await join_session(client, name, choose)


async def join_session(client: Client, name: str, choose: Choose | None = None) -> Session:
    """The session that a person names. Its agent gets the variables of this shell when it is started anew."""
    uri = await find_session(client, name, choose)
    await _tell_environment(uri)
    return await client.session(uri)


def check_session_options(
    name: str | None,
    *,
    resume: bool,
    provider: str | None,
    model: str | None,
    directory: Path | None,
    more: Sequence[Path] = (),
    worktree: bool = False,
) -> None:
    """Refuse options that contradict each other before anything is done."""
    if name is not None and not name.strip():
        raise click.UsageError("--session is empty; leave it out for a new session")
    for option, value in (("--agent", provider), ("--model", model)):
        if value is not None and not value.strip():
            raise click.UsageError(f"{option} is empty; leave it out for the usual one")
    if more and (resume or name is not None):
        raise click.UsageError("--add-dir is for new sessions; in the chat, :add DIR adds a directory")
    if worktree and (resume or name is not None):
        raise click.UsageError("--worktree is for new sessions; leave it out with --session and --continue")
    if resume and (name or provider or model):
        given = {"--session": name, "--agent": provider, "--model": model}
        others = " and ".join(option for option, value in given.items() if value)
        raise click.UsageError(f"--continue takes the last session as it is: leave out {others}")
    if name is not None and (provider or model or directory):
        raise click.UsageError("--agent, --model and --dir are for new sessions; leave them out with --session")


async def last_session(client: Client, directory: Path, choose: Choose | None = None) -> str:
    """The URI of the session of a directory that changed last. If there are several, `choose` may pick another one."""
    found = of_directory(await client.sessions(), directory)
    if not found:
        raise click.ClickException(f"there is no session in {directory} yet; start one with: ahpkit chat")
    return found[0]["resource"] if choose is None or len(found) == 1 else choose(found)


def of_directory(summaries: Sequence[Any], directory: Path) -> list[Any]:
    """The sessions that work in a directory, the one that changed last first. Archived ones are left out."""
    wanted = directory.resolve().as_uri()

    def works_here(one: Any) -> bool:
        """A session with its own work tree belongs to the directory for which it was started."""
        return wanted in (*one.get("workingDirectories", ()), one.get("project", {}).get("uri"))

    here = [one for one in summaries if works_here(one) and not one["status"] & SessionStatus.IsArchived]
    return sorted(here, key=lambda one: one["modifiedAt"], reverse=True)


async def _tell_environment(session: str) -> None:
    """Give a host in the background the environment of this shell, so that agents see its `PATH` and its keys."""
    endpoint = find_endpoint(name=chosen_name())
    if endpoint is not None and endpoint.background:
        from ahpkit.cli.shell_environment import send  # Imported late: most hosts do not need it.

        await send(endpoint, session)


def _slow_start(client: Client, uri: str, provider: str | None) -> Explain:
    """Explains why an agent has not started yet: what it is waiting for, and where the log is."""
    further = f"The host's log: {_log_place()}. Ctrl-C gives up."

    async def explain(tell: Tell) -> None:
        with suppress(AhpError, TimeoutError):  # The start is over. The command that waits for it reports how it ended.
            if reason := await _why_nothing_is_stored(client):
                tell(f"The host cannot store anything: {reason}. Ctrl-C gives up.")
            async with client.subscribe(uri) as session:
                doing = session.state.get("activity", "")
                while True:
                    if doing or sys.stderr.isatty():  # Scripts get only what the host reports.
                        waiting = doing or f"Waiting for {provider or 'the agent'} to answer"
                        tell(f"{printable(shorten(waiting, _ACTIVITY))}. {further}")
                    state = await session.wait_for(lambda state, known=doing: state.get("activity", known) != known)
                    doing = state["activity"]

    return explain


def _log_place() -> str:
    """A text that says where the host writes its log."""
    context = click.get_current_context(silent=True)
    named = context is not None and context.params.get("url") is not None
    endpoint = None if named else find_endpoint(name=chosen_name())
    if endpoint is None or endpoint.data_dir is None:
        return "on its machine"
    return tilde(log_file(Path(endpoint.data_dir))) if endpoint.background else "in the terminal in which it runs"


async def _forget(client: Client, uri: str) -> None:
    """Dispose of a session that was never used."""
    with suppress(AhpError, TimeoutError):
        await client.request("disposeSession", channel=uri)


def _why(failed: SessionFailed, provider: str | None) -> str:
    reason = failed.error.get("message") or "the host could not create the session"
    needs_login = str(failed.error.get("errorType", "")).endswith("auth-required")
    return f"{reason}\nTo log in:  ahpkit login {provider or 'AGENT'}" if needs_login else reason


async def find_session(
    client: Client, name: str, choose: Choose | None = None, *, fits: Callable[[Any], bool] | None = None
) -> str:
    """The URI of the session that a person names: by a URI, an id or its beginning, a title or a part of it.

    If several sessions fit, the error lists those; if none fits, the error says where to find the names.
    """
    if not name.strip():
        raise click.UsageError("which session? Give its id, or a part of its title; see: ahpkit sessions list")
    found = meant(await client.sessions(), name)
    if len(found) > 1 and fits is not None:
        found = [one for one in found if fits(one)] or found[:1]
    if len(found) > 1 and choose is not None:
        return choose(found)
    if not found:
        raise click.ClickException(f"there is no session {name!r}; see: ahpkit sessions list --all")
    if len(found) > 1:
        lines = [f"  {short_id(one['resource'])}  {printable(shorten(session_title(one), 60))}" for one in found]
        raise click.ClickException("\n".join([f"{name!r} could be any of these; use the id:", *lines]))
    return found[0]["resource"]


def meant(summaries: Sequence[Any], name: str) -> Sequence[Any]:
    """The sessions that a name may mean. The closest kind of match counts: a part of a title only if nothing
    else fits."""
    folded = name.casefold()
    matches: Sequence[Callable[[str, str], bool]] = (
        lambda uri, title: uri == name or _id(uri) == name,
        lambda uri, title: len(name) >= _SHORTEST and _id(uri).startswith(name),
        lambda uri, title: title.casefold() == folded,
        lambda uri, title: folded in title.casefold(),
    )
    for match in matches:
        if found := [one for one in summaries if match(one["resource"], session_title(one))]:
            return found
    return ()


def short_id(uri: str) -> str:
    """The part of a session's id that people type."""
    return _id(uri)[:8]


def _id(uri: str) -> str:
    return uri.rpartition("/")[2]


__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_TIMEOUT",
    "Choose",
    "check_session_options",
    "chosen_name",
    "connected",
    "find_session",
    "host_command",
    "host_name_option",
    "last_session",
    "meant",
    "open_session",
    "say_why_it_waits",
    "session_options",
    "short_id",
    "taken",
    "tell_connection",
]
