"""Runs JSON-RPC connections on asyncio: one reader, requests that wait for answers, handlers as owned tasks.

`RpcLoop` is the loop that every connection runs on: the host's, the client's, an agent's. `RpcConnection` is that loop
with one handler for requests and one for notifications.

Messages are handled strictly in order. The reader hands over one message at a time: a notification by a plain call, a
response by waking the caller that waits for it, a request by starting its task; the last two run to their next `await`
before the next message. So an answer is never seen before a notification that was sent before it, and what the caller
sets up right after an answer is there when the next message is handled.

Only incoming requests run concurrently with the reader, each as a task of the connection, and each is answered exactly
once. `ordered` work does not run concurrently: the next message waits until it is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from ahpkit.wire.codec import JsonObject, Notification, Request
from ahpkit.wire.errors import AhpError, RequestId, RpcError, TransportClosed
from ahpkit.wire.peer import Answered, Event, Peer, Rejected
from ahpkit.wire.transport import Transport

Params = JsonObject
"""The params of a message: any JSON object until its shape is checked."""

RequestHandler = Callable[[str, Params], Awaitable[Any]]
"""Serves an incoming request: method and params to result. An `RpcError` it raises is what the other side gets."""

NotificationHandler = Callable[[str, Params], Awaitable[None] | None]
"""Handles a notification: a plain function, because the next message waits for it, and for what it returns."""

Tap = Callable[[Literal["sent", "received"], bytes], None]
"""Called with every raw message, in order; for logs and tests."""

MAX_BUFFERED = 64 * 1024 * 1024
"""The largest number of unread bytes. With more, the connection is dropped, so that a slow reader cannot fill the
memory."""

REQUEST_CANCELLED = -32800
"""The error code for a cancelled request, as in the Language Server Protocol and in ACP."""

UNREAD = 4008
"""Close code for a connection that was dropped because the other side does not read."""

_LONG = 256 * 1024
"""Bytes. A longer message is read in a thread, so that it does not block the event loop."""

_MAX_LOGGED = 20
"""Rejected messages of one connection that are logged: enough to see what is wrong with a peer that sends millions."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """Serves one request. It answers the request itself, and never raises."""

    name: str
    run: Callable[[], Awaitable[None]]
    ordered: bool = False
    """Whether the next message waits until this work is done."""


class RpcLoop:
    """Takes messages from a transport until it is closed. Derived classes handle them.

    While `max_serving` requests run, no further message is read.
    """

    def __init__(self, transport: Transport, peer: Peer, *, max_serving: int | None = None) -> None:
        self.transport = transport
        self._peer = peer
        self._max_serving = max_serving
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._serving: dict[RequestId, asyncio.Task[None]] = {}
        self._closed: TransportClosed | None = None

    @property
    def closed(self) -> TransportClosed | None:
        """Why the connection is over, or None while it is not."""
        return self._closed

    async def run(self) -> None:
        """Take messages until the connection is over and all handlers have ended."""
        try:
            async with asyncio.TaskGroup() as handlers:
                await self._read(handlers)
        except* TransportClosed:
            pass  # `_read` ends with this exception, and its end cancelled the handlers.

    # Methods that derived classes implement.

    async def next_event(self) -> Event:
        """The next message."""
        return self._peer.receive(await self.transport.receive())

    def begin(self, id: RequestId, method: str, params: Params) -> Work | None:
        """Begin to serve a request. Returns None if it was answered already."""
        raise NotImplementedError

    def hear(self, method: str, params: Params) -> Awaitable[None] | None:
        """Take a notification. The next message waits for it."""
        raise NotImplementedError

    def send(self, message: bytes) -> None:
        """Write one message."""
        raise NotImplementedError

    def on_rejected(self, error: AhpError) -> None:
        """The other side broke the rules."""

    # The loop.

    async def _read(self, handlers: asyncio.TaskGroup) -> None:
        try:
            while True:
                event = await self.next_event()
                if isinstance(event, Notification):
                    if (waiting := self._guarded(event.method, self.hear, event.method, event.params)) is not None:
                        await waiting
                else:
                    await self._handle(event, handlers)
                del event  # Free the memory: a connection may be idle for hours after a large message.
        except TransportClosed as closed:
            self._closed = self._closed or closed
            raise
        finally:
            self._closed = self._closed or TransportClosed("connection closed")
            self._abandon(self._closed)

    async def _handle(self, event: Request | Answered | Rejected, handlers: asyncio.TaskGroup) -> None:
        match event:
            case Request(id, method, params):
                work = self.begin(id, method, params)
                if work is not None and work.ordered:
                    await work.run()
                elif work is not None:
                    await self._start(id, work, handlers)
            case Answered() as answered:
                self._resolve(answered)
                await asyncio.sleep(0)  # The waiting caller runs now, before the next message.
            case Rejected(reply, error):
                self.on_rejected(error)
                if reply is not None:
                    self.send(reply)

    def _guarded(
        self, method: str, hear: Callable[..., Awaitable[None] | None], *given: Any
    ) -> Coroutine[Any, Any, None] | None:
        """Call a handler of notifications; returns an awaitable if the handler takes a while."""
        try:
            waiting = hear(*given)
        except Exception:  # A handler that fails must not end the connection.
            _log.exception("handling notification %s failed", method)
            return None
        return None if waiting is None else self._hear_out(method, waiting)

    async def _hear_out(self, method: str, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except Exception:  # As above.
            _log.exception("handling notification %s failed", method)

    async def _start(self, id: RequestId, work: Work, handlers: asyncio.TaskGroup) -> None:
        if self._max_serving is not None and len(self._serving) >= self._max_serving:
            await asyncio.wait(self._serving.values(), return_when=asyncio.FIRST_COMPLETED)
        self._serving[id] = handlers.create_task(self._run_work(id, work), name=f"ahpkit-rpc {work.name}")
        await asyncio.sleep(0)  # It runs to its first `await` now, before the next message.

    async def _run_work(self, id: RequestId, work: Work) -> None:
        try:
            await work.run()
        finally:
            del self._serving[id]

    # Requests of ours.

    async def answer_to(self, id: int, *, timeout: float | None) -> Any:
        """Wait for the answer to a request that was sent. Raises `RpcError`, `TransportClosed` or `TimeoutError`."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answer
        try:
            self.check_open()
            async with asyncio.timeout(timeout):
                return await answer
        finally:
            self._waiting.pop(id, None)
            self._peer.forget(id)

    def check_open(self) -> None:
        """Raise the reason if the connection is over."""
        if self._closed is not None:
            raise TransportClosed(self._closed.reason, code=self._closed.code)

    def _resolve(self, answered: Answered) -> None:
        waiting = self._waiting.get(answered.id)
        if waiting is None or waiting.done():
            return  # Cancelled in the same step of the loop.
        if answered.error is None:
            waiting.set_result(answered.result)
        else:
            waiting.set_exception(answered.error)

    def _abandon(self, closed: TransportClosed) -> None:
        self._peer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(TransportClosed(closed.reason, code=closed.code))


