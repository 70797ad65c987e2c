"""One client's connection: takes its messages in order, within limits, and sends it requests.

Messages are taken in the order they arrive. Each is read through the connection's dialect, then checked by policy.
Commands that the table calls ordered (subscribe, create …) are finished before the next message is looked at, so a
client may send them back to back; everything else runs beside.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ahpkit.dialects.base import Identity, Reading
from ahpkit.host.clients.commands import Commands
from ahpkit.host.clients.outlet import Outlet
from ahpkit.host.config import HostConfig
from ahpkit.host.feature import Command
from ahpkit.host.limits import LONG_MESSAGE, MAX_PENDING_REQUESTS, MAX_VALUES, FloodLimit
from ahpkit.host.policy.methods import Call
from ahpkit.host.spine.delivery import Delivery
from ahpkit.host.tasks import Tasks
from ahpkit.host.tracing import Tracing
from ahpkit.protocol.errors import ERRORS, RequestId, RpcError, TransportClosed
from ahpkit.protocol_next.common.state import JsonObject
from ahpkit.protocol_next.validation import check_params, make_whole
from ahpkit.wire.peer import Answered, Event, Incoming, Peer, Rejected
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)

_CLOSE_POLICY = 1008
"""WebSocket close code for a peer that broke our rules."""

_CLOSE_RESYNC = 1012
"""WebSocket close code that asks the client to connect again."""

_MAX_REASON = 100
"""Characters. A close frame holds 123 bytes of reason."""


_ANYONE = Identity("")
"""How a client is spoken to before it has said which version it speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all connections of a host use."""

    commands: Commands
    delivery: Delivery
    tasks: Tasks
    tracing: Tracing
    config: HostConfig
    monotonic: Callable[[], float]
    reading: Callable[[str], Reading]
    """What reading a frame of this client may depend on."""


class Connection:
    """Implements `ahpkit.host.feature.ConnectedClient` once the handshake is done."""

    def __init__(self, shared: Shared, transport: Transport) -> None:
        config = shared.config
        self._shared = shared
        self._transport = transport
        self._peer = Peer(max_bytes=config.max_message_bytes, max_values=MAX_VALUES, errors=ERRORS)
        self._flood = FloodLimit(now=shared.monotonic(), rate=config.message_rate, burst=config.message_burst)
        self._bytes = FloodLimit(now=shared.monotonic(), rate=config.byte_rate, burst=config.byte_burst)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.requests = Tasks()
        """Requests of the client that are being served. Whoever runs the connection enters and leaves it."""
        self._closing: str | None = None
        self._close_code = _CLOSE_POLICY
        self.outlet = Outlet(
            transport,
            self._peer,
            _ANYONE,
            budget=config.max_client_backlog,
            on_lagging=self._lagging,
            on_resync=self._resync,
        )
        self.client_id = ""
        self.capabilities: JsonObject = {}

    @property
    def credential(self) -> str | None:
        return self._transport.peer.credential

    async def run(self) -> None:
        """Serve until the connection ends. `end` and `aclose` have to follow."""
        try:
            while self._closing is None:
                await self._take(await self._transport.receive())
                await self._shared.delivery.wait_room()
        except TransportClosed as closed:
            _log.debug("%s left: %s", self._transport.peer.address, closed)

    def close(self, reason: str, *, code: int = _CLOSE_POLICY) -> None:
        """End the connection after what is being written, and say why. `code` tells the client whether to come back."""
        if self._closing is None:
            self._closing, self._close_code = reason, code
            self._shared.tasks.spawn(self.aclose(), name="close a connection")

    def end(self) -> None:
        """Nothing is served or waited for any more."""
        self.requests.cancel()
        gone = TransportClosed("the client is gone")
        self._peer.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(gone)
                answer.exception()

    async def aclose(self) -> None:
        """Close the transport, with the reason if there is one."""
        if self._closing is None:
            await self._transport.aclose()
        else:
            await self._transport.aclose(code=self._close_code, reason=self._closing[:_MAX_REASON])

    def _resync(self) -> None:
        self.close("reconnect to get the present state", code=_CLOSE_RESYNC)

    def _lagging(self) -> None:
        _log.warning("%s stopped reading and was dropped; it can reconnect", self.client_id or "a client")

    # -- to the client -------------------------------------------------------------------------------------------

    def notify(self, method: str, params: JsonObject) -> None:
        self.outlet.notify(method, params)

    async def request(self, method: str, params: JsonObject, *, timeout: float = 30.0) -> Any:
        request_id = self.outlet.request(method, params)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = answer
        try:
            async with asyncio.timeout(timeout):
                result = await answer
        finally:
            self._answers.pop(request_id, None)
            self._peer.forget(request_id)
        result = self.outlet.dialect.read_answer(method, result)
        make_whole(method, {}, result=result)
        return result

    # -- from the client -----------------------------------------------------------------------------------------

    async def _take(self, data: bytes) -> None:
        if not self._flood.take(now=self._shared.monotonic()):
            self.close(f"too many messages: more than {self._flood.rate:.0f} a second")
            return
        if (delay := self._bytes.wait(len(data), now=self._shared.monotonic())) > 0:
            await asyncio.sleep(delay)
        match await self._decode(data):
            case Incoming(id=request_id, method=method, params=params):
                if request_id is None:
                    await self._notification(method, params)
                else:
                    await self._request(request_id, method, params)
            case Answered(id=request_id, result=result, error=error):
                self._answered(request_id, result, error)
            case Rejected(reply=reply, error=error):
                _log.debug("%s sent something unusable: %s", self._transport.peer.address, error)
                if reply is not None:
                    self.outlet.send(reply)

    async def _decode(self, data: bytes) -> Event:
        """A long message is read in a thread, so that others are served meanwhile. This connection waits for it."""
        if len(data) <= LONG_MESSAGE:
            return self._peer.receive(data)
        return self._peer.take(await asyncio.to_thread(self._peer.read, data))

    def _answered(self, request_id: int, result: Any, error: RpcError | None) -> None:
        waiting = self._answers.get(request_id)
        if waiting is None or waiting.done():
            return
        if error is not None:
            waiting.set_exception(error)
        else:
            waiting.set_result(result)

    def _read(self, method: str, params: JsonObject) -> tuple[str, JsonObject]:
        return self.outlet.dialect.read(method, params, self._shared.reading(self.client_id))

    async def _notification(self, method: str, params: JsonObject) -> None:
        try:
            method, params = self._read(method, params)
            row = self._shared.commands.find_notification(Call(method, self.client_id, params))
        except RpcError as error:
            _log.debug("ignored the notification %s: %s", method, error)
            return
        if (waiting := row.hear(self, params)) is not None:
            await waiting

    async def _request(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        try:
            method, params = self._read(method, params)
            command = self._shared.commands.find(Call(method, self.client_id, params))
            check_params(method, params)
        except RpcError as error:
            self.outlet.fail(request_id, method, error)
            return
        if command.ordered:
            await self._serve(request_id, command, params)
        else:
            if len(self.requests) >= MAX_PENDING_REQUESTS:
                await self.requests.wait_for_one()
            self.requests.spawn(self._serve(request_id, command, params), name=method)

    async def _serve(self, request_id: RequestId, command: Command, params: JsonObject) -> None:
        try:
            with self._shared.tracing.request(command.name, params):
                result = await self._run(command, params)
            self.outlet.respond(request_id, command.name, params, result)
        except Exception as error:
            if not isinstance(error, RpcError):
                _log.exception("%s failed", command.name)
            self.outlet.fail(request_id, command.name, error)

    async def _run(self, command: Command, params: JsonObject) -> Any:
        if not command.changes:
            return await command.serve(self, params)
        self._shared.delivery.check_writable()
        result = await command.serve(self, params)
        await self._shared.delivery.durable()
        return result


__all__ = ["Connection", "Shared"]
