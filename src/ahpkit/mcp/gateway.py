"""Offers the host to an agent as one MCP server: all tools in one list, which is kept up to date.

    gateway = Gateway(port)
    await gateway.serve(lines)        # one connection of the agent
    gateway.changed()                 # after the tools changed

This module only speaks MCP. The port (`GatewayPort`) decides what a tool does, who is asked first and what clients see.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import modern_on_request, serve_loop
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
from pydantic import ValidationError

from ahpkit import __version__
from ahpkit.mcp.tolerance import without_bad_entries
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import CALL_TOOL, FIND_TOOL, FINDERS, Tool, asked_for, found_text, listed
from ahpkit.wire.tasks import Tasks
from ahpkit.wire.trace_context import TRACE_KEYS

if TYPE_CHECKING:
    from ahpkit.mcp.connect import LineStream

_log = logging.getLogger(__name__)

NAME = "ahp"
"""The name of this server for agents. It is short, because many agents put it before the name of every tool."""

_REMEMBERED = 50
"""Connections over HTTP that get notifications of changes. Their end is not reported, so their number is limited."""
_BEAT = 10.0
"""Seconds between two signs of life while a call waits."""

_INSTRUCTIONS = (
    "Tools of the user's editor, of the servers they configured, and canvases that they see. "
    "Tools may come and go: find_tool looks for what there is now, and call_tool calls it."
)

_connection: ContextVar[list[ServerSession] | None] = ContextVar("connection", default=None)


class GatewayPort(Protocol):
    """The session behind the server."""

    def tools(self) -> Sequence[Tool]:
        """The tools that are offered now."""
        ...

    def has_tool(self, name: str) -> bool:
        """Whether a tool is offered now."""
        ...

    async def settled(self) -> None:
        """Wait a moment for servers that are just starting."""
        ...

    async def call(self, name: str, arguments: JsonObject, on_progress: Callable[[str], None]) -> JsonObject:
        """Run a tool by the name the model used: a `CallToolResult`. Cancelled when the agent gives up.
        `on_progress` is called with texts about its progress."""
        ...

    async def read(self, uri: str) -> JsonObject:
        """A `ReadResourceResult`; raises `KeyError` for what this session does not have."""
        ...

    def resources(self) -> Sequence[JsonObject]:
        """What can be read, as MCP resources."""
        ...


class Gateway:
    """One agent session's server. Any number of connections may use it, of either era of MCP."""

    def __init__(self, port: GatewayPort, *, beat: float = _BEAT) -> None:
        self._port = port
        self._beat = beat
        self._bus = InMemorySubscriptionBus()
        self._connections: list[list[ServerSession]] = []
        """Connections of the older era, each with the function that notifies it of changes."""
        self._by_id: dict[str, list[ServerSession]] = {}
        """The same for connections over HTTP that have an id. The one that was used last is at the end."""
        self.server: Server[Any] = Server(
            NAME,
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.server.middleware[:] = [partial(_where_traced, spans) for spans in self.server.middleware]

    async def serve(self, lines: LineStream) -> None:
        """Serve one connection until it ends. Its first request decides the era.

        `Server.run` of the SDK would do the same, but passes every message on from one task to another.
        """
        connection: list[ServerSession] = []
        self._connections.append(connection)
        known = _connection.set(connection)
        try:
            if _is_modern(await lines.first_request()):
                await self._serve_modern(lines)
            else:
                options = self.server.create_initialization_options(NotificationOptions(tools_changed=True))
                await serve_loop(self.server, lines, lines, lifespan_state={}, init_options=options)
        finally:
            _connection.reset(known)
            self._connections = [one for one in self._connections if one is not connection]

    async def _serve_modern(self, lines: LineStream) -> None:
        answer = modern_on_request(self.server, {})

        async def on_request(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
            if method == "initialize":
                raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, _NO_HANDSHAKE, _versions(params))
            route = classify_inbound_request({"method": method, "params": params})
            if isinstance(route, InboundLadderRejection):
                raise MCPError(route.code, route.message, route.data)
            try:
                return await answer(context, method, params)
            except (MCPError, ValidationError):
                raise
            except Exception:
                _log.exception("a request of an agent failed: %s", method)
                raise MCPError(types.INTERNAL_ERROR, "the host failed to answer; its log has the details") from None

        async def on_notify(context: Any, method: str, params: Mapping[str, Any] | None) -> None:
            """Nothing is announced to the host in this era."""

        await JSONRPCDispatcher(lines, lines).run(on_request, on_notify)

    @contextmanager
    def connection(self, id: str) -> Generator[None]:
        """The connection of a request over HTTP, by its id; it gets notifications of changes. The first request has no
        id yet."""
        connection = self._by_id.pop(id, None) if id else None
        if connection is None:
            connection = []
            self._connections = [*self._connections[1 - _REMEMBERED :], connection]
        if id:
            self._by_id[id] = connection
            while len(self._by_id) > _REMEMBERED:
                del self._by_id[next(iter(self._by_id))]
        known = _connection.set(connection)
        try:
            yield
        finally:
            _connection.reset(known)

    async def changed(self) -> None:
        """Tell every connection that the list of tools changed."""
        await self._bus.publish(ToolsListChanged())
        for session in [session for connection in self._connections for session in connection]:
            await _notify(session.send_tool_list_changed)

    async def _list_tools(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._remember(context)
        await self._port.settled()
        shown = [_as_mcp(tool) for tool in (*listed(self._port.tools()), *FINDERS)]
        answer = types.ListToolsResult(tools=[]).model_dump(by_alias=True) | {"tools": shown}
        return types.ListToolsResult.model_validate(without_bad_entries(answer, context.protocol_version, {}))

    def _remember(self, context: Any) -> None:
        """Remember a connection of the older era, because it gets notifications of changes without a subscription."""
        if context.session.can_send_request and (connection := _connection.get()) is not None:
            connection[:] = [context.session]

    async def _call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        name, arguments = params.name, params.arguments or {}
        if name == FIND_TOOL:
            text = found_text([tool.definition for tool in self._port.tools()], arguments)
            return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
        if name == CALL_TOOL:
            try:
                name, arguments = asked_for(arguments)
            except ValueError as error:
                return _failed(str(error))
        is_there = self._port.has_tool(name)
        result = await self._alive(context, name, arguments)  # A call of a tool that has just gone is shown as failed.
        return result if is_there else _failed(f"there is no tool {name!r} now; find_tool shows what there is")

    async def _alive(self, context: Any, name: str, arguments: JsonObject) -> types.CallToolResult:
        """Run a call, and send signs of life meanwhile: a person may take longer to decide than the agent waits without
        a message."""
        async with Tasks() as tasks:
            news = _ProgressSender(self._beat, context.session, tasks)
            try:
                return _result(await self._port.call(name, arguments, news.on_progress))
            finally:
                news.end()

    async def _list_resources(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        listed = [types.Resource.model_validate(entry) for entry in self._port.resources()]
        return types.ListResourcesResult(resources=listed)

    async def _read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            return types.ReadResourceResult.model_validate(await self._port.read(str(params.uri)))
        except KeyError:
            raise MCPError(types.INVALID_PARAMS, f"there is nothing to read at {params.uri}") from None


class _ProgressSender:
    """Sends progress to the caller of a tool: each message, and the last message again after some seconds of silence.

    For a short call no task is started.
    """

    def __init__(self, beat: float, session: ServerSession, tasks: Tasks) -> None:
        self._beat = beat
        self._session = session
        self._tasks = tasks
        self._words: asyncio.Queue[str] | None = None
        self._first = asyncio.get_running_loop().call_later(beat, self.on_progress, "waiting")

    def on_progress(self, words: str) -> None:
        self._first.cancel()
        if self._words is None:
            self._words = asyncio.Queue(100)
            self._tasks.spawn(self._tell(self._words), name="news of a call")
        if not self._words.full():
            self._words.put_nowait(words)

    def end(self) -> None:
        self._first.cancel()

    async def _tell(self, news: asyncio.Queue[str]) -> None:
        words, count = "waiting", 0
        while True:
            try:
                async with asyncio.timeout(self._beat):
                    words = await news.get()
            except TimeoutError:
                pass
            count += 1
            await _notify(lambda count=count, words=words: self._session.report_progress(count, None, words))


_NO_HANDSHAKE = "this connection has begun without a handshake, so it takes none"


def _versions(params: Mapping[str, Any] | None) -> JsonObject:
    return {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": str((params or {}).get("protocolVersion", ""))}


async def _where_traced(
    spans: ServerMiddleware[Any], ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Make the SDK's spans, which takes long, only where somebody collects them or the agent names a trace."""
    if isinstance(get_tracer_provider(), ProxyTracerProvider) and not (ctx.meta or {}).keys() & TRACE_KEYS:
        return await call_next(ctx)
    return await spans(ctx, call_next)


def _is_modern(first: types.JSONRPCRequest | None) -> bool:
    """Whether the first request of a connection has the envelope of the newer era."""
    if first is None or first.method == "initialize":
        return False
    meta = (first.params or {}).get("_meta")
    return isinstance(meta, Mapping) and types.PROTOCOL_VERSION_META_KEY in meta


async def _notify(send: Callable[[], Awaitable[None]]) -> None:
    """Notify one connection. A connection that does not read any more is skipped."""
    try:
        await send()
    except (MCPError, RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


def _as_mcp(tool: ToolDefinition) -> JsonObject:
    """A tool as agents see it. Structured results are objects for the host and for the older era, so an output schema
    that is not about an object is not shown."""
    keys = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta")
    definition = cast("JsonObject", tool)
    shown = {key: definition[key] for key in keys if definition.get(key) is not None}
    schema: JsonObject = definition.get("inputSchema") or {}
    shown["inputSchema"] = schema if schema.get("type") == "object" else {**schema, "type": "object"}
    if shown.get("outputSchema", {}).get("type") != "object":
        shown.pop("outputSchema", None)
    return shown


def _result(result: JsonObject) -> types.CallToolResult:
    """A result as the SDK takes it. Most are texts, which the SDK may check alone."""
    content: Sequence[JsonObject] = result["content"]
    if all(part.get("type") == "text" for part in content):
        return cast("types.CallToolResult", {"resultType": "complete", **result})
    try:
        return types.CallToolResult.model_validate(result)
    except ValidationError:
        return _failed("the tool gave a result that cannot be passed on")


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


__all__ = ["NAME", "Gateway", "GatewayPort"]
