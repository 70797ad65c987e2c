"""An MCP server of a session in the client SDK: its state, its tools, logging in.

async with connect(mcp_apps=True) as client:
    session = await client.session(uri)
    time = session.mcp_server("time")
    await time.wait_ready()
    await time.call("get_current_time", {"timezone": "UTC"})
"""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from ahpkit.client.channels import Channel
from ahpkit.client.core import Core, given
from ahpkit.client.dispatch import Dispatch
from ahpkit.client.errors import ClientError
from ahpkit.client.oauth import Token, log_in
from ahpkit.client.subscription import wait_for
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AuthRequired, NotFound, PermissionDenied
from ahpkit.protocol.meta_keys import KEEP_TOKEN, RENEWAL, TRUST
from ahpkit.protocol.session.enablement import PlacedCustomization, find, walk
from ahpkit.protocol.session.mcp import McpServerState
from ahpkit.wire.errors import RPC_ERRORS, RpcError

_ANSWER = 5.0
"""Seconds for the server's state to change after a token was sent."""
_WAKE = 10.0
"""Seconds for a stopped server to begin to start. The servers of an unused session start when a client opens it."""

_HOST_CODES = frozenset({*RPC_ERRORS, AuthRequired.CODE, NotFound.CODE, PermissionDenied.CODE})
"""The error codes with which the host itself answers on the channel of a server. The other codes of AHP mean something
else in MCP: -32002 is a resource that does not exist."""


class McpNotReady(ClientError):
    """The server cannot serve requests now; the text says why."""


