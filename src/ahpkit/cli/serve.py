"""`ahpkit serve`: reads options and settings, and runs the host they describe until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import click

from ahpkit.cli import daemon
from ahpkit.cli.asking import Place, WholeNumber
from ahpkit.cli.assembly import running_host
from ahpkit.cli.config import say_left_out, trusted_settings
from ahpkit.cli.daemon import can_listen, check_host_name, log_to, log_to_file, named_data_dir
from ahpkit.cli.output import announce
from ahpkit.cli.settings import Settings, default_data_dir
from ahpkit.client.endpoints import publish_endpoint
from ahpkit.dialects import SPOKEN, Generation, pin
from ahpkit.log.datadir import Durability
from ahpkit.platform.limits import (
    ChildLimits,
    Collections,
    allow_open_files,
    collect_nothing_yet,
    give_freed_memory_back,
    limit_children,
    memory_of_this_machine,
)
from ahpkit.platform.signals import handling_signals, keep_ignored_signals_from_children
from ahpkit.protocol.registry import ACTIONS, COMMANDS, Shape
from ahpkit.protocol.validation import prepare_check
from ahpkit.web.notify import Tell, command, notifying, webhook
from ahpkit.wire.tasks import running as during

_EXIT_AT_ONCE = 130
"""The exit code after the second Ctrl-C."""

_AGENT_HELP = "Add an agent: one `ahpkit agents` lists, a program that speaks ACP, or a model's URL (repeatable)."

_EXIT_STUCK = 70
"""The exit code if the host could not end properly in time. Nothing that clients were shown is lost: it was stored
before."""

STOP_DEADLINE = 20.0
"""Seconds from the signal to the end of the process, even if something is stuck. Agents and clients get five of them to
end."""

_SCHEME = "[A-Za-z][A-Za-z0-9+.-]+"
"""The scheme of a URI. A single letter is not a scheme but a drive."""

_FILES = 65_536
"""The number of files that may be open at once, if the system allows as many."""

_PATIENCE = 1.0
"""Seconds after which a person is told that Ctrl-C was noticed."""


@click.command()
@click.option("--host", help="Address to listen on. Anything but loopback needs the token.  [default: 127.0.0.1]")
@click.option("--port", type=WholeNumber(0, 65535), help="Port to listen on; 0 takes a free one.  [default: 7110]")
@click.option("--data-dir", type=Place(path_type=Path, file_okay=False), help="Where sessions are kept.")
@click.option(
    "--durability",
    type=click.Choice(get_args(Durability)),
    help="What the log survives. full: a power cut; normal: a crash; memory: neither.  [default: full]",
)
@click.option("--no-token", is_flag=True, help="Let every local program in. Only on loopback.")
@click.option("--agent", "agents", multiple=True, metavar="NAME[=COMMAND|URL]", help=_AGENT_HELP)
@click.option("--plugin", "plugins", multiple=True, type=Place(path_type=Path), help="Add a plugin (repeatable).")
@click.option("--extension", "extensions", multiple=True, metavar="CMD", help="Start a canvas extension (repeatable).")
@click.option("--allow-hooks", is_flag=True, help="Run hooks, as far as they are trusted.")
@click.option("--trust", multiple=True, type=Place(path_type=Path), help="Trust a directory as it is now.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=Place(path_type=Path),
    help="Let sessions work below this directory and no other (repeatable).  [default: this directory and your home]",
)
@click.option("--terminals", is_flag=True, help="Let clients open terminals.")
@click.option(
    "--protocol", metavar="VERSION", help="Speak one generation of the protocol only, such as 0.9.  [default: all]"
)
@click.option(
    "--host-name",
    metavar="NAME",
    callback=check_host_name,
    help="What to call this host; without --data-dir also where its data is.",
)
@click.option("--background", is_flag=True, help="Log to a file in the data directory: for services and `ahpkit up`.")
@click.option(
    "--config",
    "config_file",
    type=Place(path_type=Path, dir_okay=False),
    help="Settings in TOML, instead of your own file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON once connections are accepted.")
@click.option("--verbose", is_flag=True, help="Log what happens to standard error.")
def serve(
    config_file: Path | None,
    as_json: bool,
    no_token: bool,
    verbose: bool,
    protocol: str | None,
    host_name: str | None,
    background: bool,
    **options: Any,
) -> None:
    """Start a host and serve until Ctrl-C.

    \b
    Example:
      ahpkit serve
      ahpkit serve --port 0 --json --agent gemini
    """
    named = named_data_dir(host_name) if host_name else None
    settings = trusted_settings(config_file, Path.cwd(), options["data_dir"] or named)
    say_left_out(settings)
    if named is not None:
        port = settings.port if "host.port" in settings.origins else 0  # The usual port belongs to the default host.
        settings = replace(settings, data_dir=named, port=port)
    chosen = options["port"] is not None or "host.port" in settings.origins
    settings = with_options(settings, options)
    if background and not chosen and not can_listen(settings.host, settings.port):
        # Another program or user has the usual port. Commands find the host by its endpoint file anyway.
        settings = replace(settings, port=0)
    data_dir = (settings.data_dir or default_data_dir()).absolute()
    settings = replace(settings, data_dir=data_dir)
    if background:
        log_to_file(data_dir, logging.INFO)
    else:
        log_to(logging.StreamHandler(), logging.INFO if verbose else logging.WARNING, "%(levelname)s %(message)s")
    shown = _Presentation(daemon.host_name(host_name, data_dir), as_json=as_json, background=background)
    try:
        asyncio.run(_run(settings, shown, no_token=no_token, config_file=config_file, spoken=_spoken(protocol)))
    except asyncio.CancelledError:
        raise SystemExit(_EXIT_AT_ONCE) from None


def _spoken(protocol: str | None) -> Sequence[Generation]:
    try:
        return SPOKEN if protocol is None else pin(protocol)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--protocol'") from None


def with_options(settings: Settings, options: dict[str, Any]) -> Settings:
    """The settings, with the values of the command line instead of those of the files."""
    single = {key: value for key in ("host", "port", "data_dir", "durability") if (value := options[key]) is not None}
    agents, added = dict(settings.agents), set[str]()
    for option in options["agents"]:
        name, _, command = option.partition("=")
        if name in added:
            raise click.UsageError(f"--agent {name} is given twice; give each agent a name of its own")
        added.add(name)
        agents[name] = {"option": option} if command or name not in agents else agents[name]
    origins = {key: file for key, file in settings.origins.items() if key != "host.roots" or not options["roots"]}
    return replace(
        settings,
        **single,
        origins=origins,
        agents=agents,
        roots=[*options["roots"]] or settings.roots,
        plugins=[*settings.plugins, *options["plugins"]],
        extensions=[*settings.extensions, *options["extensions"]],
        trusted=[*settings.trusted, *options["trust"]],
        allow_hooks=settings.allow_hooks or options["allow_hooks"],
        terminals=settings.terminals or options["terminals"],
    )


@dataclass(frozen=True, slots=True)
class _Presentation:
    """How a host presents itself: its name, and whether its output is for a person, for a program or for nobody."""

    name: str
    as_json: bool
    background: bool


def _child_limits(settings: Settings) -> ChildLimits:
    """The limits for processes of agents, extensions and MCP servers. By default none of them may take more than most
    of this machine."""
    if settings.child_memory is not None:
        memory = settings.child_memory * 1024 * 1024
    else:
        memory = (memory_of_this_machine() or 0) * 3 // 4
    return ChildLimits(memory or None, settings.child_processes or None)


async def _run(
    settings: Settings, shown: _Presentation, *, no_token: bool, config_file: Path | None, spoken: Sequence[Generation]
) -> None:
    running_here = running_host(settings, no_token=no_token, config_file=config_file, spoken=spoken)
    allow_open_files(_FILES)
    limit_children(_child_limits(settings))
    keep_ignored_signals_from_children()
    give_freed_memory_back()
    collect_nothing_yet()
    with _stop_signals() as stop:
        async with running_here as running:
            url, token, data_dir = running.server.url, running.token, running.data_dir
            started = time.time_ns() // 1_000_000
            published = publish_endpoint(
                url=url,
                token=token,
                data_dir=data_dir,
                started_at=started,
                name=shown.name,
                background=shown.background,
                certificate=running.certificate,
                owner=running.owner,
            )
            with Collections(), published:
                if not shown.background:
                    announce(url, token, data_dir, running.agents, page=running.page.link(), as_json=shown.as_json)
                _warn_of_missing(settings)
                telling = notifying(running.serve, _tells(settings), page_url=running.page.url)
                async with telling, during(build_checks()):
                    await stop.wait()


def _tells(settings: Settings) -> list[Tell]:
    """The commands and addresses that are notified when something waits for a person."""
    hooks = [] if settings.webhook is None else [webhook(settings.webhook)]
    return [*hooks, *([command(settings.command)] if settings.command else [])]


@contextmanager
def _stop_signals() -> Generator[asyncio.Event]:
    """Let Ctrl-C and SIGTERM ask the host to stop. A second signal ends the process at once; that is safe, because the
    log is always complete."""
    stop, loop, running = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()
    assert running is not None

    def asked() -> None:
        if stop.is_set():
            running.cancel()
        stop.set()
        loop.call_later(_PATIENCE, lambda: click.echo("stopping; Ctrl-C again ends it at once", err=True))

    with handling_signals({"SIGINT": asked, "SIGTERM": asked}, at_once=_end_in_time):
        yield stop


def _end_in_time() -> None:
    """Make sure that the process ends in time, even if a thread hangs or something blocks the event loop."""
    timer = threading.Timer(STOP_DEADLINE, _end_at_once)
    timer.daemon = True
    timer.start()


def _end_at_once() -> None:
    os.write(2, f"something did not stop within {STOP_DEADLINE:g} s; the host ends without it\n".encode())
    os._exit(_EXIT_STUCK)


def _warn_of_missing(settings: Settings) -> None:
    """Warn about agents, plugins and trusted directories that do not exist, before the first session needs them."""
    from ahpkit.agents.settings import missing_program

    for name, table in settings.agents.items():
        if (missing := missing_program(name, table)) is not None:
            click.echo(f"Warning: the agent {name} cannot start: {missing}", err=True)
    for plugin in settings.plugins:
        if (problem := plugin_problem(plugin)) is not None:
            click.echo(f"Warning: the plugin {as_typed(plugin)} is not read: {problem}", err=True)
    for trusted in settings.trusted:
        if not os.path.exists(trusted):
            click.echo(f"Warning: nothing is trusted at {trusted}: there is no such directory", err=True)


def as_typed(plugin: Path) -> str:
    """The name of a plugin as the person wrote it. A URI that became a path lost slashes, which are put back."""
    scheme, slash, rest = str(plugin).partition(":/")
    if not slash or not re.fullmatch(_SCHEME, scheme):
        return str(plugin)
    return f"{scheme}:///{rest}" if scheme == "file" else f"{scheme}://{rest}"


def plugin_problem(plugin: Path) -> str | None:
    """Why a plugin cannot be read; None if it can."""
    from ahpkit.customizations.discovery import why_absent

    return None if os.path.exists(plugin) else why_absent(plugin)


_PAUSE = 0.1
"""Seconds between two validators (`build_checks`). All are ready some seconds after the start."""

_EVERY_TURN = frozenset({"session", "chat"})
"""Channels whose actions the host itself makes in nearly every turn."""


def shapes() -> Iterator[Shape]:
    """The actions and methods that nearly every session uses. Others are left out, because a validator stays in memory:
    few sessions use actions that only the host dispatches in rare channels."""
    dispatched = [spec for spec in ACTIONS.values() if spec.client_dispatchable]
    by_host = [spec for spec in ACTIONS.values() if not spec.client_dispatchable and spec.channel in _EVERY_TURN]
    yield from (spec.shape for spec in (*dispatched, *by_host))
    yield from (spec.params for spec in COMMANDS.values())


async def build_checks(*, pause: float = _PAUSE) -> None:
    """Build the validators of actions and methods before they are needed, one after the other with pauses.

    Otherwise a validator is built at its first use, and blocks the event loop for up to ten milliseconds. Cancelled
    when the host stops.
    """
    for shape in shapes():
        await asyncio.sleep(pause)
        await asyncio.to_thread(prepare_check, shape)


__all__ = ["as_typed", "build_checks", "plugin_problem", "serve", "shapes", "with_options"]
