"""Offers the host to an agent as one MCP server: all tools in one list, which is kept up to date.

    gateway = Gateway(port)
    await gateway.serve(read, write)        # one connection of the agent
    gateway.changed()                       # after the tools changed

This module only speaks MCP. The port (`GatewayPort`) decides what a tool does, who is asked first and what clients see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ahpkit import __version__
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import CALL_TOOL, FIND_TOOL, FINDERS, Tool, asked_for, found_text, listed
from ahpkit.wire.tasks import Tasks

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

    async def serve(self, read: Any, write: Any) -> None:
        """Serve one connection until it ends."""
        options = self.server.create_initialization_options(NotificationOptions(tools_changed=True))
        connection: list[ServerSession] = []
        self._connections.append(connection)
        known = _connection.set(connection)
        try:
            await self.server.run(read, write, options)
        finally:
            _connection.reset(known)
            self._connections = [one for one in self._connections if one is not connection]

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
        return types.ListToolsResult(tools=[_as_mcp(tool) for tool in (*listed(self._port.tools()), *FINDERS)])

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
        is_there = any(tool.name == name for tool in self._port.tools())
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
        self._words: asyncio.Queue[str] = asyncio.Queue(100)
        self._first = asyncio.get_running_loop().call_later(beat, self.on_progress, "waiting")

    def on_progress(self, words: str) -> None:
        self._first.cancel()
        if not len(self._tasks):
            self._tasks.spawn(self._tell(), name="news of a call")
        if not self._words.full():
            self._words.put_nowait(words)

    def end(self) -> None:
        self._first.cancel()

    async def _tell(self) -> None:
        words, count = "waiting", 0
        while True:
            try:
                async with asyncio.timeout(self._beat):
                    words = await self._words.get()
            except TimeoutError:
                pass
            count += 1
            await _notify(lambda count=count, words=words: self._session.report_progress(count, None, words))


async def _notify(send: Callable[[], Awaitable[None]]) -> None:
    """Notify one connection. A connection that does not read any more is skipped."""
    try:
        await send()
    except (MCPError, RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


def _as_mcp(tool: ToolDefinition) -> types.Tool:
    keys = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta")
    definition = cast("JsonObject", tool)
    shown = {key: definition[key] for key in keys if definition.get(key) is not None}
    schema: JsonObject = definition.get("inputSchema") or {}
    shown["inputSchema"] = schema if schema.get("type") == "object" else {**schema, "type": "object"}
    return types.Tool.model_validate(shown)


def _result(result: JsonObject) -> types.CallToolResult:
    try:
        return types.CallToolResult.model_validate(result)
    except ValidationError:
        return _failed("the tool gave a result that cannot be passed on")


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


__all__ = ["NAME", "Gateway", "GatewayPort"]
