"""MCP in sessions: runs the servers that are switched on and trusted, and offers their tools to everyone.

`offers` names these servers. Clients see them by `session/mcpServerStateChanged`. The SDK is loaded when the first
server starts or the first agent connects.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ahpkit.host.agent import Chat, McpServerOffer, ToolCall, ToolOutcome, Turn, TurnContext
from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.registration import Command, Registration, SessionApplied
from ahpkit.mcp.errors import McpError
from ahpkit.mcp.gateway_socket import GatewaySocket
from ahpkit.mcp.prompts import attached, complete, expand
from ahpkit.mcp.results import outcome_of, result_of
from ahpkit.mcp.session_servers import Offers, SessionServers, SharedServers, load
from ahpkit.mcp.side_channel import SideChannels, channel_of
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.commands import AuthenticateParams
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import DIRECT, KEEP_TOKEN, RENEWAL, TRUST
from ahpkit.protocol.session.actions import session_mcp_server_state_changed
from ahpkit.protocol.session.enablement import find, walk
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import Owner, Tool, input_object
from ahpkit.wire.tasks import unless

if TYPE_CHECKING:
    from ahpkit.mcp.calls import Limits
    from ahpkit.mcp.gateway import Gateway
    from ahpkit.mcp.gateway_http import GatewayHttp
    from ahpkit.mcp.server import McpServer
    from ahpkit.mcp.tokens import Tokens

_PATIENCE = 10.0

_LIST_PATIENCE = 5.0
"""Seconds that an agent's list of tools waits for servers that are just starting. Many agents read it only once."""

_RUN = "mcp-run/"
"""Before the URI of a session: servers of it have run, and may have been shown as running when this run ends."""
_AT_REST = ("stopped", "error")

_CHANGES = frozenset(
    {
        *("session/customizationsChanged", "session/customizationUpdated", "session/customizationToggled"),
        *("session/customizationRemoved", "session/activeClientSet", "session/activeClientRemoved"),
        *("session/workingDirectorySet", "session/workingDirectoryRemoved", "session/workingDirectoryReplaced"),
    }
)


