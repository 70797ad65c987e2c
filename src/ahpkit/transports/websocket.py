"""The WebSocket server, on TCP or on a Unix socket, with a little HTTP on the same port. Knows no messages."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from ssl import SSLContext
from typing import Any
from weakref import WeakSet

from websockets.asyncio.server import Server, ServerConnection, serve, unix_serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.typing import Subprotocol

from ahpkit.transports.auth import SUBPROTOCOL, Authenticator, check_bind
from ahpkit.transports.connection import (
    PING_INTERVAL,
    ServerSide,
    WebSocketTransport,
    address,
    log,
    shared_options,
)
from ahpkit.transports.errors import BindError
from ahpkit.transports.gate import Gate, HttpHandler, HttpResponse
from ahpkit.transports.unix import unix_listener, unix_url
from ahpkit.wire.transport import PeerInfo, Transport

MAX_SIZE = 16 * 1024 * 1024
"""Bytes of one incoming message: an image or a large file fits. Over it the connection is closed with code 1009."""

_OPEN_TIMEOUT = 10.0
"""Seconds for a handshake: who connects and says nothing does not stay."""

_BACKLOG = 1024
"""Connections waiting to be accepted: a whole house of clients that reconnect at once after a restart."""

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}

_FORGOTTEN = Request("", Headers())
"""Takes the place of a connection's request, which holds the token and 3 KiB, once it has been answered."""

ConnectionHandler = Callable[[Transport], Awaitable[None]]
"""Runs for as long as a connection should live; the connection is closed when it returns."""


@dataclass(frozen=True, slots=True)
class WebSocketServer:
    """A server that accepts connections."""

    url: str
    """For `connect_transport`."""
    port: int | None
    """None on a Unix socket."""


@contextlib.asynccontextmanager
async def serve_websocket(
    handler: ConnectionHandler,
    *,
    auth: Authenticator,
    host: str = "127.0.0.1",
    port: int = 0,
    unix_path: Path | None = None,
    ssl: SSLContext | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    http: HttpHandler | None = None,
    max_size: int = MAX_SIZE,
    ping_interval: float = PING_INTERVAL,
) -> AsyncGenerator[WebSocketServer]:
    """Accept connections until the block is left; then close them (code 1001) and wait for their handlers.

    With `unix_path` it listens there and not on TCP. `hosts` are further names this server is reached by, `origins` the
    web origins besides its own whose pages may connect: `https://app.example`, or `vscode-webview://*` for a scheme.
    Raises `BindError` when it cannot or must not listen there.
    """
    if unix_path is None and (warning := check_bind(host, token=auth.required, tls=ssl is not None)):
        log.warning("%s", warning)
    connections = _Connections()
    gate = Gate(auth=auth, host=host if unix_path is None else None, hosts=hosts, origins=origins, http=http)
    options: dict[str, Any] = shared_options(max_size=max_size, ping_interval=ping_interval) | {
        "process_request": _Handshake(gate),
        "select_subprotocol": _select_subprotocol,
        "create_connection": connections,
        "server_header": None,
        "open_timeout": _OPEN_TIMEOUT,
        "backlog": _BACKLOG,
        "ssl": ssl,
    }
    with contextlib.ExitStack() as stack:
        if unix_path is None:
            starting = serve(_serving(handler, None), host, port, **options)
        else:
            listener = stack.enter_context(unix_listener(unix_path))
            starting = unix_serve(_serving(handler, unix_path), sock=listener, **options)
        server = await _started(starting, host, port)
        try:
            yield _describe(server, host, unix_path, tls=ssl is not None)
        finally:
            server.close(reason="the server is shutting down")
            connections.abort_opening()
            await server.wait_closed()


class _Connections:
    """Makes the connections and knows those that are still in their handshake, for which a close would wait."""

    def __init__(self) -> None:
        self._all: WeakSet[ServerSide] = WeakSet()

    def __call__(self, *args: Any, **options: Any) -> ServerSide:
        connection = ServerSide(*args, **options)
        self._all.add(connection)
        return connection

    def abort_opening(self) -> None:
        for connection in self._all:
            if connection.state is State.CONNECTING and hasattr(connection, "transport"):  # No TLS, no transport yet.
                connection.transport.abort()


class _Handshake:
    """Asks the gate about each request, in the library's terms."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, connection: ServerConnection, request: Request) -> Response | None:
        headers = {name.lower(): ", ".join(request.headers.get_all(name)) for name in request.headers}
        decision = await self._gate.decide(request.method, request.path, headers)
        if isinstance(decision, HttpResponse):
            return _to_response(decision, head=request.method == "HEAD")
        assert isinstance(connection, ServerSide)
        connection.admission = decision
        return None


def _to_response(response: HttpResponse, *, head: bool) -> Response:
    headers = {
        "Date": formatdate(usegmt=True),
        "Connection": "close",
        "Content-Length": str(len(response.body)),
        "Content-Type": response.content_type,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",  # A page's URL may hold the token.
        "Cache-Control": "no-store",
    }
    headers |= {name.title(): value for name, value in response.headers.items()}
    body = b"" if head else response.body
    return Response(response.status, HTTPStatus(response.status).phrase, Headers(headers), body)


def _select_subprotocol(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Never the one that carries the token: it must not come back in a response."""
    return Subprotocol(SUBPROTOCOL) if SUBPROTOCOL in offered else None


def _serving(handler: ConnectionHandler, unix_path: Path | None) -> Callable[[ServerConnection], Awaitable[None]]:
    async def serving(connection: ServerConnection) -> None:
        assert isinstance(connection, ServerSide)
        connection.request, connection.response = _FORGOTTEN, None
        credential = connection.admission.credential
        if unix_path is None:
            peer = PeerInfo("websocket", address(connection.remote_address), credential)
        else:
            peer = PeerInfo("unix", str(unix_path), credential)
        await handler(WebSocketTransport(connection, peer))

    return serving


async def _started(starting: Server, host: str, port: int) -> Server:
    try:
        return await starting
    except OSError as exc:
        raise BindError(f"cannot listen on {host or 'every interface'}, port {port}: {_why(exc)}") from exc


def _why(exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return "the port is in use; stop the other program or choose another port (0 takes a free one)"
    if exc.errno == errno.EACCES:
        return "permission denied; ports below 1024 are for the system"
    if isinstance(exc, socket.gaierror):
        return "there is no such address"
    return exc.strerror or str(exc)


def _describe(server: Server, host: str, unix_path: Path | None, *, tls: bool) -> WebSocketServer:
    if unix_path is not None:
        return WebSocketServer(unix_url(unix_path), None)
    bound: str
    bound, port = server.sockets[0].getsockname()[:2]
    if bound in _WILDCARDS or host == "localhost":  # Say what can be dialled: `localhost` may be two addresses.
        host = _WILDCARDS.get(bound, bound)
    return WebSocketServer(f"{'wss' if tls else 'ws'}://{address((host, port))}", port)


__all__ = ["MAX_SIZE", "ConnectionHandler", "WebSocketServer", "serve_websocket"]
