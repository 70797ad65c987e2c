"""MCP in sessions: servers that are switched on and may run do, their tools are everyone's, and agents see one server.

Which servers those are is asked of `offers`; what clients see of them goes out as `session/mcpServerStateChanged`. The
SDK is loaded when the first server starts or the first agent connects.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ahpkit.agents.acp.elicitation import answer, questions
from ahpkit.host.agent import Chat, McpServerOffer, ToolCall, ToolOutcome, Turn, TurnContext
from ahpkit.host.feature import Applied, Feature, Registration, Services
from ahpkit.host.turns.chat import path_of
from ahpkit.mcp.doorway import Doorway
from ahpkit.mcp.errors import McpConfigError, McpError
from ahpkit.mcp.outcome import definition_of, outcome_of, result_of
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.constructors import session_mcp_server_state_changed
from ahpkit.protocol.session.enablement import find
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import Owner, Tool

if TYPE_CHECKING:
    from ahpkit.mcp.auth import Tokens
    from ahpkit.mcp.fleet import Fleet
    from ahpkit.mcp.gateway import Gateway
    from ahpkit.mcp.server import Limits, McpServer

_log = logging.getLogger(__name__)

_PATIENCE = 10.0
"""Seconds that a turn waits for servers that are just starting; what comes later is there for the next call."""

_CHANGES = frozenset(
    {
        *("session/customizationsChanged", "session/customizationUpdated", "session/customizationToggled"),
        *("session/customizationRemoved", "session/activeClientSet", "session/activeClientRemoved"),
    }
)


class McpServers(Feature):
    """The MCP servers of all sessions. `offers(session_uri)`: those that are switched on and may run."""

    name = "mcp"

    def __init__(
        self, offers: Callable[[str], Awaitable[Sequence[McpServerOffer]]], *, limits: Limits | None = None
    ) -> None:
        self._offers = offers
        self._limits = limits
        self._sessions: dict[str, SessionServers] = {}
        self._gateways: dict[str, tuple[str, McpServerOffer, contextlib.ExitStack]] = {}
        self._doorway: Doorway | None = None
        self._opening = asyncio.Lock()
        self._tokens: Tokens | None = None

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.listen(self._heard)
        host.prepare_session(self._prepare_session)
        host.prepare_turn(self._prepare_turn)
        host.on_session_disposed(self._disposed)
        host.on_client_gone(self._client_gone)
        host.offer_tools(self)
        host.serve_agents(self._for_agent)
        host.authenticate(self._take_token)

    async def aclose(self) -> None:
        for _, _, stack in self._gateways.values():
            stack.close()
        await asyncio.gather(*(session.aclose() for session in self._sessions.values()))
        if self._doorway is not None:
            await self._doorway.__aexit__(None, None, None)

    # -- sessions --------------------------------------------------------------------------------------------------

    async def _prepare_session(self, session_uri: str) -> None:
        self._session(session_uri).look()

    async def _prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        await self._session(chat.session_uri).settled(_PATIENCE)
        return prompt

    def _session(self, uri: str) -> SessionServers:
        if uri not in self._sessions:
            self._sessions[uri] = SessionServers(uri, self._services, self._offers, self.tokens, self._limits)
        return self._sessions[uri]

    @property
    def tokens(self) -> Tokens:
        if self._tokens is None:
            from ahpkit.mcp.auth import Tokens

            self._tokens = Tokens()
        return self._tokens

    def _disposed(self, session_uri: str) -> None:
        session = self._sessions.pop(session_uri, None)
        if session is not None:
            self._services.spawn(session.aclose(), name="stop MCP servers")
        for chat, (known, _, stack) in list(self._gateways.items()):
            if known == session_uri:
                del self._gateways[chat]
                stack.close()

    def _heard(self, applied: Applied) -> None:
        session = self._sessions.get(applied.channel)
        if session is None:
            return
        match applied.action["type"]:
            case kind if kind in _CHANGES:
                session.look()
            case "session/mcpServerStopRequested":
                session.pause(applied.action["id"])
            case "session/mcpServerStartRequested":
                session.resume(applied.action["id"])
            case _:
                pass

    # -- tools -----------------------------------------------------------------------------------------------------

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        session = self._sessions.get(session_uri)
        return [] if session is None else session.offered()

    def asks(self, tool: Tool) -> bool:
        return True

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        session = self._sessions.get(turn.chat.session_uri)
        server = None if session is None else session.get(tool.owner.id)
        if server is None:
            return ToolOutcome(success=False, error=f"the MCP server {tool.owner.title} does not run any more")
        try:
            arguments: Any = json.loads(tool_input or "{}")
            if not isinstance(arguments, dict):
                raise McpError("the input of an MCP tool is an object")
            given = cast("JsonObject", arguments)
            return outcome_of(await server.call_tool(tool.own_name, given, TurnCaller(turn, call)))
        except ValueError as error:
            return ToolOutcome(success=False, error=f"the input is no JSON: {error}")
        except McpError as error:
            return ToolOutcome(success=False, error=str(error))

    # -- tokens ----------------------------------------------------------------------------------------------------

    async def _take_token(self, client_id: str, resource: str, token: str) -> bool:
        """Only for a server that asks for it now."""
        waiting = [
            server
            for session in self._sessions.values()
            for server in session.servers()
            if server.state["kind"] == "authRequired" and server.state["resource"]["resource"] == resource
        ]
        if waiting:
            self.tokens.give(client_id, resource, token)
            for server in waiting:
                server.token_given()
        return bool(waiting)

    def _client_gone(self, client_id: str) -> None:
        if self._tokens is not None:
            self._tokens.drop_client(client_id)

    # -- agents ----------------------------------------------------------------------------------------------------

    async def _for_agent(self, chat: Chat) -> Sequence[McpServerOffer]:
        """The host itself, as the one server that an agent starts."""
        async with self._opening:
            if chat.uri not in self._gateways:
                self._gateways[chat.uri] = await self._open_gateway(chat)
        return [self._gateways[chat.uri][1]]

    async def _open_gateway(self, chat: Chat) -> tuple[str, McpServerOffer, contextlib.ExitStack]:
        from ahpkit.mcp.gateway import NAME, Gateway

        if self._doorway is None:
            self._doorway = await Doorway().__aenter__()
        gateway = Gateway(ChatGateway(chat, self._services))
        stack = contextlib.ExitStack()
        way = stack.enter_context(self._doorway.admit(gateway))
        stack.callback(self._services.follow_tools(chat.session_uri, lambda: self._tell(gateway)))
        config = {"command": way.command, "args": list(way.args), "env": dict(way.env)}
        return chat.session_uri, McpServerOffer("ahp", NAME, config), stack

    def _tell(self, gateway: Gateway) -> None:
        self._services.spawn(gateway.changed(), name="tell an agent of its tools")


class SessionServers:
    """The servers of one session: wanted, running, shown. Implements `ahpkit.mcp.server.ServerPort`."""

    samples = False
    """No agent of this host answers for a model outside of its own turn."""

    def __init__(
        self,
        uri: str,
        services: Services,
        offers: Callable[[str], Awaitable[Sequence[McpServerOffer]]],
        tokens: Tokens,
        limits: Limits | None,
    ) -> None:
        self._uri = uri
        self._services = services
        self._offers = offers
        self._tokens = tokens
        self._limits = limits
        self._fleet: Fleet | None = None
        self._paused: set[str] = set()
        self._looking = False
        self._again = False
        self._closed = False
        self._news = asyncio.Event()

    # -- what is wanted --------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Something changed that may change which servers run."""
        self._again = True
        if not self._looking and not self._closed:
            self._looking = True
            self._services.spawn(self._look(), name="look after MCP servers")

    async def _look(self) -> None:
        try:
            while self._again and not self._closed:
                self._again = False
                await self._reconcile()
        finally:
            self._looking = False
            self._news.set()

    async def _reconcile(self) -> None:
        if self._services.state(self._uri) is None:
            return
        offers = [offer for offer in await self._offers(self._uri) if offer.id not in self._paused]
        if self._closed or (not offers and self._fleet is None):
            return
        from ahpkit.mcp.connect import ServerConfig, server_config
        from ahpkit.mcp.fleet import Fleet

        if self._fleet is None:
            self._fleet = Fleet(self, cwd=self._directory(), limits=self._limits)
        configs: dict[str, ServerConfig] = {}
        for offer in offers:
            try:
                configs[offer.id] = server_config(offer.name, offer.config)
            except McpConfigError as error:
                _log.warning("%s", error)
        self._fleet.want(configs)
        for server in self._fleet:
            self._show(server)

    def pause(self, id: str) -> None:
        """A client wants a server stopped; it stays so until a client wants it started."""
        self._paused.add(id)
        self.look()

    def resume(self, id: str) -> None:
        self._paused.discard(id)
        server = self.get(id)
        if server is not None:
            server.start_again()
        self.look()

    async def settled(self, seconds: float) -> None:
        """Wait while servers are just starting, but not longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._looking or any(server.state["kind"] == "starting" for server in self.servers()):
                    self._news.clear()
                    await self._news.wait()

    async def aclose(self) -> None:
        self._closed = True
        if self._fleet is not None:
            await self._fleet.__aexit__(None, None, None)

    def _directory(self) -> Path:
        uris = self.roots()
        return path_of(uris[0], Path.home()) if uris else Path.home()

    # -- what runs -------------------------------------------------------------------------------------------------

    def servers(self) -> list[McpServer]:
        return [] if self._fleet is None else list(self._fleet)

    def get(self, id: str) -> McpServer | None:
        return None if self._fleet is None else self._fleet.get(id)

    def offered(self) -> list[tuple[Owner, Sequence[ToolDefinition]]]:
        return [
            (Owner("mcp", server.id, server.config.name), [definition_of(tool) for tool in server.tools])
            for server in self.servers()
            if server.ready
        ]

    def changed(self, server: McpServer) -> None:
        if not self._closed:
            self._show(server)
            self._services.tools_changed(self._uri)
        self._news.set()

    def _show(self, server: McpServer) -> None:
        """Bring what clients see of a server in step."""
        state = self._services.state(self._uri)
        placed = None if state is None else find(state, server.id)
        if placed is not None and placed.entry.get("type") == "mcpServer" and placed.entry.get("state") != server.state:
            action = session_mcp_server_state_changed(id=server.id, state=cast("Any", server.state))
            self._services.dispatch(self._uri, action)

    def notified(self, server: McpServer, method: str, params: JsonObject) -> None:
        """Nobody listens to a server but through its lists."""

    def roots(self) -> Sequence[str]:
        state = self._services.state(self._uri) or {}
        return state.get("workingDirectories") or []

    def token(self, resource: str) -> str | None:
        return self._tokens.find(resource)

    def token_refused(self, resource: str, token: str) -> None:
        self._tokens.drop(resource, token)


class TurnCaller:
    """A turn that runs an MCP tool: progress is shown in the call, questions go to its people."""

    def __init__(self, turn: Turn, call: ToolCall) -> None:
        self._turn = turn
        self._call = call

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        self._call.content([{"type": "text", "text": f"{message} ({share})" if message else share}])

    async def elicit(self, params: JsonObject) -> JsonObject:
        words = str(params.get("message", ""))[:4000]
        if params.get("mode") == "url":
            given = await self._turn.ask([], message=words, url=str(params.get("url", "")))
            return {"action": given.response}
        schema = params.get("requestedSchema")
        return answer(schema, await self._turn.ask(questions(schema), message=words))

    async def sample(self, params: JsonObject) -> JsonObject:
        raise McpError("this host asks no model for a server")


class ChatGateway:
    """The tools of a session for the agent of one chat. Implements `ahpkit.mcp.gateway.GatewayPort`."""

    def __init__(self, chat: Chat, services: Services) -> None:
        self._chat = chat
        self._services = services

    def tools(self) -> Sequence[Tool]:
        return [tool for tool in self._services.tools(self._chat.session_uri) if tool.owner.kind != "agent"]

    async def call(self, name: str, arguments: JsonObject, told: Callable[[str], None]) -> JsonObject:
        turn = self._services.running_turn(self._chat.uri)
        if turn is None:
            return result_of(ToolOutcome(success=False, error="tools are called during a turn, and none runs"))
        work = asyncio.ensure_future(turn.call_tool(name, json.dumps(arguments)))
        over = asyncio.ensure_future(turn.ended.wait())
        try:
            await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return result_of(work.result())
            return result_of(ToolOutcome(success=False, error="the turn is over"))
        finally:
            over.cancel()
            work.cancel()
            await asyncio.gather(work, over, return_exceptions=True)

    async def read(self, uri: str) -> JsonObject:
        raise KeyError(uri)

    def resources(self) -> Sequence[JsonObject]:
        return ()


__all__ = ["ChatGateway", "McpServers", "SessionServers", "TurnCaller"]
