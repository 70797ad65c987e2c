"""`ahpkit serve`: puts a host together from options and settings, and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import ssl
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ahpkit.agents.environments import Environments
from ahpkit.canvas.pages import Pages
from ahpkit.cli import daemon, shell_environment
from ahpkit.cli.announce import announce
from ahpkit.cli.config import say_left_out, trusted_settings
from ahpkit.cli.daemon import log_to_file, named_data_dir
from ahpkit.cli.progress import bar
from ahpkit.cli.roots import make_fence, programs, start_directory
from ahpkit.cli.settings import Settings, SettingsError, default_data_dir
from ahpkit.client.endpoints import publish_endpoint
from ahpkit.dialects import SPOKEN, Generation, pin
from ahpkit.host.agent import Agent
from ahpkit.host.clients import client_list
from ahpkit.host.config import HostConfig
from ahpkit.host.feature import Feature
from ahpkit.host.host import Host
from ahpkit.host.resources import Resources
from ahpkit.host.resources.fence import Fence
from ahpkit.host.sessions import session_import
from ahpkit.host.sessions.old_log import convert_0_4
from ahpkit.host.terminals import Terminals
from ahpkit.host.trust import TRUST_FILE, Trust
from ahpkit.http.router import Router
from ahpkit.http.server import HttpServer, serve_http
from ahpkit.log.datadir import data_directory
from ahpkit.log.durability import open_storage
from ahpkit.log.entry import Recovery
from ahpkit.platform.limits import (
    ChildLimits,
    LogLimit,
    allow_open_files,
    collect_nothing_yet,
    give_freed_memory_back,
    keep_collections_short,
    limit_children,
    memory_of_this_machine,
)
from ahpkit.platform.processes import end_orphans
from ahpkit.platform.signals import handling_signals, keep_ignored_signals_from_children
from ahpkit.transports.auth import Authenticator, is_loopback, load_or_create_token
from ahpkit.transports.errors import BindError
from ahpkit.web.addresses import own_addresses
from ahpkit.web.devices import Devices
from ahpkit.web.notify import Serve, Tell, command, notifying, webhook
from ahpkit.web.page import PageServer, page_name
from ahpkit.web.signin import SignIns

if TYPE_CHECKING:
    from ahpkit.customizations.feature import Customizations
    from ahpkit.telemetry.feature import Telemetry

_log = logging.getLogger(__name__)

_EXIT_AT_ONCE = 130
"""Exit code after the second Ctrl-C."""

_AGENT_HELP = "Add an agent: one `ahpkit agents` lists, a program that speaks ACP, or a model's URL (repeatable)."

_EXIT_STUCK = 70
"""Exit code when something had to be left behind. What was echoed is safe: it was stored before."""

STOP_DEADLINE = 20.0
"""Seconds from the signal to the end of the process, whatever hangs. Agents and clients get five to say goodbye."""

_FILES = 65_536
"""Files that may be open at once, where the system lets us have that many."""

_PATIENCE = 1.0
"""Seconds before a person wonders whether Ctrl-C did anything."""


@click.command()
@click.option("--host", help="Address to listen on. Anything but loopback needs the token.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.  [default: 7110]")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Where sessions are kept.")
@click.option(
    "--durability",
    type=click.Choice(["full", "normal", "memory"]),
    help="What is survived: full: a power cut; normal: a crash; memory: neither.  [default: full]",
)
@click.option("--no-token", is_flag=True, help="Let every local program in. Only on loopback.")
@click.option("--agent", "agents", multiple=True, metavar="NAME[=COMMAND|URL]", help=_AGENT_HELP)
@click.option("--plugin", "plugins", multiple=True, type=click.Path(path_type=Path), help="Add a plugin (repeatable).")
@click.option("--extension", "extensions", multiple=True, metavar="CMD", help="Start a canvas extension (repeatable).")
@click.option("--allow-hooks", is_flag=True, help="Run hooks, as far as they are trusted.")
@click.option("--trust", multiple=True, type=click.Path(path_type=Path), help="Trust a directory as it is now.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Let sessions work below this directory and no other (repeatable).  [default: this directory and your home]",
)
@click.option("--terminals", is_flag=True, help="Let clients open terminals.")
@click.option(
    "--protocol", metavar="VERSION", help="Speak one generation of the protocol only, such as 0.9.  [default: all]"
)
@click.option("--host-name", metavar="NAME", help="What to call this host; without --data-dir also where its data is.")
@click.option("--background", is_flag=True, help="Log to a file in the data directory: for services and `ahpkit up`.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
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
        port = settings.port if "host.port" in settings.origins else 0  # The usual one is the default host's.
        settings = replace(settings, data_dir=named, port=port)
    settings = with_options(settings, options)
    data_dir = (settings.data_dir or default_data_dir()).absolute()
    settings = replace(settings, data_dir=data_dir)
    if background:
        log_to_file(data_dir, logging.INFO)
    else:
        _log_to_stderr(logging.INFO if verbose else logging.WARNING)
    shown = _Shown(daemon.host_name(host_name, data_dir), as_json=as_json, background=background)
    try:
        asyncio.run(_run(settings, shown, no_token=no_token, config_file=config_file, spoken=_spoken(protocol)))
    except asyncio.CancelledError:
        raise SystemExit(_EXIT_AT_ONCE) from None


def _spoken(protocol: str | None) -> Sequence[Generation]:
    try:
        return SPOKEN if protocol is None else pin(protocol)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--protocol'") from None


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler()
    handler.setLevel(level)
    handler.addFilter(LogLimit())
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", handlers=[handler])


def with_options(settings: Settings, options: dict[str, Any]) -> Settings:
    """Settings with what the command line says on top."""
    single = {key: value for key in ("host", "port", "data_dir", "durability") if (value := options[key]) is not None}
    agents, added = dict(settings.agents), set[str]()
    for option in options["agents"]:
        name, _, command = option.partition("=")
        if name in added:
            raise click.UsageError(f"--agent {name} is given twice; give each agent a name of its own")
        added.add(name)
        agents[name] = {"option": option} if command or name not in agents else agents[name]
    return replace(
        settings,
        **single,
        agents=agents,
        roots=[*options["roots"]] or settings.roots,
        plugins=[*settings.plugins, *options["plugins"]],
        extensions=[*settings.extensions, *options["extensions"]],
        trusted=[*settings.trusted, *options["trust"]],
        allow_hooks=settings.allow_hooks or options["allow_hooks"],
        terminals=settings.terminals or options["terminals"],
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    """How a host shows itself: what it is called, and whether a person, a program or nobody reads what it prints."""

    name: str
    as_json: bool
    background: bool


def _child_limits(settings: Settings) -> ChildLimits:
    """What agents, extensions and MCP servers may have. By default none may take more than most of this machine."""
    if settings.child_memory is not None:
        memory = settings.child_memory * 1024 * 1024
    else:
        memory = (memory_of_this_machine() or 0) * 3 // 4
    return ChildLimits(memory or None, settings.child_processes or None)


async def _run(
    settings: Settings, shown: _Shown, *, no_token: bool, config_file: Path | None, spoken: Sequence[Generation]
) -> None:
    running_here = running_host(settings, no_token=no_token, config_file=config_file, spoken=spoken)
    allow_open_files(_FILES)
    limit_children(_child_limits(settings))
    keep_ignored_signals_from_children()
    give_freed_memory_back()
    collect_nothing_yet()
    with _stop_signals() as stop:
        async with running_here as running:
            keep_collections_short()
            url, token, data_dir = running.server.url, running.token, running.data_dir
            started = time.time_ns() // 1_000_000
            with publish_endpoint(
                url=url,
                token=token,
                data_dir=data_dir,
                started_at=started,
                name=shown.name,
                background=shown.background,
            ):
                if not shown.background:
                    announce(url, token, data_dir, running.agents, page=running.page.link(), as_json=shown.as_json)
                _warn_of_missing(settings)
                async with (
                    notifying(running.serve, _tells(settings), page_url=running.page.url),
                    SignIns(running.serve) as sign_ins,
                ):
                    running.page.sign_in = sign_ins.begin
                    await stop.wait()


def _tells(settings: Settings) -> list[Tell]:
    """Who is told when something waits."""
    hooks = [] if settings.webhook is None else [webhook(settings.webhook)]
    return [*hooks, *([command(settings.command)] if settings.command else [])]


@contextmanager
def _stop_signals() -> Generator[asyncio.Event]:
    """Ctrl-C and SIGTERM ask the host to stop. A second one ends it at once: the log needs no goodbye."""
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
    """A stop always ends: what hangs in a thread or holds the loop does not keep the process alive."""
    timer = threading.Timer(STOP_DEADLINE, _end_at_once)
    timer.daemon = True
    timer.start()


def _end_at_once() -> None:
    os.write(2, f"something did not stop within {STOP_DEADLINE:g} s; the host ends without it\n".encode())
    os._exit(_EXIT_STUCK)


class Running(NamedTuple):
    """A host that accepts connections, and what belongs to it."""

    server: HttpServer
    token: str | None
    data_dir: Path
    agents: list[str]
    """The default one first."""
    page: PageServer
    serve: Serve
    """Takes a connection from inside this process."""


def _convert(old: Recovery) -> Recovery | None:
    """Convert what an older ahpkit left, and show how far it is."""
    with bar("Converting the sessions of an older ahpkit") as show:
        return convert_0_4(old, show)


@asynccontextmanager
async def running_host(
    settings: Settings,
    *,
    no_token: bool,
    config_file: Path | None = None,
    spoken: Sequence[Generation] = SPOKEN,
) -> AsyncGenerator[Running]:
    """A host that accepts connections."""
    if no_token and not is_loopback(settings.host):
        raise BindError(f"--no-token works on loopback only, not on {settings.host}")
    with data_directory(settings.data_dir or default_data_dir()) as data_dir:
        if orphans := await asyncio.to_thread(end_orphans):
            _log.warning("ended %d processes that a killed host had left behind", orphans)
        token = None if no_token else load_or_create_token(data_dir / "token")
        devices = Devices(data_dir / "devices.json", clock=time.time)
        page = PageServer(devices, name=page_name(token), authority=data_dir / "tls" / "authority.crt")
        auth = Authenticator(token, checks=[page.check])
        pages, routes, environments = Pages(origins=settings.allowed_origins), Router(), Environments()
        shell_environment.mount(routes, environments, token)
        page.mount(routes)
        fence = make_fence(settings, data_dir, config_file=config_file)
        directory = start_directory(settings, fence)
        agents, features = make_parts(
            settings, data_dir, pages, fence=fence, directory=directory, environ=environments.of
        )
        telemetry = make_telemetry()
        host = Host(
            open_storage(data_dir, settings.durability, convert=_convert),
            agents=agents,
            features=[*features, telemetry],
            tracer_provider=telemetry.tracer_provider,
            config=HostConfig(
                default_directory=directory,
                default_provider=settings.default_agent,
                client_grace=settings.client_grace,
                rules=settings.rules,
                spoken=spoken,
            ),
        )
        session_import.register(host.extension, host.sessions)
        client_list.register(host.extension, host.clients, failing=lambda: host.spine.log.failing)
        for mount in host.registered.routes:
            mount(routes)
        async with (
            host,
            serve_http(
                page.guard(host.serve),
                auth=auth,
                host=settings.host,
                port=settings.port,
                hosts=settings.allowed_hosts,
                origins=settings.allowed_origins,
                ssl=_tls(settings, data_dir),
                routes=routes,
            ) as server,
            pages.serving(server.url, page_url=settings.page_url),
        ):
            page.listening(server.url, page_url=settings.page_url or _afar(settings, server))
            try:
                yield Running(server, token, data_dir, _names(agents, settings.default_agent), page, host.serve)
            finally:
                await host.say_goodbye()  # While connections are still open: the server closes them.


def _names(agents: Sequence[Agent], default: str | None) -> list[str]:
    names = [agent.provider for agent in agents]
    return sorted(names, key=lambda name: name != default)


def _warn_of_missing(settings: Settings) -> None:
    """Say which agents are not installed and which plugins are not there: better now than in the first session."""
    from ahpkit.agents.settings import missing_program

    for name, table in settings.agents.items():
        if (missing := missing_program(name, table)) is not None:
            click.echo(f"Warning: the agent {name} cannot start: {missing}", err=True)
    for plugin in settings.plugins:
        if (problem := plugin_problem(plugin)) is not None:
            click.echo(f"Warning: the plugin {plugin} is not read: {problem}", err=True)


def plugin_problem(plugin: Path) -> str | None:
    """Why a plugin that was named cannot be read, or None."""
    named = str(plugin)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", named):  # A path that was a URI lost one of its slashes.
        return "packages and marketplaces by URI are not supported; install it, and name its folder"
    if not plugin.expanduser().exists():
        return "there is no such folder"
    return None


def make_agents(
    settings: Settings,
    resources: Resources,
    terminals: Terminals,
    environ: Callable[[str], Mapping[str, str]] = lambda session: os.environ,
) -> Sequence[Agent]:
    """The configured agents, then the demo agent, then those of `ahpkit agents install`. The first is the default."""
    from ahpkit.agents.acp.installing import installed
    from ahpkit.agents.demo import DemoAgent
    from ahpkit.agents.settings import agent_from_settings

    def made(tables: Mapping[str, Mapping[str, Any]]) -> list[Agent]:
        return [
            agent_from_settings(name, table, resources=resources, terminals=terminals, environ=environ)
            for name, table in tables.items()
        ]

    further: dict[str, Mapping[str, Any]] = {name: {} for name in installed() if name not in settings.agents}
    agents = [*made(settings.agents), DemoAgent(files=resources.agent_files), *made(further)]
    known = [agent.provider for agent in agents]
    if settings.default_agent not in (None, *known):
        raise SettingsError(
            f"host.default_agent: there is no agent {settings.default_agent!r}; known: {', '.join(known)}"
        )
    return agents


def make_parts(
    settings: Settings,
    data_dir: Path,
    pages: Pages,
    *,
    fence: Fence,
    directory: Path,
    environ: Callable[[str], Mapping[str, str]] = lambda session: os.environ,
) -> tuple[Sequence[Agent], Sequence[Feature]]:
    """The agents and the features: agents reach files and run commands through those of the host."""
    from ahpkit.mcp.feature import McpServers

    sealed, trust = programs(settings, fence), Trust(data_dir / TRUST_FILE)
    resources = Resources(content_directory=data_dir / "content", fence=fence, sealed=lambda: sealed | trust.files())
    terminals = Terminals(resources.access, directory=directory, enabled=settings.terminals)
    customizations, canvases = make_customizations(settings, directory, trust), make_canvases(settings, data_dir, pages)
    changesets = make_changesets(data_dir, directory, trust, fence)
    servers = McpServers(
        customizations.servers,
        directory=directory,
        files=lambda: customizations.virtual_files,
        by_http=settings.agents_by == "http",
    )
    features = [resources, terminals, customizations, canvases, changesets, servers]
    return make_agents(settings, resources, terminals, environ), features


def make_telemetry() -> Telemetry:
    """Traces, metrics and logs for those who subscribe, and metrics for a scraper."""
    from ahpkit.telemetry.feature import Telemetry  # Late: other commands do not need an SDK.

    return Telemetry()


def make_changesets(data_dir: Path, directory: Path, trust: Trust, fence: Fence) -> Feature:
    """Hooks and filters of a repository run as they were trusted; what is cut out of the roots is not shown."""
    from ahpkit.changes.feature import Changesets
    from ahpkit.customizations.runnables import repository_is_trusted

    return Changesets(
        data_dir / "changes",
        default_directory=directory,
        trusts=lambda folder: repository_is_trusted(folder, trust),
        shows=lambda path: fence.cuts.reason(path) is None,
    )


def make_customizations(settings: Settings, directory: Path, trust: Trust) -> Customizations:
    from ahpkit.customizations.feature import Customizations, CustomizationSettings

    return Customizations(
        CustomizationSettings(
            default_directory=directory,
            home=Path.home(),
            plugins=settings.plugins,
            trusted=settings.trusted,
            trust=trust,
            allow_hooks=settings.allow_hooks,
            remember_toggles=settings.remember_toggles,
            off=settings.off,
            environment=os.environ,
            servers=settings.servers,
        )
    )


def make_canvases(settings: Settings, data_dir: Path, pages: Pages) -> Feature:
    """The host's own canvases, the extensions it starts, and a socket for those that come by themselves."""
    from ahpkit.canvas.builtin import builtin_provider
    from ahpkit.canvas.extension_sources import SOCKET_NAME, ExtensionProcess, ExtensionSocket
    from ahpkit.canvas.feature import Canvases

    try:
        processes = [ExtensionProcess(command) for command in settings.extensions]
    except ValueError as error:
        raise SettingsError(f"--extension: {error}") from error
    sources = [*processes, ExtensionSocket(data_dir / SOCKET_NAME)]
    return Canvases([builtin_provider(pages)], sources=sources, pages=pages)


def _tls(settings: Settings, data_dir: Path) -> ssl.SSLContext | None:
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None:
        if not settings.tls_authority:
            return None
        certificate, key = _own_certificate(settings, data_dir)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one, and names no file.
        files = " and ".join(str(file) for file in (certificate, key) if file is not None)
        raise SettingsError(f"TLS: cannot use {files}: {error.strerror or error}") from error
    return context


def _own_certificate(settings: Settings, data_dir: Path) -> tuple[Path, Path]:
    try:
        from ahpkit.web.authority import certificate_for
    except ImportError as error:
        raise SettingsError("host.tls_authority needs one more package: pip install 'ahpkit[tls]'") from error
    names = [*settings.allowed_hosts, *own_addresses(settings.host), "localhost", "127.0.0.1"]
    return certificate_for(names, data_dir / "tls", now=datetime.now(UTC))


def _afar(settings: Settings, server: HttpServer) -> str | None:
    """Where other devices find the page, when they can."""
    if is_loopback(settings.host) or not server.url.startswith("wss://"):
        return None
    name = next(iter([*settings.allowed_hosts, *own_addresses(settings.host)]), None)
    return None if name is None else f"https://{name}:{server.port}"


__all__ = ["running_host", "serve", "with_options"]