class McpServer:
    """One MCP server of a session. Its properties always come from the present state of the session."""

    def __init__(self, core: Core, channel: Channel, id: str) -> None:
        self.id = id
        self._core = core
        self._channel = channel

    @property
    def placed(self) -> PlacedCustomization:
        """The server's entry and its container. Raises `LookupError` if the session no longer has the server."""
        found = find(self._channel.plain_optimistic(), self.id)
        if found is None:
            raise LookupError(f"the session has no MCP server {self.id!r} any more")
        return found

    @property
    def name(self) -> str:
        return self.placed.entry["name"]

    @property
    def state(self) -> McpServerState:
        return self.placed.entry["state"]

    @property
    def channel(self) -> str | None:
        """The `mcp://` channel, or None while there is none. A restart of the server may change it."""
        return self.placed.entry.get("channel")

    @property
    def app(self) -> JsonObject | None:
        """`mcpApp.capabilities`, which an app of this server gets unchanged as the capabilities of its host."""
        app: JsonObject = self.placed.entry.get("mcpApp") or {}
        return app.get("capabilities")

    @property
    def may_run(self) -> bool:
        """Whether the server is switched on and the owner has agreed to its present declaration."""
        placed = self.placed
        meta: JsonObject = placed.entry.get("_meta") or {}
        return placed.effective.enabled and TRUST not in meta

    async def wait_ready(self, *, wake: float = _WAKE) -> None:
        """Wait until the server has started; raises `McpNotReady` when it does not become ready.

        A stopped server that may run has `wake` seconds to begin starting.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(wake):
                await wait_for(self._channel, lambda _: self._has_begun())
        while self.state["kind"] == "starting":  # In the optimistic state, `start()` shows before the host answers.
            await wait_for(self._channel, lambda _: self.state["kind"] != "starting")
        if self.state["kind"] != "ready":
            raise McpNotReady(_why(self.placed.entry))

    def _has_begun(self) -> bool:
        return self.state["kind"] != "stopped" or not self.may_run

    def start(self) -> Dispatch:
        """Start the server, also after an error."""
        return self._dispatch("mcpServerStartRequested")

    def stop(self) -> Dispatch:
        """Stop the server, without switching it off."""
        return self._dispatch("mcpServerStopRequested")

    # -- the side channel ------------------------------------------------------------------------------------------

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> Any:
        """Send one of the MCP requests that the host passes on. Raises `McpNotReady` while there is no channel.

        An error of the MCP server is an `RpcError` with the server's own code.
        """
        channel = self.channel
        if channel is None:
            raise McpNotReady(_why(self.placed.entry))
        try:
            return await self._core.request(method, params, channel=channel, timeout=timeout)
        except RpcError as error:
            if type(error) is RpcError or error.code in _HOST_CODES:
                raise
            raise RpcError(error.code, error.message, error.data) from None

    async def tools(self) -> list[JsonObject]:
        """All tools of the server, read page by page."""
        found: list[JsonObject] = []
        cursor: str | None = None
        while True:
            page = await self.request("tools/list", given(cursor=cursor))
            found += page["tools"]
            cursor = page.get("nextCursor")
            if not cursor or not page["tools"]:
                return found

    async def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, *, timeout: float = 600.0
    ) -> JsonObject:
        """Run a tool directly, without the agent: a `CallToolResult`."""
        return await self.request("tools/call", {"name": tool, "arguments": dict(arguments or {})}, timeout=timeout)

    async def read(self, uri: str) -> JsonObject:
        """Read a resource of the server: a `ReadResourceResult`."""
        return await self.request("resources/read", {"uri": uri})

    # -- logging in ------------------------------------------------------------------------------------------------

    async def log_in(
        self,
        *,
        open_browser: Callable[[str], Any] = webbrowser.open,
        client_id: str | None = None,
        client_secret: str | None = None,
        keep: bool = False,
        timeout: float = 300.0,
    ) -> None:
        """Log in at the server's authorization server (OAuth 2.1 in the browser) and give the host the token.

        Raises `McpNotReady` if the server wants no token, and `LoginFailed` if the login gave none. If the login allows
        it, the host renews a token that expires. The host forgets the login when this client leaves, unless `keep` is
        set.
        """
        state = self.state
        if state["kind"] != "authRequired":
            raise McpNotReady(f"{self.name} does not ask for a token now ({state['kind']})")
        token = await log_in(
            cast("JsonObject", state),
            open_browser=open_browser,
            client_id=client_id,
            client_secret=client_secret,
            timeout=timeout,
        )
        await self.authenticate(token, keep=keep)

    async def authenticate(self, token: Token | str, *, keep: bool = False) -> None:
        """Give the host a token for this server.

        Scopes that lack one that the server named are not sent. The server may have named all scopes that exist, and it
        decides itself whether the token is enough.
        """
        state = self.state
        if state["kind"] != "authRequired":
            raise McpNotReady(f"{self.name} does not ask for a token now ({state['kind']})")
        given_ = Token(token) if isinstance(token, str) else token
        scopes = given_.scopes or ()
        covers = set(cast("JsonObject", state).get("requiredScopes") or ()) <= set(scopes)
        params = given(
            resource=cast("JsonObject", state)["resource"]["resource"],
            token=given_.text,
            expiresIn=given_.expires_in,
            scopes=list(scopes) if scopes and covers else None,
            _meta=given(**{KEEP_TOKEN: keep or None, RENEWAL: self._renewal(given_)}) or None,
        )
        await self._core.request("authenticate", params)
        with suppress(TimeoutError):  # A token that the server rejects does not change the state.
            async with asyncio.timeout(_ANSWER):
                await wait_for(self._channel, lambda _: self.state != state)

    def _renewal(self, token: Token) -> Mapping[str, str] | None:
        """What an ahpkit host needs to renew the token. Other hosts get no refresh token, because they cannot use
        it."""
        host = self._core.handshake.host
        return token.renewal if host is not None and host.is_ahpkit else None

    def _dispatch(self, kind: str) -> Dispatch:
        return self._core.channels.dispatch(self._channel.uri, {"type": f"session/{kind}", "id": self.id})


def servers_of(core: Core, channel: Channel) -> list[McpServer]:
    """The servers of a session, at the top level and in containers."""
    entries = [placed.entry for placed in walk(channel.plain_optimistic())]
    return [McpServer(core, channel, entry["id"]) for entry in entries if entry.get("type") == "mcpServer"]


def _why(entry: JsonObject) -> str:
    state = entry["state"]
    name, kind = entry["name"], state["kind"]
    match kind:
        case "error":
            return f"{name} failed: {state['error']['message']}"
        case "authRequired":
            return f"{name} wants you to log in ({state['reason']})"
        case "ready":
            return f"{name} cannot be asked: connect with mcp_apps=True, to a host that has side channels"
        case _:
            return f"{name} does not run ({kind})"


__all__ = ["McpNotReady", "McpServer", "servers_of"]