class RpcConnection(RpcLoop):
    """`async with RpcConnection(transport, on_request=…, on_notification=…) as rpc`. Leaving closes the transport.

    `on_refused` is called for long messages that are refused, because their content is lost. `peer` has the error
    classes of the protocol and the largest size of a message.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        on_request: RequestHandler,
        on_notification: NotificationHandler,
        on_refused: Callable[[AhpError], None] = lambda error: None,
        peer: Peer | None = None,
        max_buffered: int = MAX_BUFFERED,
        tap: Tap | None = None,
    ) -> None:
        super().__init__(transport, peer or Peer())
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_refused = on_refused
        self._max_buffered = max_buffered
        self._tap = tap
        self.received = 0
        """Bytes of all messages that came."""
        self._strange_messages = 0
        self._runner: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self._runner = asyncio.create_task(self.run(), name="ahpkit-rpc")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.transport.aclose()
        finally:
            self.transport.abort()  # Does nothing after a clean close; otherwise it ends the reader.
            await self._runner

    async def wait_closed(self) -> TransportClosed:
        """Wait until the connection is over and all handlers have ended; returns why."""
        await asyncio.shield(self._runner)
        assert self._closed is not None
        return self._closed

    # Our messages.

    async def request(self, method: str, params: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """Send a request and wait for the answer. Raises the `RpcError` of the other side, `TransportClosed`, or
        `TimeoutError`."""
        self.check_open()
        id, data = self._peer.request(method, params)
        self.send(data)
        return await self.answer_to(id, timeout=timeout)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification; after a close it is dropped."""
        self.send(self._peer.notify(method, params))

    def cancel(self, id: RequestId) -> None:
        """The other side gave up its request `id`: stop serving it; the answer is an error that says so."""
        if id in self._serving:
            self._serving[id].cancel()

    def send(self, message: bytes) -> None:
        if self._tap is not None:
            self._tap("sent", message)
        self.transport.write(self.transport.frame(message))
        if self.transport.buffered > self._max_buffered:
            _log.warning("%s reads too slowly: connection dropped", self.transport.peer.address)
            self._closed = self._closed or TransportClosed("the other side does not read", code=UNREAD)
            self.transport.abort()

    # Messages of the other side.

    async def next_event(self) -> Event:
        data = await self.transport.receive()
        self.received += len(data)
        if self._tap is not None:
            self._tap("received", data)
        if len(data) <= _LONG:
            return self._peer.receive(data)
        event = self._peer.take(await asyncio.to_thread(self._peer.read, data))
        if isinstance(event, Rejected):
            self._on_refused(event.error)
        return event

    def begin(self, id: RequestId, method: str, params: Params) -> Work | None:
        return Work(method, partial(self._serve, id, method, params))

    def hear(self, method: str, params: Params) -> Awaitable[None] | None:
        return self._on_notification(method, params)

    def on_rejected(self, error: AhpError) -> None:
        self._strange_messages += 1
        if self._strange_messages <= _MAX_LOGGED:
            last = "; more of its messages are not logged" if self._strange_messages == _MAX_LOGGED else ""
            _log.warning("message from %s rejected: %s%s", self.transport.peer.address, error, last)

    async def _serve(self, id: RequestId, method: str, params: Params) -> None:
        self.send(await self._answer(id, method, params))

    async def _answer(self, id: RequestId, method: str, params: Params) -> bytes:
        try:
            return self._peer.respond(id, await self._on_request(method, params))
        except RpcError as error:
            return self._peer.fail(id, error)
        except asyncio.CancelledError:
            if self._closed is not None:
                raise  # A notification has no answer.
            return self._peer.fail(id, RpcError(REQUEST_CANCELLED, f"{method} was cancelled"))
        except Exception as error:  # A handler that fails must not end the connection.
            _log.exception("serving %s failed", method)
            return self._peer.fail(id, error)


__all__ = [
    "MAX_BUFFERED",
    "REQUEST_CANCELLED",
    "UNREAD",
    "NotificationHandler",
    "Params",
    "RequestHandler",
    "RpcConnection",
    "RpcLoop",
    "Tap",
    "Work",
]
