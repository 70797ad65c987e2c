"""The server of one port, on TCP or on a Unix socket: HTTP by uvicorn, WebSockets by our own transport.

A connection begins as HTTP. When it asks for a WebSocket it is handed over whole (`ahpkit.http.connection`), because
ASGI's WebSocket interface cannot drop a stalled reader (docs/decisions, 2026-11-15, one HTTP front).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from ssl import SSLContext
from typing import Any
from weakref import WeakSet

from websockets.asyncio.server import Server, ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from ahpkit.http.connection import HttpConnections, Limits
from ahpkit.http.front import Front
from ahpkit.http.gate import Gate, Head, Refusal
from ahpkit.http.router import Router
from ahpkit.transports.auth import SUBPROTOCOL, Authenticator, check_bind
from ahpkit.transports.errors import BindError
from ahpkit.transports.unix import unix_listener, unix_url
from ahpkit.transports.websocket import (
    CLOSE_TIMEOUT,
    MAX_UNREAD,
    PING_INTERVAL,
    ServerSide,
    WebSocketTransport,
    address,
    connection_options,
    log,
)
from ahpkit.wire.transport import PeerInfo, Transport

MAX_SIZE = 16 * 1024 * 1024
"""Bytes of one incoming message: an image or a large file fits. A larger message closes the connection with code
1009."""

_OPEN_TIMEOUT = 10.0
"""Seconds for the handshakes of TLS and of the WebSocket."""

_GRACE = 1.0
"""Seconds at the end for finishing HTTP answers."""

_BACKLOG = 1024
"""Connections that may wait to be accepted. After a restart many clients reconnect at once."""

_ACCEPTED_AT_ONCE = 16
"""Connections that one step of the event loop takes. When no more files can be open, asyncio complains once for each.
"""

_COMPLAIN_EVERY = 60.0
"""Seconds between two lines about connections that cannot be accepted."""

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}

_FORGOTTEN = Request("", Headers())
"""Replaces a connection's request after it was answered, because the request holds the token and 3 KiB."""

ConnectionHandler = Callable[[Transport], Awaitable[None]]
"""Handles a connection. The connection is closed when the handler returns."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that accepts connections."""

    url: str
    """The address, for `connect_transport`."""
    port: int | None
    """The TCP port; None on a Unix socket."""


@contextlib.asynccontextmanager
async def serve_http(
    handler: ConnectionHandler,
    *,
    auth: Authenticator,
    routes: Router | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    unix_path: Path | None = None,
    ssl: SSLContext | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    max_size: int = MAX_SIZE,
    ping_interval: float = PING_INTERVAL,
    close_timeout: float = CLOSE_TIMEOUT,
    max_unread: int = MAX_UNREAD,
    limits: Limits | None = None,
) -> AsyncGenerator[HttpServer]:
    """Accept connections until the block is left; then close them (code 1001) and wait for their handlers.

    `handler` gets every WebSocket, whatever its path; `routes` answer all other requests. With `unix_path` it listens
    there and not on TCP. `hosts` are further names this server is reached by, `origins` the web origins besides its own
    whose pages may connect: `https://app.example`, or `vscode-webview://*` for a scheme. Raises `BindError` when it
    cannot or must not listen there.
    """
    if unix_path is None and (warning := check_bind(host, token=auth.required, tls=ssl is not None)):
        log.warning("%s", warning)
    gate = Gate(auth=auth, host=host if unix_path is None else None, hosts=hosts, origins=origins)
    options = connection_options(ping_interval=ping_interval, close_timeout=close_timeout)
    options["max_unread"] = max_unread
    sockets = _WebSockets(gate, handler, unix_path, max_size=max_size, options=options)
    http = HttpConnections(Front(gate, routes or Router()), limits=limits or Limits(), upgrade=sockets.connection)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_explaining_refused_connections())
        listener = None if unix_path is None else stack.enter_context(unix_listener(unix_path))
        server = sockets.server
        server.server = await _listen(http, host, port, listener, ssl)
        _let_more_wait(server.server)
        try:
            yield _describe(server, host, unix_path, tls=ssl is not None)
        finally:
            server.close(reason="the server is shutting down")
            sockets.abort_opening()
            await http.aclose(_GRACE)
            await server.wait_closed()


