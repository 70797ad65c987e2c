"""The test server over HTTP, in this process: streamable HTTP or SSE, with or without a token that it wants."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from mcp_servers.sdk_server import make


class Guard:
    """Wants one of its tokens on every request to the server, and says so as RFC 9728 wants it."""

    def __init__(self, *, scope: str = "files:read", metadata: dict[str, Any] | None = None) -> None:
        self.tokens: set[str] = set()
        self.weak: set[str] = set()
        """Tokens that lack a scope."""
        self.scope = scope
        self.metadata = metadata
        self.seen: list[str | None] = []
        self.before_answer: Callable[[], Awaitable[None]] | None = None
        """Called for each request with a valid token, before it is answered."""
        self.origin = ""

    def __call__(self, app: Any) -> Any:
        async def guarded(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["path"].startswith("/.well-known"):
                await app(scope, receive, send)
                return
            given = Request(scope).headers.get("authorization")
            self.seen.append(given)
            token = (given or "").removeprefix("Bearer ")
            if token in self.tokens:
                if self.before_answer is not None:
                    await self.before_answer()
                await app(scope, receive, send)
                return
            await self._refusal(token)(scope, receive, send)

        return guarded

    def _refusal(self, token: str) -> Response:
        place = f'resource_metadata="{self.origin}/.well-known/oauth-protected-resource/mcp"'
        if token in self.weak:
            challenge = f'Bearer error="insufficient_scope", scope="files:write", {place}'
            return Response(status_code=403, headers={"www-authenticate": challenge})
        scope = f', scope="{self.scope}"' if self.scope else ""
        challenge = f'Bearer error="invalid_token", error_description="log in first"{scope}, {place}'
        return Response(status_code=401, headers={"www-authenticate": challenge})

    def described(self, request: Request) -> Response:
        default = {
            "resource": f"{self.origin}/mcp",
            "authorization_servers": ["https://login.example"],
            "scopes_supported": ["files:read", "files:write"],
        }
        return JSONResponse(default | (self.metadata or {}))


@asynccontextmanager
async def http_server(
    guard: Guard | None = None, *, sse: bool = False, redirect: str | None = None, at: str = "/mcp"
) -> AsyncGenerator[str]:
    """The URL of a running server."""
    routes: list[Any] = []
    server = make()
    lifespan = None
    if redirect is not None:
        routes.append(Route("/mcp", RedirectResponse(redirect, 307), methods=["GET", "POST"]))
    elif sse:
        routes += _sse_routes(server)
    else:
        inner = server.streamable_http_app(streamable_http_path=at)
        routes += inner.routes
        lifespan = inner.router.lifespan_context
    if guard is not None:
        routes.append(Route("/.well-known/oauth-protected-resource/mcp", guard.described))
    app: Any = Starlette(routes=routes, lifespan=lifespan)

    def known(origin: str) -> Any:
        if guard is None:
            return app
        guard.origin = origin
        return guard(app)

    async with serving(known) as origin:
        yield f"{origin}{'/sse' if sse else at}"


@asynccontextmanager
async def serving(app_at: Callable[[str], Any]) -> AsyncGenerator[str]:
    """The origin of an application that is served meanwhile; it is made once the origin is known."""
    listening = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
    app = app_at(origin)
    uvicorn_server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1))
    task = asyncio.create_task(uvicorn_server.serve(sockets=[listening]))
    try:
        while not uvicorn_server.started:  # noqa: ASYNC110  # uvicorn does not wake us.
            await asyncio.sleep(0.01)
        yield origin
    finally:
        uvicorn_server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        listening.close()


def _sse_routes(server: Any) -> list[Any]:
    transport = SseServerTransport("/messages/")

    async def connect(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:  # pyright: ignore[reportPrivateUsage]  # As the SDK's own examples do it.
            await server.run(streams[0], streams[1], server.create_initialization_options())
        return Response()

    return [Route("/sse", connect), Mount("/messages/", app=transport.handle_post_message)]
