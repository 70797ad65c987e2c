"""Serves one HTTP connection: uvicorn reads the requests, and peers that are too slow are dropped.

On an upgrade to a WebSocket the socket is handed to another protocol, with everything read from it so far. From then on
nothing of HTTP is left on it: no buffer, no timer, no task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ahpkit.http.router import AsgiApp

log = logging.getLogger("ahpkit.http")
log.setLevel(logging.ERROR)
"""uvicorn's logger. Below ERROR it logs what strangers send, as often as they send it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a peer may take, and how many connections there may be."""

    head: float = 10.0
    """Seconds for the head of a request, so that a silent connection is closed."""
    body: float = 30.0
    """Seconds without a byte of the body that is being sent."""
    whole_body: float = 300.0
    """Seconds for the whole body. Without a limit, a body sent byte by byte would hold its connection for days."""
    unread: float = 30.0
    """Seconds within which the peer must read something of an answer."""
    idle: int = 5
    """Seconds between two requests on one connection."""
    connections: int = 1024
    """HTTP connections at the same time. Requests on further connections get 503. WebSockets do not count."""


class HttpConnection(H11Protocol):
    """The protocol of a new connection. `upgrade` makes the protocol that takes over for a WebSocket."""

    def __init__(
        self, config: Config, state: ServerState, *, limits: Limits, upgrade: Callable[[], asyncio.Protocol]
    ) -> None:
        super().__init__(config, state, {})
        self.logger = log
        self._limits = limits
        self._upgrade = upgrade
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._body: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._reading = self._deadline(self._limits.head)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_protocol() is self:
            self._watch()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over: the request is written out again, and the bytes after it follow unchanged."""
        self.connections.discard(self)
        self._stop_timers()
        lines = [b"%b %b HTTP/1.1" % (event.method, event.target), *(b"%b: %b" % header for header in event.headers)]
        protocol = self._upgrade()
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(b"\r\n".join([*lines, b"", b""]))
        if early := self.conn.trailing_data[0]:
            protocol.data_received(early)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self._deadline(self._limits.unread)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()

    def _watch(self) -> None:
        """The head has one deadline; the body has one for all of it, and a new one with each piece; between requests
        uvicorn has its own."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._body = self._body or self._deadline(self._limits.whole_body)
        elif self._body is not None:
            self._body.cancel()
            self._body = None
        if state is h11.IDLE and self._reading is not None:
            return
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if state is h11.IDLE:
            self._reading = self._deadline(self._limits.head)
        elif state is h11.SEND_BODY and not self.flow.read_paused:
            self._reading = self._deadline(self._limits.body)

    def _deadline(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self.transport.abort)

    def _stop_timers(self) -> None:
        self._unset_keepalive_if_required()
        for timer in (self._reading, self._writing, self._body):
            if timer is not None:
                timer.cancel()


class HttpConnections:
    """The HTTP connections of one server: makes them, and ends them."""

    def __init__(self, app: AsgiApp, *, limits: Limits, upgrade: Callable[[], asyncio.Protocol]) -> None:
        self._config = Config(
            app,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            ws=asyncio.Protocol,  # Any value: it tells uvicorn that upgrades are wanted.
            limit_concurrency=limits.connections,
            timeout_keep_alive=limits.idle,
        )
        self._config.load()
        self._state = ServerState()
        self._limits = limits
        self._upgrade = upgrade

    def __call__(self) -> HttpConnection:
        return HttpConnection(self._config, self._state, limits=self._limits, upgrade=self._upgrade)

    async def aclose(self, grace: float) -> None:
        """Close idle connections, let answers be finished for `grace` seconds, and drop the rest."""
        for connection in tuple(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(tuple(self._state.tasks), timeout=grace)
        for connection in tuple(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # They notice that the connection is gone.
        for task in tuple(self._state.tasks):
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(tuple(self._state.tasks))


__all__ = ["HttpConnection", "HttpConnections", "Limits", "log"]