class _WebSockets:
    """The WebSockets of one server: makes their connections and runs the handler for each."""

    def __init__(
        self, gate: Gate, handler: ConnectionHandler, unix_path: Path | None, *, max_size: int, options: dict[str, Any]
    ) -> None:
        self.server = Server(_unused, self._run, log)
        self._gate = gate
        self._handler = handler
        self._unix_path = unix_path
        self._max_size = max_size
        self._options = options
        self._all: WeakSet[ServerSide] = WeakSet()

    def connection(self) -> ServerSide:
        """The protocol for a connection that asks for a WebSocket."""
        protocol = ServerProtocol(select_subprotocol=_select_subprotocol, max_size=self._max_size, logger=log)
        connection = ServerSide(protocol, self.server, **self._options)
        self._all.add(connection)
        return connection

    def abort_opening(self) -> None:
        """Drop connections that are still in their handshake, because a close would wait for them."""
        for connection in self._all:
            if connection.state is State.CONNECTING:
                connection.transport.abort()

    async def _run(self, connection: ServerConnection) -> None:
        """Run a connection from the handshake to the end. Nobody awaits this, so errors are logged here."""
        assert isinstance(connection, ServerSide)
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await connection.handshake(self._decide, server_header=None)
            if connection.state is State.OPEN:
                _forget_heads(connection)
                await self._serve(connection)
        except Exception:  # One connection must not end the server.
            log.exception("connection handler failed")
        finally:
            connection.transport.abort()  # Does nothing if it is closed.
            self.server.handler_tasks.discard(asyncio.current_task())

    async def _serve(self, connection: ServerSide) -> None:
        self.server.all_connections.add(connection)
        connection.start_keepalive()
        try:
            async with connection:  # Closed with 1000 at the end, with 1011 when the handler fails.
                await self._handler(WebSocketTransport(connection, self._peer(connection)))
        finally:
            self.server.all_connections.discard(connection)

    def _peer(self, connection: ServerSide) -> PeerInfo:
        credential = connection.admission.credential
        if self._unix_path is None:
            return PeerInfo("websocket", address(connection.remote_address), credential)
        return PeerInfo("unix", str(self._unix_path), credential)

    def _decide(self, connection: ServerConnection, request: Request) -> Response | None:
        assert isinstance(connection, ServerSide)
        headers = {name.lower(): ", ".join(request.headers.get_all(name)) for name in request.headers}
        decision = self._gate.refuse_host(headers)
        if decision is None and request.method != "GET":
            decision = Refusal(405, "a WebSocket is asked for with GET", {"Allow": "GET"})
        if decision is None:
            query = request.path.partition("?")[2]
            decision = self._gate.admit(Head(request.method, query, headers, upgrade=True))
        if isinstance(decision, Refusal):
            return _to_response(decision)
        connection.admission = decision
        return None


def _forget_heads(connection: ServerSide) -> None:
    """Drop the heads of the handshake, which the library would keep in several places as long as the connection
    lives."""
    for head in (connection.request, connection.response):
        if head is not None:
            head.headers.clear()
    connection.request, connection.response = _FORGOTTEN, None


async def _unused() -> asyncio.Server:
    raise AssertionError("`serve_http` listens itself")


async def _listen(
    http: HttpConnections, host: str, port: int, listener: socket.socket | None, ssl: SSLContext | None
) -> asyncio.Server:
    options: dict[str, Any] = {"backlog": _ACCEPTED_AT_ONCE, "ssl": ssl}
    if ssl is not None:
        options |= {"ssl_handshake_timeout": _OPEN_TIMEOUT, "ssl_shutdown_timeout": CLOSE_TIMEOUT}
    loop = asyncio.get_running_loop()
    if listener is not None:
        return await loop.create_unix_server(http, sock=listener, **options)
    try:
        return await loop.create_server(http, host, port, **options)
    except OSError as exc:
        raise BindError(f"cannot listen on {host or 'every interface'}, port {port}: {_why(exc)}") from exc


def _let_more_wait(server: asyncio.Server) -> None:
    """Let more connections wait in the system than one step takes."""
    for listening in server.sockets:
        with socket.fromfd(listening.fileno(), listening.family, listening.type) as same:
            same.listen(_BACKLOG)


@contextlib.contextmanager
def _explaining_refused_connections() -> Generator[None]:
    """asyncio backs off for a second when no more files can be open; then one line is logged instead of a traceback
    for each."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    last_complaint = -_COMPLAIN_EVERY

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal last_complaint
        if "socket.accept()" not in context.get("message", ""):
            before(loop, context) if before else loop.default_exception_handler(context)
        elif loop.time() - last_complaint >= _COMPLAIN_EVERY:
            last_complaint = loop.time()
            log.warning("no more connections can be accepted now: %s; see `ulimit -n`", context.get("exception"))

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


def _to_response(refusal: Refusal) -> Response:
    body = f"{refusal.reason}\n".encode()
    headers = {
        "Date": formatdate(usegmt=True),
        "Connection": "close",
        "Content-Length": str(len(body)),
        "Content-Type": "text/plain; charset=utf-8",
        "Cache-Control": "no-store",
        **refusal.headers,
    }
    return Response(refusal.status, HTTPStatus(refusal.status).phrase, Headers(headers), body)


def _select_subprotocol(protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Select a subprotocol, but never the one that carries the token, which must not appear in a response."""
    return Subprotocol(SUBPROTOCOL) if SUBPROTOCOL in offered else None


def _why(exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return "the port is in use; stop the other program or choose another port (0 takes a free one)"
    if exc.errno == errno.EACCES:
        return "permission denied; ports below 1024 are for the system"
    none_bound = exc.errno is None  # From Python 3.13 on, asyncio names no reason when no address could be bound.
    if isinstance(exc, socket.gaierror) or exc.errno == errno.EADDRNOTAVAIL or none_bound:
        return "this machine has no such address"
    return exc.strerror or str(exc)


def _describe(server: Server, host: str, unix_path: Path | None, *, tls: bool) -> HttpServer:
    if unix_path is not None:
        return HttpServer(unix_url(unix_path), None)
    bound: str
    bound, port = server.sockets[0].getsockname()[:2]
    if (
        bound in _WILDCARDS or host == "localhost"
    ):  # Use an address that can be dialled: `localhost` may be two addresses.
        host = _WILDCARDS.get(bound, bound)
    return HttpServer(f"{'wss' if tls else 'ws'}://{address((host, port))}", port)


__all__ = ["MAX_SIZE", "ConnectionHandler", "HttpServer", "serve_http"]
