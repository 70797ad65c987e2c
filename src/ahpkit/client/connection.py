"""Connects to a host, performs the handshake, and reconnects when the connection is lost."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ahpkit.client.errors import ClientClosed, ConnectionLost
from ahpkit.protocol.errors import ERRORS
from ahpkit.wire.backoff import backoff
from ahpkit.wire.errors import AhpError, InternalError, RpcError, TransportClosed
from ahpkit.wire.peer import Peer
from ahpkit.wire.rpc import NotificationHandler, RequestHandler, RpcConnection
from ahpkit.wire.tasks import Tasks
from ahpkit.wire.transport import Transport

Status = Literal["connecting", "connected", "reconnecting", "closed"]

Dial = Callable[[], Awaitable[Transport]]
"""Opens a new transport to the host."""

Greet = Callable[[RpcConnection], Awaitable[None]]
"""Does the handshake on a new connection and applies the states in its answer."""

GREETING_TIMEOUT = 30.0
"""Seconds for the handshake. The answer may contain the replay of a long absence, so this is not short."""


class DialAgain(AhpError):
    """The host refused the versions that were offered. Other versions are offered on a new connection."""


_FINAL = frozenset({1003, 1007, 1008, 1009})
"""Close codes with which a host refuses this client or its messages. Connecting again would not help."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full jitter: a random delay between zero and a bound that doubles with every attempt."""

    first: float = 0.1
    """The bound of the first delay, in seconds."""
    longest: float = 15.0
    """The largest bound, in seconds."""
    max_attempts: int | None = None
    """Give up after this many failures in a row; None: never."""

    def delay(self, attempt: int, chance: float) -> float | None:
        """Seconds before attempt number `attempt` (from 1), for a `chance` in [0, 1); None: give up."""
        if self.max_attempts is not None and attempt > self.max_attempts:
            return None
        return backoff(attempt, lambda: chance, base=self.first, longest=self.longest)


class HostConnection:
    """The connection to the host, kept alive by `run`. Requests made while disconnected wait for the next
    connection."""

    def __init__(
        self,
        dial: Dial,
        *,
        greet: Greet,
        on_request: RequestHandler,
        on_notification: NotificationHandler,
        backoff: Backoff,
        tasks: Tasks,
        greeting_timeout: float = GREETING_TIMEOUT,
    ) -> None:
        self._greeting_timeout = greeting_timeout
        self._dial = dial
        self._greet = greet
        self._on_request = on_request
        self._on_notification = on_notification
        self._backoff = backoff
        self._tasks = tasks
        self._rpc: RpcConnection | None = None
        self._changed = asyncio.Event()
        self.status: Status = "connecting"
        self.failure: AhpError | None = None
        """Why the connection was given up."""
        self.listeners: list[Callable[[Status], Awaitable[None] | None]] = []

    @property
    def connected(self) -> bool:
        return self._rpc is not None and self._rpc.closed is None

    async def wait_connected(self) -> RpcConnection:
        """The present connection, or the next one. Raises when there will be none."""
        while self._rpc is None or self._rpc.closed is not None:
            if self.failure is not None:
                raise self.failure
            self._changed.clear()
            await self._changed.wait()
        return self._rpc

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Wait for the connection, then send a request."""
        return await (await self.wait_connected()).request(method, params)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification; it is dropped while there is no connection."""
        if self._rpc is not None:
            self._rpc.notify(method, params)

    # Keeping it alive.

    async def run(self) -> None:
        """Connect, and reconnect until the host refuses or `Backoff` gives up. The very first attempt is not
        repeated."""
        failures = 0
        while True:
            error = await self._run_once()
            if isinstance(error, DialAgain):
                continue
            if self.status == "connecting" or not _transient(error):
                return self.close(_lost(error))
            failures = 1 if self.status == "connected" else failures + 1
            self._set_status("reconnecting")
            delay = self._backoff.delay(failures, random.random())
            if delay is None:
                return self.close(ConnectionLost(f"gave up after {failures - 1} attempts: {error}"))
            _log.info("connection lost (%s); next attempt in %.1f s", error, delay)
            await asyncio.sleep(delay)

    def close(self, failure: AhpError | None = None) -> None:
        """Make no more connections; requests that wait for one raise `failure`."""
        if self.status != "closed":
            self.failure = failure or ClientClosed("the client is closed")
            self._set_status("closed")

    async def _run_once(self) -> Exception:
        """Run one connection from dialling to its end; returns the error that ended it."""
        try:
            transport = await self._dial()
            async with RpcConnection(
                transport,
                on_request=self._on_request,
                on_notification=self._on_notification,
                peer=Peer(errors=ERRORS),
            ) as rpc:
                await self._shake_hands(rpc)
                self._rpc = rpc
                self._set_status("connected")
                return await rpc.wait_closed()
        except Exception as error:  # Whatever `dial` raises goes to the callers that wait for the connection.
            return error
        finally:
            self._rpc = None

    async def _shake_hands(self, rpc: RpcConnection) -> None:
        try:
            async with asyncio.timeout(self._greeting_timeout):
                await self._greet(rpc)
        except TimeoutError:
            raise ConnectionLost(f"the host did not answer the handshake within {self._greeting_timeout:g} s") from None

    def _set_status(self, status: Status) -> None:
        self.status = status
        self._changed.set()
        for listener in tuple(self.listeners):
            self._tasks.call(listener, status)


def _transient(error: Exception) -> bool:
    """Whether dialling again may help."""
    if isinstance(error, RpcError):
        return isinstance(error, InternalError)
    if isinstance(error, TransportClosed):
        return error.code not in _FINAL
    return getattr(error, "transient", True)


def _lost(error: Exception) -> AhpError:
    if isinstance(error, AhpError):
        return error
    lost = ConnectionLost(str(error) or type(error).__name__)
    lost.__cause__ = error
    return lost


__all__ = ["Backoff", "Dial", "DialAgain", "Greet", "HostConnection", "Status"]
