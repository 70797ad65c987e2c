"""`mcp://`: clients that render MCP Apps talk to a running server over their AHP connection.

Every ready server has a channel. Requests on it are plain MCP requests with `channel` in their params. Only requests
that the advertised capabilities cover are served. Subscribers get the server's notifications. A tool call over this
channel passes the guards and the denying rules.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from ahpkit.host.agent import AgentError
from ahpkit.host.clients.dialect_choice import renders_apps
from ahpkit.host.feature import ConnectedClient, Services
from ahpkit.host.registration import Command, Registration
from ahpkit.mcp.errors import McpError, McpRefused
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InternalError, InvalidParams, MethodNotFound, NotFound, PermissionDenied, RpcError

if TYPE_CHECKING:
    from ahpkit.mcp.server import McpServer
    from ahpkit.mcp.session_servers import SessionServers

_log = logging.getLogger(__name__)

METHODS: Final[Mapping[str, str]] = {
    "tools/list": "serverTools",
    "tools/call": "serverTools",
    "resources/list": "serverResources",
    "resources/templates/list": "serverResources",
    "resources/read": "serverResources",
    "logging/setLevel": "logging",
    "sampling/createMessage": "sampling",
}
"""Method → the capability that it belongs to."""

FORWARDED: Final[Mapping[str, str]] = {
    "notifications/tools/list_changed": "serverTools",
    "notifications/resources/list_changed": "serverResources",
    "notifications/message": "logging",
}
"""The notifications of a server that are passed on to subscribers."""

_WORDS = 1000
_PLAIN_NAME = re.compile(r"[\w.-]+")


def channel_of(session_uri: str, server_id: str) -> str:
    """The URI of a server's channel. It stays the same as long as the session has the server, and differs between
    sessions."""
    name = session_uri.removeprefix("ahp-session:/")
    return f"mcp://{name if _PLAIN_NAME.fullmatch(name) else quote(session_uri, safe='')}/{server_id}"


def capabilities_of(server: McpServer, sampling: JsonObject | None) -> JsonObject:
    """The MCP capabilities of a server's channel, in the form of MCP Apps."""
    has = server.capabilities
    served: JsonObject = {}
    for name, own in (("serverTools", "tools"), ("serverResources", "resources")):
        if own in has:
            served[name] = {"listChanged": True} if has[own].get("listChanged") else {}
    if "logging" in has:
        served["logging"] = {}
    if sampling is not None:
        served["sampling"] = {"tools": {}} if "tools" in sampling else {}
    return served


def has_apps(server: McpServer) -> bool:
    """Whether a server has apps: it announces them, or one of its tools has a page."""
    from ahpkit.mcp.server import APPS

    extensions: JsonObject = server.capabilities.get("extensions") or {}
    return APPS in extensions or any(_has_page(tool) for tool in server.lists.tools)


def _has_page(tool: JsonObject) -> bool:
    meta: JsonObject = tool.get("_meta") or {}
    ui: Any = meta.get("ui")
    return "ui/resourceUri" in meta or (isinstance(ui, dict) and "resourceUri" in ui)


