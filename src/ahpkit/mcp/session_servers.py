"""Manages the MCP servers of one session: starts and stops them, and shows them to clients.

`SessionServers` belongs to one session. `SharedServers` runs the servers that are marked `shared`, once for all
sessions. Both implement the port through which a running server uses the host (`ahpkit.mcp.calls.ServerPort`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ahpkit.host.agent import McpServerOffer
from ahpkit.host.feature import Services
from ahpkit.host.turns.chat import path_of
from ahpkit.mcp.errors import McpConfigError
from ahpkit.mcp.results import definition_of
from ahpkit.mcp.side_channel import capabilities_of, channel_of, has_apps
from ahpkit.protocol.common.reducing import put
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import DIRECT, LEFT_OUT
from ahpkit.protocol.session.actions import session_customization_updated, session_mcp_server_state_changed
from ahpkit.protocol.session.enablement import PlacedCustomization, find, walk
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import Owner

if TYPE_CHECKING:
    from ahpkit.mcp.calls import Limits
    from ahpkit.mcp.connect import ServerConfig
    from ahpkit.mcp.running_servers import RunningServers
    from ahpkit.mcp.server import McpServer
    from ahpkit.mcp.tokens import Tokens

_log = logging.getLogger(__name__)

_TRIES = 2
"""After this many failures in a row, messages do not wait for a server any more. One failure may be an accident."""

_loading = threading.Lock()


async def load(modules: Callable[[], object]) -> None:
    """Import large modules in a thread. One thread at a time, because the modules of the SDK import each other."""

    def work() -> None:
        with _loading:
            import_module("mcp")
            modules()

    await asyncio.to_thread(work)


Offers = Callable[[str], Awaitable[Sequence[McpServerOffer]]]
"""The servers of a session that are switched on and may run."""


class SessionServers:
    """The servers of one session. All methods belong to one event loop."""

    def __init__(
        self,
        uri: str,
        services: Services,
        offers: Offers,
        tokens: Tokens,
        shared: SharedServers,
        limits: Limits | None,
        *,
        directory: Path,
        on_notification: Callable[[SessionServers, McpServer, str, JsonObject], None],
    ) -> None:
        """`on_notification` is called for every notification of a server."""
        self.uri = uri
        self._default_directory = directory
        self._direct: set[str] = set()
        """Servers that agents get as declarations and run themselves."""
        self._handed_over: dict[str, frozenset[str]] = {}
        """By chat: the servers that its agent got."""
        self._services = services
        self._offers = offers
        self._tokens = tokens
        self._shared = shared
        self._limits = limits
        self._running: RunningServers | None = None
        self._origins: dict[str, str] = {}
        """By id: the name of a server for approval rules."""
        self._problems: dict[str, str] = {}
        """Declarations that cannot be started, by id."""
        self._stopped_by_client: set[str] = set()
        self._waited_for: set[str] = set()
        """Servers that a turn waits for."""
        self._in_background: set[str] = set()
        """Servers that no turn waits for, because a client asked for that."""
        self._looking = False
        self._again = False
        self._closed = False
        self._announced = asyncio.Event()
        self._news = asyncio.Event()
        self._on_notification = on_notification

    # -- what is wanted --------------------------------------------------------------------------------------------

    def look(self) -> None:
        """The configuration may have changed: start and stop servers."""
        self._again = True
        if not self._looking and not self._closed:
            self._looking = True
            self._services.spawn(self._look(), name="look after MCP servers")

    async def announced(self, seconds: float) -> None:
        """Start servers, and wait until clients see which ones are starting, but not longer than `seconds`."""
        self.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._announced.wait()

    async def _look(self) -> None:
        try:
            while self._again and not self._closed:
                self._again = False
                await self._reconcile()
        finally:
            self._looking = False
            self._announced.set()
            self._news.set()

    async def _reconcile(self) -> None:
        if self._services.state(self.uri) is None:
            return
        offered = await self._offers(self.uri)
        if self._running is None and not self._closed and (wanted := self._wanted(offered)):
            self._announce(wanted)
            await load(lambda: import_module("ahpkit.mcp.running_servers"))
        self._direct = {offer.id for offer in offered if offer.direct}
        if not self._closed:
            self._run(self._wanted(offered))  # Computed again: clients may have stopped or started some meanwhile.
            self._origins = {offer.id: offer.origin or offer.name for offer in offered}
            for server in self.servers():
                self._show(server)
        self._show_stopped()
        if self._running is not None:
            self._services.tools_changed(self.uri)  # Another session may have started a shared server before.

    def _wanted(self, offered: Sequence[McpServerOffer]) -> list[McpServerOffer]:
        return [offer for offer in offered if not offer.direct and offer.id not in self._stopped_by_client]

    def _run(self, wanted: Sequence[McpServerOffer]) -> None:
        """Start the wanted servers that do not run, and stop all others."""
        self._problems = {}
        if self._running is None:
            if not wanted:
                return
            from ahpkit.mcp.running_servers import RunningServers

            self._running = RunningServers(self, cwd=self._directory(), limits=self._limits)
        self._shared.want(self, self._configs([offer for offer in wanted if offer.shared]))
        self._running.want(self._configs([offer for offer in wanted if not offer.shared]))

    def _announce(self, wanted: Sequence[McpServerOffer]) -> None:
        """Show the servers that are about to start, before the slow part of the start."""
        running = {server.id for server in self.servers()}
        for offer in wanted:
            if offer.id not in running:
                self._show_state(offer.id, {"kind": "starting"})
        self._announced.set()

    def _configs(self, offers: Sequence[McpServerOffer]) -> Mapping[str, ServerConfig]:
        from ahpkit.mcp.connect import server_config

        configs: dict[str, ServerConfig] = {}
        for offer in offers:
            try:
                configs[offer.id] = server_config(offer.name, offer.config, offer.filled)
            except McpConfigError as error:
                self._problems[offer.id] = str(error)
        return configs

    def handed_over(self, chat_uri: str, ids: Collection[str]) -> None:
        """Note that the agent of a chat runs these servers itself; none when the agent is gone."""
        self._handed_over[chat_uri] = frozenset(ids)
        self.look()

    def stop(self, id: str) -> None:
        """A client wants a server stopped. It stays stopped until a client wants it started."""
        self._stopped_by_client.add(id)
        if self._running is not None:
            self._running.stop(id)  # At once, so that a start a moment later makes a new process.
        self.look()

    def start(self, id: str) -> None:
        """A client wants a server started. The server may have been stopped or have failed."""
        self._stopped_by_client.discard(id)
        server = self.get(id)
        if server is not None:
            server.start_again()
        self.look()

    def to_background(self, id: str) -> None:
        """A client asks that messages no longer wait for a server."""
        self._in_background.add(id)
        self._news.set()

    async def settled(self, seconds: float) -> None:
        """Wait for servers that are just starting, except those that were sent to the background.

        The next turn does not wait again for a server that takes longer. No turn waits for a server that keeps ending.
        """
        try:
            async with asyncio.timeout(seconds):
                while self._looking or self._starting():
                    self._wait_for(self._starting())
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            self._in_background |= self._starting()
        self._wait_for(set())

    def _starting(self) -> set[str]:
        starting = [server for server in self.servers() if server.state["kind"] == "starting"]
        return {server.id for server in starting if server.failures < _TRIES} - self._in_background

    def _wait_for(self, ids: set[str]) -> None:
        changed, self._waited_for = self._waited_for ^ ids, ids
        for server in self.servers():
            if server.id in changed:
                self._show(server)

    async def aclose(self) -> None:
        self._closed = True
        self._shared.want(self, {})
        self._tokens.drop_session(self.uri)
        if self._running is not None:
            await self._running.__aexit__(None, None, None)

    def _directory(self) -> Path:
        return path_of(self.roots()[0], self._default_directory)

    # -- what runs -------------------------------------------------------------------------------------------------

    def servers(self) -> list[McpServer]:
        own = [] if self._running is None else list(self._running)
        return [*own, *self._shared.of(self)]

    def get(self, id: str) -> McpServer | None:
        return next((server for server in self.servers() if server.id == id), None)

    def offered(self) -> list[tuple[Owner, Sequence[ToolDefinition]]]:
        return [
            (self._owner(server), [definition_of(tool) for tool in server.lists.tools])
            for server in self.servers()
            if server.takes_calls
        ]

    def _owner(self, server: McpServer) -> Owner:
        return Owner("mcp", server.id, server.config.name, self._origins.get(server.id, ""))

    # -- what a server knows of its session ------------------------------------------------------------------------

    def changed(self, server: McpServer) -> None:
        if not self._closed:
            if server.state["kind"] != "starting":
                self._in_background.discard(server.id)
            self._show(server)
            self._services.tools_changed(self.uri)
        self._news.set()

    def notified(self, server: McpServer, method: str, params: JsonObject) -> None:
        self._on_notification(self, server, method, params)

    @property
    def samples(self) -> bool:
        return self._services.sampling(self.uri) is not None

    def roots(self) -> Sequence[str]:
        state = self._services.state(self.uri) or {}
        return state.get("workingDirectories") or [self._default_directory.as_uri()]

    async def tell_roots(self) -> None:
        """The session's working directories changed."""
        for server in [] if self._running is None else list(self._running):
            await server.tell_roots()

    def token(self, resource: str) -> str | None:
        return self._tokens.find(self.uri, resource)

    def token_refused(self, resource: str, token: str) -> None:
        self._tokens.drop(resource, token)

    async def renew_token(self, resource: str) -> bool:
        return await self._tokens.renew(self.uri, resource)

    # -- what clients see ------------------------------------------------------------------------------------------

    def _show(self, server: McpServer) -> None:
        """Update the state of a server that clients see."""
        state, channel = server.state, None
        if state["kind"] == "starting" and server.id in self._waited_for:
            state = {**state, "blocking": True}
        if server.ready:
            channel = channel_of(self.uri, server.id)
        self._show_fields(server)
        self._show_state(server.id, state, channel)

    def _show_fields(self, server: McpServer) -> None:
        """Show clients how to reach the apps of a server while it runs, and which of its tools cannot be used. These
        are fields of the server's entry, like its name."""
        wanted = None
        if server.ready and has_apps(server):
            wanted = {"capabilities": capabilities_of(server, self._services.sampling(self.uri))}
        placed = find(self._services.state(self.uri) or {}, server.id)
        if placed is None:
            return
        left_out = dict(server.lists.left_out) if server.ready and server.lists.left_out else None
        noted: JsonObject = placed.entry.get("_meta") or {}
        self._update(placed, put(put(placed.entry, "mcpApp", wanted), "_meta", put(noted, LEFT_OUT, left_out) or None))

    def _update(self, placed: PlacedCustomization, entry: JsonObject) -> None:
        """Replace the entry that clients see."""
        if entry == placed.entry:
            return
        top = entry
        if (container := placed.container) is not None:
            children = [entry if child["id"] == entry["id"] else child for child in container["children"]]
            top = {**container, "children": children}
        self._services.dispatch(self.uri, session_customization_updated(customization=cast("Any", top)))

    def _show_stopped(self) -> None:
        """Update the entries of servers that do not run: stopped, or failed with the reason. A server that an agent
        runs is shown as ready, because the host does not learn more about it."""
        running = {server.id for server in self.servers()}
        given = self._direct & frozenset[str]().union(*self._handed_over.values())
        for placed in list(walk(self._services.state(self.uri) or {})):
            entry = placed.entry
            if entry.get("type") != "mcpServer" or entry["id"] in running:
                continue
            if entry["id"] in self._direct:
                self._note_direct(entry["id"])
            if (problem := self._problems.get(entry["id"])) is not None:
                error = {"errorType": "mcp/configuration", "message": problem}
                self._show_state(entry["id"], {"kind": "error", "error": error})
            elif entry["id"] in given:
                self._show_state(entry["id"], {"kind": "ready"})
            elif entry.get("state", {}).get("kind") not in ("stopped", "error"):
                self._show_state(entry["id"], {"kind": "stopped"})

    def _note_direct(self, id: str) -> None:
        placed = find(self._services.state(self.uri) or {}, id)
        if placed is not None:
            self._update(placed, {**placed.entry, "_meta": {**(placed.entry.get("_meta") or {}), DIRECT: True}})

    def _show_state(self, id: str, wanted: JsonObject, channel: str | None = None) -> None:
        placed = find(self._services.state(self.uri) or {}, id)
        if placed is None or placed.entry.get("type") != "mcpServer":
            return
        shown: JsonObject = placed.entry.get("state") or {}
        if shown == wanted and placed.entry.get("channel") == channel:
            return
        if (shown.get("kind"), wanted["kind"]) == ("starting", "stopped") and id in self._stopped_by_client:
            return  # A client has asked to start it again. That action is handled next.
        action = session_mcp_server_state_changed(id=id, state=cast("Any", wanted), channel=channel)
        self._services.dispatch(self.uri, action)


