"""Puts a host together from settings: storage, agents, features, the HTTP front with the page, and TLS."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ahpkit.canvas.pages import Pages
from ahpkit.cli import shell_environment
from ahpkit.cli.output import bar
from ahpkit.cli.roots import make_fence, programs, start_directory
from ahpkit.cli.settings import Settings, SettingsError, default_data_dir
from ahpkit.cli.shell_environment import Environments
from ahpkit.dialects import SPOKEN, Generation
from ahpkit.host.agent import Agent
from ahpkit.host.clients.clients import register_client_list
from ahpkit.host.config import HostConfig
from ahpkit.host.feature import Feature
from ahpkit.host.host import Host
from ahpkit.host.resources.access import Access
from ahpkit.host.resources.feature import Resources
from ahpkit.host.resources.fence import Fence
from ahpkit.host.sessions import session_import
from ahpkit.host.sessions.old_log import convert_0_4
from ahpkit.host.terminals.feature import Terminals
from ahpkit.host.trust import TRUST_FILE, Trust
from ahpkit.http.router import Router
from ahpkit.http.server import HttpServer, serve_http
from ahpkit.log.datadir import data_directory, open_storage
from ahpkit.log.entry import Recovery
from ahpkit.platform.limits import FreedMemory
from ahpkit.platform.processes import end_orphans
from ahpkit.transports.auth import Authenticator, is_loopback, load_or_create_token
from ahpkit.transports.errors import BindError
from ahpkit.web.authority import own_addresses
from ahpkit.web.devices import Devices
from ahpkit.web.notify import Serve
from ahpkit.web.page import PageServer, page_name
from ahpkit.web.signin import SignIns

if TYPE_CHECKING:
    from ahpkit.customizations.feature import Customizations
    from ahpkit.telemetry.feature import Telemetry

_log = logging.getLogger(__name__)


class Running(NamedTuple):
    """A host that accepts connections, with everything that its caller needs to know about it."""

    server: HttpServer
    token: str | None
    data_dir: Path
    agents: list[str]
    """The names of the agents, the default one first."""
    page: PageServer
    serve: Serve
    """Serves a connection that comes from inside this process."""
    certificate: str | None
    """The certificate that the host shows, as PEM; None without TLS."""
    owner: str
    """A secret for programs of the host's owner. Clients do not know it."""


def _convert(old: Recovery) -> Recovery | None:
    """Convert the states that an older ahpkit stored, and show the progress. None: nothing had to be converted."""
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
    """Start the host that the settings describe, and stop it at the end of the block."""
    if no_token and not is_loopback(settings.host):
        raise BindError(f"--no-token works on loopback only, not on {settings.host}")
    with FreedMemory(), data_directory(settings.data_dir or default_data_dir()) as data_dir:
        if orphans := await asyncio.to_thread(end_orphans):
            _log.warning("ended %d processes that a killed host had left behind", orphans)
        token = None if no_token else load_or_create_token(data_dir / "token")
        pages, environments, owner = Pages(origins=settings.allowed_origins), Environments(), secrets.token_urlsafe(32)
        fence = make_fence(settings, data_dir, config_file=config_file)
        host, agents = _make_host(settings, data_dir, pages, fence=fence, environ=environments.of, spoken=spoken)
        sign_ins = SignIns(host.serve)
        page = PageServer(
            Devices(data_dir / "devices.json", clock=time.time),
            name=page_name(token),
            authority=data_dir / "tls" / "authority.crt",
            sign_in=sign_ins.begin,
            for_looking=pages.for_looking,
        )
        routes, tls = Router(), _tls(settings, data_dir)
        shell_environment.mount(routes, environments, owner)
        for mount in (page.mount, *host.registered.routes):
            mount(routes)
        async with (
            host,
            serve_http(
                page.guard(host.serve),
                auth=Authenticator(token, checks=[page.check]),
                host=settings.host,
                port=settings.port,
                hosts=settings.allowed_hosts,
                origins=settings.allowed_origins,
                ssl=None if tls is None else tls.context,
                routes=routes,
            ) as server,
            pages.serving(server.url, page_url=settings.page_url),
        ):
            page.listening(server.url, page_url=settings.page_url or _afar(settings, server))
            try:
                async with sign_ins:
                    shown = None if tls is None else tls.certificate
                    yield Running(server, token, data_dir, agents, page, host.serve, shown, owner)
            finally:
                await host.say_goodbye()  # Before the connections are closed: the server closes them.


def _make_host(
    settings: Settings,
    data_dir: Path,
    pages: Pages,
    *,
    fence: Fence,
    environ: Callable[[str], Mapping[str, str]],
    spoken: Sequence[Generation],
) -> tuple[Host, list[str]]:
    """The host with all its features, not started yet, and the names of its agents."""
    directory, telemetry = start_directory(settings, fence), make_telemetry()
    agents, features = make_parts(settings, data_dir, pages, fence=fence, directory=directory, environ=environ)
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
    register_client_list(host.extension, host.clients, failing=lambda: host.spine.log.failing)
    return host, _names(agents, settings.default_agent)