class SideChannels:
    """The channels of all ready servers. `find(channel)`: the session and the server behind one."""

    def __init__(self, services: Services, find: Callable[[str], tuple[SessionServers, McpServer] | None]) -> None:
        self._services = services
        self._find = find

    def register(self, host: Registration) -> None:
        host.channels.is_stateless.add(lambda uri: self._find(uri) is not None)
        for method in METHODS:
            host.commands.add(Command(method, self._serving(method)))
        host.commands.hear("notifications/message", self._log_message)

    def forward(self, session: SessionServers, server: McpServer, method: str, params: JsonObject) -> None:
        """Pass a server's notification on to the subscribers of its channel."""
        served = capabilities_of(server, self._services.sampling(session.uri))
        if server.ready and FORWARDED.get(method) in served:
            channel = channel_of(session.uri, server.id)
            for client in self._services.subscribers(channel):
                client.notify(method, {**params, "channel": channel})

    def _log_message(self, client: ConnectedClient, params: JsonObject) -> None:
        """Write a log entry of an app to the host's log, and send it to the other subscribers of the channel."""
        found = self._find(str(params.get("channel")))
        if found is None or not renders_apps(client.capabilities):
            return
        session, server = found
        if "logging" not in capabilities_of(server, self._services.sampling(session.uri)):
            return
        _log.info("an app of %s says: %s", server.config.name, json.dumps(params.get("data"))[:_WORDS])
        for other in self._services.subscribers(str(params["channel"])):
            if other.client_id != client.client_id:
                other.notify("notifications/message", params)

    def _serving(self, method: str) -> Callable[[ConnectedClient, JsonObject], Any]:
        async def serve(client: ConnectedClient, params: JsonObject) -> JsonObject:
            return await self._serve(client, method, params)

        return serve

    async def _serve(self, client: ConnectedClient, method: str, params: JsonObject) -> JsonObject:
        channel = str(params.get("channel"))
        if not channel.startswith("mcp://") or not renders_apps(client.capabilities):
            raise MethodNotFound(f"there is no method {method}")
        found = self._find(channel)
        if found is None:
            raise NotFound(f"there is no MCP server at {channel} now")
        session, server = found
        if METHODS[method] not in capabilities_of(server, self._services.sampling(session.uri)):
            raise MethodNotFound(f"{method} is not served on this channel")
        asked = {key: value for key, value in params.items() if key != "channel"}
        if method == "sampling/createMessage":
            return await self._sample(session, asked)
        if method == "tools/call":
            await self._check(session, server, asked, client)
        try:
            return await server.request(method, asked, ChannelCaller(session.uri, client, channel, asked))
        except McpRefused as error:
            raise RpcError(error.code, str(error), error.data) from error
        except McpError as error:
            raise InternalError(str(error)) from error

    async def _sample(self, session: SessionServers, request: JsonObject) -> JsonObject:
        if "tools" in request and "tools" not in (self._services.sampling(session.uri) or {}):
            raise InvalidParams("tools: the agent of this session does not take tools in a sampling request")
        try:
            return await self._services.sample(session.uri, request)
        except AgentError as error:
            raise InternalError(str(error)) from error

    async def _check(
        self, session: SessionServers, server: McpServer, asked: JsonObject, client: ConnectedClient
    ) -> None:
        name = asked.get("name")
        given: JsonObject = asked.get("arguments") or {}
        tools = self._services.tools(session.uri)
        tool = next((one for one in tools if one.owner.id == server.id and one.own_name == name), None)
        if tool is None:
            raise InvalidParams(f"name: {server.config.name} has no tool {str(name)[:100]!r}")
        reason = await self._services.check_call(session.uri, tool, json.dumps(given), client.client_id)
        if reason is not None:
            raise PermissionDenied(reason)


class ChannelCaller:
    """A client that called a tool over the channel. It gets the progress, but the server cannot ask questions, because
    that needs a turn."""

    def __init__(self, session: str, client: ConnectedClient, channel: str, asked: JsonObject) -> None:
        self.session = session
        self._client = client
        self._channel = channel
        meta: Any = asked.get("_meta")
        self._token: Any = cast("JsonObject", meta).get("progressToken") if isinstance(meta, dict) else None

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._token is not None:
            progress_params: JsonObject = {"channel": self._channel, "progressToken": self._token, "progress": progress}
            progress_params |= {} if total is None else {"total": total}
            self._client.notify(
                "notifications/progress", progress_params | ({} if message is None else {"message": message})
            )

    def auth_required(self, state: JsonObject) -> None:
        """The server's state shows that it needs a token, so nothing is left to do."""

    def auth_resolved(self) -> None: ...

    async def elicit(self, params: JsonObject) -> JsonObject:
        raise McpError("a server may ask questions only while an agent calls its tool; this call came from a client")

    async def sample(self, params: JsonObject) -> JsonObject:
        raise McpError("a server may ask the model only while an agent calls its tool; this call came from a client")


__all__ = ["METHODS", "ChannelCaller", "SideChannels", "capabilities_of", "channel_of", "has_apps"]