class SharedServers:
    """Servers that run once for all sessions. They get no working directories, and tokens from any of the sessions."""

    samples = False

    def __init__(self, tokens: Tokens, limits: Limits | None) -> None:
        self._tokens = tokens
        self._limits = limits
        self._running: RunningServers | None = None
        self._wanted: dict[SessionServers, Mapping[str, ServerConfig]] = {}

    def of(self, session: SessionServers) -> list[McpServer]:
        ids = self._wanted.get(session, {})
        return [] if self._running is None else [server for server in self._running if server.id in ids]

    def want(self, session: SessionServers, configs: Mapping[str, ServerConfig]) -> None:
        """Run the shared servers that this session or another one wants."""
        self._wanted.pop(session, None)
        if configs:
            self._wanted[session] = configs
        if self._running is None:
            if not configs:
                return
            from ahpkit.mcp.running_servers import RunningServers

            self._running = RunningServers(self, cwd=Path.home(), limits=self._limits)
        together: dict[str, ServerConfig] = {}
        for wanted in self._wanted.values():
            together = {**wanted, **together}
        self._running.want(together)

    async def aclose(self) -> None:
        if self._running is not None:
            await self._running.__aexit__(None, None, None)

    def changed(self, server: McpServer) -> None:
        for session, configs in list(self._wanted.items()):
            if server.id in configs:
                session.changed(server)

    def notified(self, server: McpServer, method: str, params: JsonObject) -> None:
        for session, configs in list(self._wanted.items()):
            if server.id in configs:
                session.notified(server, method, params)

    def roots(self) -> Sequence[str]:
        return ()

    def token(self, resource: str) -> str | None:
        found = (self._tokens.find(session.uri, resource) for session in self._wanted)
        return next((token for token in found if token is not None), None)

    def token_refused(self, resource: str, token: str) -> None:
        self._tokens.drop(resource, token)

    async def renew_token(self, resource: str) -> bool:
        for session in list(self._wanted):
            if await self._tokens.renew(session.uri, resource):
                return True
        return False


__all__ = ["Offers", "SessionServers", "SharedServers", "load"]
