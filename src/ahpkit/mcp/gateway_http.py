"""The loopback port where agents that speak MCP over HTTP reach their gateway, with a secret for each session.

    async with GatewayHttp() as server:
        way = await server.admit(gateway)      # a URL and headers for the agent
        ...
        way.close()

Agents connect to it themselves, while `gateway_socket` needs a program in between. Web pages cannot connect: requests
with an `Origin`, with another host name, or without the secret are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Self

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from ahpkit.mcp.gateway import Gateway
from ahpkit.mcp.gateway_socket import key_of

_LOOPBACK = "127.0.0.1"
_PATH = "/mcp"
_MAX_BODY = 8 * 1024 * 1024
_MAX_SESSIONS = 20
"""Connections of one agent at a time."""


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """The URL and headers with which an agent reaches the gateway. Only `headers` hold the secret."""

    url: str
    headers: dict[str, str]
    over: asyncio.Event

    def close(self) -> None:
        """Stop admitting the agent, and end its connections."""
        self.over.set()

    def __repr__(self) -> str:
        return f"HttpAccess({self.url!r}, headers=…)"


class _Server(uvicorn.Server):
    """A server that leaves the signals of this process to the host."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class GatewayHttp:
    """One listening port for all sessions of a host."""

    def __init__(self) -> None:
        self._managers: dict[str, tuple[Gateway, StreamableHTTPSessionManager]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0

    async def __aenter__(self) -> Self:
        listening = socket.create_server((_LOOPBACK, 0))
        self._port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            lifespan="off",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]), name="MCP for agents, by HTTP")
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.should_exit = True
        await asyncio.gather(self._serving, return_exceptions=True)

    async def admit(self, gateway: Gateway) -> HttpAccess:
        """Let an agent in until its pass is closed."""
        secret, over, ready = secrets.token_urlsafe(32), asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(self._hold(gateway, key_of(secret), ready, over), name="an agent's way to the host")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await ready.wait()
        url = f"http://{_LOOPBACK}:{self._port}{_PATH}"
        return HttpAccess(url, {"Authorization": f"Bearer {secret}"}, over)

    async def _hold(self, gateway: Gateway, key: str, ready: asyncio.Event, over: asyncio.Event) -> None:
        manager = StreamableHTTPSessionManager(
            gateway.server, max_request_body_size=_MAX_BODY, max_sessions=_MAX_SESSIONS
        )
        try:
            async with manager.run():
                self._managers[key] = (gateway, manager)
                ready.set()
                await over.wait()
        finally:
            self._managers.pop(key, None)
            ready.set()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = {key.lower(): value.decode("latin-1") for key, value in scope["headers"]}
        status, known = self._checked(scope["path"], headers)
        if known is None:
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        gateway, manager = known
        with gateway.connection(headers.get(b"mcp-session-id", "")):
            await manager.handle_request(scope, receive, send)

    def _checked(
        self, path: str, headers: dict[bytes, str]
    ) -> tuple[int, tuple[Gateway, StreamableHTTPSessionManager] | None]:
        if b"origin" in headers or headers.get(b"host") not in (f"{_LOOPBACK}:{self._port}", f"localhost:{self._port}"):
            return 403, None
        if path != _PATH:
            return 404, None
        kind, _, secret = headers.get(b"authorization", "").partition(" ")
        known = self._managers.get(key_of(secret)) if kind.lower() == "bearer" else None
        return 401, known


__all__ = ["GatewayHttp", "HttpAccess"]