def _names(agents: Sequence[Agent], default: str | None) -> list[str]:
    names = [agent.provider for agent in agents]
    return sorted(names, key=lambda name: name != default)


def make_agents(
    settings: Settings,
    resources: Resources,
    terminals: Terminals,
    environ: Callable[[str], Mapping[str, str]] = lambda session: os.environ,
) -> Sequence[Agent]:
    """All agents: those of the settings, then the demo agent, then those that `ahpkit agents install` installed. The
    first one is the default."""
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
    """The agents and the features. Agents read files and run commands through the features of the host."""
    from ahpkit.mcp.feature import McpServers

    sealed, trust = programs(settings, fence), Trust(data_dir / TRUST_FILE)
    resources = Resources(
        content_directory=data_dir / "content",
        default_directory=directory,
        fence=fence,
        sealed=lambda: sealed | trust.files(),
    )
    terminals = Terminals(resources.reading, directory=directory, enabled=settings.terminals)
    customizations, canvases = make_customizations(settings, directory, trust), make_canvases(settings, data_dir, pages)
    changesets = make_changesets(data_dir, directory, trust, resources.access)
    servers = McpServers(
        customizations.servers,
        directory=directory,
        files=lambda: customizations.virtual_files,
        by_http=settings.agents_by == "http",
    )
    features = [resources, terminals, customizations, canvases, changesets, servers]
    return make_agents(settings, resources, terminals, environ), features


def make_telemetry() -> Telemetry:
    """The feature that sends traces, metrics and logs to subscribers, and serves the metrics to a scraper."""
    from ahpkit.telemetry.feature import Telemetry  # Imported late: other commands do not need the SDK.

    return Telemetry()


def make_changesets(data_dir: Path, directory: Path, trust: Trust, access: Access) -> Feature:
    """The feature that shows changed files. Git hooks and filters of a repository run only if they are trusted. Paths
    that are excluded from the roots are not shown."""
    from ahpkit.changes.feature import Changesets
    from ahpkit.customizations.runnables import repository_is_trusted

    return Changesets(
        data_dir / "changes",
        default_directory=directory,
        trusts=lambda folder: repository_is_trusted(folder, trust),
        shows=lambda path: access.fence.excluded.reason(path) is None,
        reaches=lambda path: access.fence.refusal(path) is None,
        writing=access.to_restore,
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
    """The feature that offers canvases: those of the host, those of extensions that the host starts, and those of
    extensions that connect to the host's socket."""
    from ahpkit.canvas.builtin import builtin_provider
    from ahpkit.canvas.extensions import SOCKET_NAME, ExtensionProcess, ExtensionSocket
    from ahpkit.canvas.feature import Canvases

    try:
        processes = [ExtensionProcess(command) for command in settings.extensions]
    except ValueError as error:
        raise SettingsError(f"--extension: {error}") from error
    sources = [*processes, ExtensionSocket(data_dir / SOCKET_NAME)]
    return Canvases([builtin_provider(pages)], sources=sources, pages=pages)


class _Tls(NamedTuple):
    context: ssl.SSLContext
    certificate: str | None
    """The certificate without its private key, as PEM; None without TLS."""


_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def _tls(settings: Settings, data_dir: Path) -> _Tls | None:
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None:
        if not settings.tls_authority:
            return None
        certificate, key = _own_certificate(settings, data_dir)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
        first = _CERTIFICATE.search(
            certificate.read_text(encoding="utf-8", errors="replace")
            # Only the certificate: the file may contain the key, too.
        )
    except OSError as error:  # `ssl.SSLError` is an `OSError`, too, and names no file.
        files = " and ".join(str(file) for file in (certificate, key) if file is not None)
        raise SettingsError(f"TLS: cannot use {files}: {error.strerror or error}") from error
    return _Tls(context, None if first is None else first[0])


def _own_certificate(settings: Settings, data_dir: Path) -> tuple[Path, Path]:
    try:
        from ahpkit.web.authority import certificate_for
    except ImportError as error:
        raise SettingsError("host.tls_authority needs one more package: pip install 'ahpkit[tls]'") from error
    names = [*settings.allowed_hosts, *own_addresses(settings.host), "localhost", "127.0.0.1"]
    return certificate_for(names, data_dir / "tls", now=datetime.now(UTC))


def _afar(settings: Settings, server: HttpServer) -> str | None:
    """The address of the page for other devices; None if they cannot reach it."""
    if is_loopback(settings.host) or not server.url.startswith("wss://"):
        return None
    name = next(iter([*settings.allowed_hosts, *own_addresses(settings.host)]), None)
    return None if name is None else f"https://{name}:{server.port}"


__all__ = ["Running", "running_host"]
