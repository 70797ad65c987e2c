"""One client's connection: handshake, order, limits, requests both ways. Knows no transport kind and no session logic.

Messages are taken in the order they arrive. Verbs of the sequence (subscribe, dispatch, create …) are finished before
the next message is looked at, so a client may send them back to back; everything else runs beside.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ahpkit.host.fanout import Outbox
from ahpkit.host.limits import LONG_MESSAGE, MAX_PENDING_REQUESTS, MAX_VALUES, FloodLimit
from ahpkit.host.policy import check_method
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import ERRORS, InvalidRequest, MethodNotFound, RequestId, RpcError, TransportClosed
from ahpkit.protocol.validation import check_params, make_whole
from ahpkit.wire.peer import Answered, Event, Incoming, Peer, Rejected
from ahpkit.wire.transport import Transport

if TYPE_CHECKING:
    from ahpkit.host.host import Host

_log = logging.getLogger(__name__)

_CLOSE_POLICY = 1008
"""WebSocket close code for a peer that broke our rules."""

_MAX_NAME = 200
"""Characters of an unknown method that are repeated to whoever called it."""

_MAX_REASON = 100
"""Characters. A close frame holds 123 bytes of reason."""


class Connection:
    """Implements `ahpkit.host.feature.ConnectedClient` once the handshake is done."""

    def __init__(self, host: Host, transport: Transport) -> None:
        self._host = host
        self._transport = transport
        self._peer = Peer(max_bytes=host.config.max_message_bytes, max_values=MAX_VALUES, errors=ERRORS)
        self._flood = FloodLimit(now=host.monotonic(), rate=host.config.message_rate, burst=host.config.message_burst)
        self._bytes = FloodLimit(now=host.monotonic(), rate=host.config.byte_rate, burst=host.config.byte_burst)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._closing: str | None = None
        self._close_code = _CLOSE_POLICY
        self.outbox = Outbox(transport, budget=host.config.max_client_backlog, on_lagging=self._lagging)
        self.client_id = ""
        self.capabilities: JsonObject = {}

    @property
    def credential(self) -> str | None:
        return self._transport.peer.credential

    @property
    def initialized(self) -> bool:
        return bool(self.client_id)

    async def run(self) -> None:
        """Serve until the connection ends, then tidy up."""
        try:
            while self._closing is None:
                await self._take(await self._transport.receive())
                await self._host.log_room()
        except TransportClosed as closed:
            _log.debug("%s left: %s", self._transport.peer.address, closed)
        finally:
            await self._end()

    def close(self, reason: str, *, code: int = _CLOSE_POLICY) -> None:
        """End the connection after what is being written, and say why. `code` tells the client whether to come back."""
        if self._closing is None:
            self._closing, self._close_code = reason, code
            self._host.spawn(self._close_transport(), name="close a connection")

    async def _close_transport(self) -> None:
        if self._closing is None:
            await self._transport.aclose()
        else:
            await self._transport.aclose(code=self._close_code, reason=self._closing[:_MAX_REASON])

    # -- to the client -------------------------------------------------------------------------------------------

    def notify(self, method: str, params: JsonObject) -> None:
        self.outbox.send(self._peer.notify(method, params))

    async def request(self, method: str, params: JsonObject, *, timeout: float = 30.0) -> Any:
        request_id, message = self._peer.request(method, params)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = answer
        self.outbox.send(message)
        try:
            async with asyncio.timeout(timeout):
                result = await answer
                make_whole(method, {}, result=result)
                return result
        finally:
            self._answers.pop(request_id, None)
            self._peer.forget(request_id)

    # -- from the client -----------------------------------------------------------------------------------------

    async def _take(self, data: bytes) -> None:
        if not self._flood.take(now=self._host.monotonic()):
            self.close(f"too many messages: more than {self._flood.rate:.0f} a second")
            return
        if (delay := self._bytes.wait(len(data), now=self._host.monotonic())) > 0:
            await asyncio.sleep(delay)
        match await self._read(data):
            case Incoming(id=request_id, method=method, params=params):
                if request_id is None:
                    self._notification(method, params)
                else:
                    await self._request(request_id, method, params)
            case Answered(id=request_id, result=result, error=error):
                self._answered(request_id, result, error)
            case Rejected(reply=reply, error=error):
                _log.debug("%s sent something unusable: %s", self._transport.peer.address, error)
                if reply is not None:
                    self.outbox.send(reply)

    async def _read(self, data: bytes) -> Event:
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

    def _notification(self, method: str, params: JsonObject) -> None:
        verb = self._host.notifications.get(method)
        if not self.initialized or (verb is None and not method.startswith("_")):
            _log.debug("ignored the notification %s", method)
        elif verb is None:
            self._host.extensions.client_notification(self, method, params)
        else:
            verb(self, params)

    async def _request(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        try:
            serve = self._find_verb(method, params)
        except RpcError as error:
            self.outbox.send(self._peer.fail(request_id, error))
            return
        if method in self._host.ordered_verbs:
            await self._serve(request_id, method, serve, params)
        else:
            if len(self._serving) >= MAX_PENDING_REQUESTS:
                await asyncio.wait(self._serving, return_when=asyncio.FIRST_COMPLETED)
            task = asyncio.create_task(self._serve(request_id, method, serve, params), name=method)
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    def _find_verb(self, method: str, params: JsonObject) -> Callable[[Connection, JsonObject], Awaitable[Any]]:
        if (reason := check_method(method, initialized=self.initialized)) is not None:
            raise InvalidRequest(reason)
        verb = self._host.verbs.get(method) or self._host.extensions.client_request(method)
        if verb is None:
            raise MethodNotFound(f"there is no method {method[:_MAX_NAME]}")
        check_params(method, params)
        return verb

    async def _serve(
        self,
        request_id: RequestId,
        method: str,
        verb: Callable[[Connection, JsonObject], Awaitable[Any]],
        params: JsonObject,
    ) -> None:
        try:
            with self._host.tracing.request(method, params):
                reply = self._peer.respond(request_id, await verb(self, params))
        except Exception as error:
            if not isinstance(error, RpcError):
                _log.exception("%s failed", method)
            reply = self._peer.fail(request_id, error)
        self.outbox.release(reply) if method == "reconnect" else self.outbox.send(reply)

    # -- the end -------------------------------------------------------------------------------------------------

    def _lagging(self) -> None:
        _log.warning("%s stopped reading and was dropped; it can reconnect", self.client_id or "a client")

    async def _end(self) -> None:
        for task in tuple(self._serving):
            task.cancel()
        gone = TransportClosed("the client is gone")
        self._peer.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(gone)
                answer.exception()
        self._host.connection_ended(self)
        await self._close_transport()


__all__ = ["Connection"]