class McpServers(Feature):
    """The MCP servers of all sessions. `offers(session_uri)`: those that are switched on and may run."""

    name = "mcp"

    def __init__(
        self,
        offers: Offers,
        *,
        directory: Path | None = None,
        limits: Limits | None = None,
        files: Callable[[], Files] | None = None,
        by_http: bool = False,
        patience: float = _PATIENCE,
    ) -> None:
        """`directory` is the working directory of sessions that name none.

        `files` are the files that agents may read through the host. `by_http`: an agent that can use HTTP gets a URL
        instead of a program. `patience`: seconds that a turn waits for servers that are just starting. The tools of a
        slower server can be called later.
        """
        self._by_http = by_http
        self._patience = patience
        self._http: GatewayHttp | None = None
        self._files = files
        self._offers = offers
        self._directory = directory or Path.home()
        self._limits = limits
        self._sessions: dict[str, SessionServers] = {}
        self._gateways: dict[str, tuple[str, Sequence[McpServerOffer], contextlib.ExitStack]] = {}
        self._socket: GatewaySocket | None = None
        self._opening = asyncio.Lock()
        self._tokens: Tokens | None = None
        self._shared: SharedServers | None = None

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.actions.listen(self._on_applied, "session/")
        host.actions.refuse(self._refuse, "session/mcpServerStartRequested")
        host.channels.subscribed.add(self._subscribed)
        host.recover.add(self._recover)
        host.sessions.prepare.add(self._prepare_session)
        host.turns.prepare.add(self._prepare_turn)
        host.sessions.disposed.add(self._disposed)
        host.sessions.rested.add(self._disposed)
        host.sessions.chat_disposed.add(self._close_gateway)
        host.sessions.is_busy.add(self._is_busy)
        host.clients.gone.add(self._client_gone)
        host.tools.add(self)
        host.turns.servers.add(self._for_agent)
        host.completions.add(self._complete)
        host.agents.authenticate.add(self._take_token)
        host.commands.add(Command("_ahpkit/mcp/log", self._log))
        self._channels = SideChannels(services, self._behind)
        self._channels.register(host)

    async def aclose(self) -> None:
        for _, _, stack in self._gateways.values():
            stack.close()
        await asyncio.gather(*(session.aclose() for session in self._sessions.values()))
        if self._shared is not None:
            await self._shared.aclose()
        if self._tokens is not None:
            self._tokens.drop_all()
        for entrance in (self._socket, self._http):
            if entrance is not None:
                await entrance.__aexit__(None, None, None)

    # -- sessions --------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Show the servers that ran when the earlier run ended as stopped, before a client sees them as ready."""
        for key in list(self._services.values.keys(_RUN)):
            self._stopped(key.removeprefix(_RUN))
            self._services.values.set(key, None)

    def _stopped(self, uri: str) -> None:
        """Remove the servers that an earlier run showed, because none of them runs any more."""
        for placed in list(walk(self._services.state(uri) or {})):
            entry = placed.entry
            if entry.get("type") == "mcpServer" and entry.get("state", {}).get("kind") not in _AT_REST:
                stopped = session_mcp_server_state_changed(id=entry["id"], state={"kind": "stopped"})
                self._services.dispatch(uri, stopped)

    async def _prepare_session(self, session_uri: str) -> None:
        """A new session starts its servers now. A session from before a restart starts them when a client subscribes to
        it or starts a turn."""
        state = self._services.state(session_uri) or {}
        if state.get("lifecycle") == "creating":
            await self._session(session_uri).announced(self._patience)
        elif self._services.subscribers(session_uri):
            self._session(session_uri).look()
        elif session_uri not in self._sessions:
            self._stopped(session_uri)

    def _subscribed(self, uri: str) -> None:
        if uri not in self._sessions and (self._services.state(uri) or {}).get("lifecycle") == "ready":
            self._session(uri).look()

    async def _prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        session = self._sessions.get(chat.session_uri)
        if session is None:
            session = self._session(chat.session_uri)
            session.look()
        await session.settled(self._patience)
        if not (servers := [server for server in session.servers() if server.ready]):
            return prompt
        from ahpkit.mcp.calls import SilentCaller  # Not above: it loads the SDK, which is half of a start's cost.

        caller = SilentCaller(chat.session_uri)
        prompt = await expand(servers, prompt, caller)
        return "\n\n".join([prompt, *await attached(servers, message, caller)])

    async def _complete(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        session = self._sessions.get(self._services.session_of(chat_uri) or "")
        return [] if session is None else complete([one for one in session.servers() if one.ready], text, offset)

    def _session(self, uri: str) -> SessionServers:
        if uri not in self._sessions:
            self._stopped(uri)
            self._sessions[uri] = SessionServers(
                uri,
                self._services,
                self._offered,
                self.tokens,
                self.shared,
                self._limits,
                directory=self._directory,
                on_notification=self._channels.forward,
            )
        return self._sessions[uri]

    @property
    def shared(self) -> SharedServers:
        if self._shared is None:
            self._shared = SharedServers(self.tokens, self._limits)
        return self._shared

    def _behind(self, channel: str) -> tuple[SessionServers, McpServer] | None:
        """The ready server behind an `mcp://` channel."""
        for session in self._sessions.values():
            for server in session.servers():
                if server.ready and channel_of(session.uri, server.id) == channel:
                    return session, server
        return None

    @property
    def tokens(self) -> Tokens:
        if self._tokens is None:
            from ahpkit.mcp.tokens import Tokens

            self._tokens = Tokens()
        return self._tokens

    async def _offered(self, session_uri: str) -> Sequence[McpServerOffer]:
        """The servers that are switched on and may run, without those that the agent loads from the workspace by
        itself."""
        offers = await self._offers(session_uri)
        if not (files := self._services.loads_servers(session_uri)):
            return offers
        state = self._services.state(session_uri) or {}
        roots: Sequence[str] = state.get("workingDirectories") or [self._directory.as_uri()]
        loaded = {f"{root.rstrip('/')}/{file}" for root in roots for file in files}
        declared = {placed.entry["id"]: placed.entry.get("uri") for placed in walk(state)}
        return [
            replace(offer, direct=True, loaded=True) if declared.get(offer.id) in loaded else offer for offer in offers
        ]

    def _disposed(self, session_uri: str) -> None:
        self._services.values.set(_RUN + session_uri, None)
        session = self._sessions.pop(session_uri, None)
        if session is not None:
            self._services.spawn(session.aclose(), name="stop MCP servers")
        for chat, (known, *_) in list(self._gateways.items()):
            if known == session_uri:
                self._close_gateway(chat)

    def _close_gateway(self, chat_uri: str) -> None:
        """Admit the agent of a chat no more: another chat may get the same URI."""
        if (gateway := self._gateways.pop(chat_uri, None)) is not None:
            gateway[2].close()

    async def _log(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        """`_ahpkit/mcp/log`: the last lines of the log of the server `id` in the session `channel`."""
        session = self._sessions.get(str(params.get("channel")))
        server = None if session is None else session.get(str(params.get("id")))
        return {"lines": [] if server is None else server.log()}

    def _is_busy(self, session_uri: str) -> bool:
        """A session whose servers run stays live, because a server may hold data that a person wants to find again."""
        session = self._sessions.get(session_uri)
        return session is not None and any(server.state["kind"] != "stopped" for server in session.servers())

    def _on_applied(self, applied: SessionApplied) -> None:
        session = self._sessions.get(applied.channel)
        if session is None:
            return
        match applied.action["type"]:
            case kind if kind in _CHANGES:
                session.look()
                if "workingDirectory" in kind:
                    self._services.spawn(session.tell_roots(), name="tell MCP servers of their roots")
            case "session/mcpServerStateChanged" if applied.action["state"]["kind"] not in _AT_REST:
                if self._services.values.get(_RUN + applied.channel) is None:
                    self._services.values.set(_RUN + applied.channel, True)
            case "session/mcpServerStopRequested":
                session.stop(applied.action["id"])
            case "session/mcpServerStartRequested":
                session.start(applied.action["id"])
            case "session/mcpServerBackgroundRequested":
                session.to_background(applied.action["id"])
            case _:
                pass

    def _refuse(self, client_id: str, channel: str, action: JsonObject, state: JsonObject) -> str | None:
        if action["type"] != "session/mcpServerStartRequested":
            return None
        placed = find(state, action["id"])
        if placed is None:
            return None
        if not placed.effective.enabled:
            return f"the MCP server {placed.entry['name']} is switched off; switch it on first"
        meta: JsonObject = placed.entry.get("_meta") or {}
        if meta.get(TRUST):
            return f"the MCP server {placed.entry['name']} is not trusted as it is now; see: ahpkit trust list"
        if meta.get(DIRECT):
            return f"the MCP server {placed.entry['name']} is run by the agent, not by the host"
        return None

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
        from ahpkit.mcp.calls import TurnCaller  # Imported here, because it loads the SDK.

        try:
            caller = TurnCaller(turn, call, self._services)
            given = input_object(tool_input)
            self._services.may_wait()  # Most tools answer at once, so the call and its result can share one commit.
            return outcome_of(await server.call_tool(tool.own_name, given, caller))
        except (McpError, ValueError, RecursionError) as error:
            return ToolOutcome(success=False, error=str(error))

    # -- tokens ----------------------------------------------------------------------------------------------------

    async def _take_token(self, client_id: str, params: AuthenticateParams) -> bool:
        """Take a client's token for the servers that ask for it now.

        If the token lacks scopes that a server requires, the server keeps waiting. An empty token takes back the one
        that this client gave, which is not sent any more.
        """
        resource = params["resource"]
        if not params["token"] and self.tokens.take_back(_giver(client_id, params), resource):
            return True
        waiting = [
            (session, server)
            for session in self._sessions.values()
            for server in session.servers()
            if server.state["kind"] == "authRequired" and server.state["resource"]["resource"] == resource
        ]
        enough = [
            (session, server)
            for session, server in waiting
            if "scopes" not in params or set(server.state.get("requiredScopes") or ()) <= set(params["scopes"])
        ]
        if params["token"] and enough:
            self._give_token(client_id, params, enough)
        return bool(waiting)

    def _give_token(
        self, client_id: str, params: AuthenticateParams, waiting: Sequence[tuple[SessionServers, McpServer]]
    ) -> None:
        from ahpkit.mcp.tokens import Login, Renewal

        meta: JsonObject = params.get("_meta") or {}
        giver = _giver(client_id, params)
        renewal = Renewal.read(meta.get(RENEWAL))
        login = Login(
            params["token"],
            expires_in=params.get("expiresIn"),
            renewal=renewal,
            on_expiry=lambda: [server.token_expired() for _, server in waiting],
        )
        for session, server in waiting:
            self.tokens.give(giver, session.uri, params["resource"], login)
            server.token_given()

    def _client_gone(self, client_id: str) -> None:
        if self._tokens is not None:
            self._tokens.drop_client(client_id)

    # -- agents ----------------------------------------------------------------------------------------------------

    async def _for_agent(self, chat: Chat) -> Sequence[McpServerOffer]:
        """The servers for an agent: the host itself, and those that the owner wants the agent to run."""
        async with self._opening:
            if chat.uri not in self._gateways:
                self._gateways[chat.uri] = await self._open_gateway(chat)
        return self._gateways[chat.uri][1]

    async def _open_gateway(self, chat: Chat) -> tuple[str, Sequence[McpServerOffer], contextlib.ExitStack]:
        await load(lambda: import_module("ahpkit.mcp.gateway"))
        from ahpkit.mcp.gateway import NAME, Gateway

        if self._socket is None:
            self._socket = await GatewaySocket().__aenter__()
        session = self._session(chat.session_uri)
        files = None if self._files is None else self._files()
        gateway = Gateway(ChatGateway(chat, self._services, lambda: session.settled(_LIST_PATIENCE), files))
        stack = contextlib.ExitStack()
        way = stack.enter_context(self._socket.admit(gateway))
        stack.callback(self._services.follow_tools(chat.session_uri, lambda: self._tell(gateway)))
        config: JsonObject = {"command": way.command, "args": list(way.args), "env": dict(way.env)}
        if self._by_http:
            web = await (await self._gateway_http()).admit(gateway)
            stack.callback(web.close)
            config["http"] = {"url": web.url, "headers": dict(web.headers)}
        direct = [offer for offer in await self._offered(chat.session_uri) if offer.direct]
        session.handed_over(chat.uri, [offer.id for offer in direct])
        stack.callback(session.handed_over, chat.uri, ())
        given = [offer for offer in direct if not offer.loaded]
        return chat.session_uri, [McpServerOffer("ahp", NAME, config), *given], stack

    async def _gateway_http(self) -> GatewayHttp:
        if self._http is None:
            await load(lambda: import_module("ahpkit.mcp.gateway_http"))
            from ahpkit.mcp.gateway_http import GatewayHttp

            self._http = await GatewayHttp().__aenter__()
        return self._http

    def _tell(self, gateway: Gateway) -> None:
        self._services.spawn(gateway.changed(), name="tell an agent of its tools")


def _giver(client_id: str, params: AuthenticateParams) -> str:
    """The owner of a token: the client; empty if the host has to keep the token after the client has left."""
    meta: JsonObject = params.get("_meta") or {}
    return "" if meta.get(KEEP_TOKEN) is True else client_id


class Files(Protocol):
    """The files of a session that are on no disk."""

    def listed(self, session_uri: str) -> Sequence[JsonObject]: ...

    async def read(self, session_uri: str, uri: str) -> bytes: ...


class ChatGateway:
    """The tools of a session for the agent of one chat. Implements `ahpkit.mcp.gateway.GatewayPort`."""

    def __init__(
        self, chat: Chat, services: Services, settled: Callable[[], Awaitable[None]], files: Files | None = None
    ) -> None:
        self._chat = chat
        self._services = services
        self._settled = settled
        self._files = files
        self._over: tuple[Turn, asyncio.Future[Any]] | None = None
        """The turn of the last call, and a task that ends with that turn."""

    async def settled(self) -> None:
        await self._settled()

    def tools(self) -> Sequence[Tool]:
        return [tool for tool in self._services.tools(self._chat.session_uri) if tool.owner.kind != "agent"]

    def has_tool(self, name: str) -> bool:
        tool = self._services.tool(self._chat.session_uri, name)
        return tool is not None and tool.owner.kind != "agent"

    async def call(self, name: str, arguments: JsonObject, on_progress: Callable[[str], None]) -> JsonObject:
        turn = self._services.running_turn(self._chat.uri)
        if turn is None:
            return result_of(
                ToolOutcome(success=False, error="tools can be called only during a turn; no turn runs now")
            )
        outcome = await unless(self._end_of(turn), turn.call_tool(name, json.dumps(arguments), on_progress=on_progress))
        self._services.may_wait()  # Agents often make the next call at once, so both can share one commit.
        return result_of(outcome or ToolOutcome(success=False, error="the turn is over"))

    def _end_of(self, turn: Turn) -> asyncio.Future[Any]:
        if self._over is None or self._over[0] is not turn:
            self._over = turn, self._services.spawn(_ended(turn), name=f"end of turn {turn.id}")
        return self._over[1]

    async def read(self, uri: str) -> JsonObject:
        if self._files is None:
            raise KeyError(uri)
        data = await self._files.read(self._chat.session_uri, uri)
        return {"contents": [{"uri": uri, "text": data.decode("utf-8", "replace")}]}

    def resources(self) -> Sequence[JsonObject]:
        return () if self._files is None else self._files.listed(self._chat.session_uri)


async def _ended(turn: Turn) -> None:
    await turn.ended.wait()


__all__ = ["ChatGateway", "McpServers"]
