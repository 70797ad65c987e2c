"""Runs one client's connection: handles its messages in order, within limits, and sends it requests.

Messages are taken in the order they arrive. Each message is translated by the connection's dialect, then checked by the
policy. Commands that are `ordered` in the table (subscribe, create …) are finished before the next message is taken, so
a client need not wait for their answers. All other commands run concurrently.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ahpkit.dialects.base import ClientFacts, Identity, SentAction
from ahpkit.host.clients.commands import Commands
from ahpkit.host.clients.outlet import Outlet
from ahpkit.host.clients.quick_reading import Dispatched, SentActionHead, outline_of, read_dispatched
from ahpkit.host.config import HostConfig
from ahpkit.host.limits import (
    LONG_MESSAGE,
    MAX_ACTION_BYTES,
    MAX_ESCAPES,
    MAX_PENDING_REQUESTS,
    MAX_VALUES,
    FloodLimit,
    Inflow,
)
from ahpkit.host.policy.methods import Call
from ahpkit.host.registration import Command
from ahpkit.host.spine.delivery import Delivery
from ahpkit.host.spine.store import Origin
from ahpkit.host.tracing import Tracing
from ahpkit.protocol.common.commands import ClientCapabilities
from ahpkit.protocol.common.state import ROOT_URI, Implementation, JsonObject
from ahpkit.protocol.errors import ERRORS
from ahpkit.protocol.validation import check_params, make_whole
from ahpkit.wire.codec import Message, encode
from ahpkit.wire.errors import AhpError, InvalidRequest, ParseError, RequestId, RpcError, TransportClosed
from ahpkit.wire.peer import Event, Peer, Rejected
from ahpkit.wire.rpc import Params, RpcLoop, Work
from ahpkit.wire.tasks import Tasks
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)

_CLOSE_POLICY = 1008
"""WebSocket close code for a peer that broke our rules."""

_CLOSE_RESYNC = 1012
"""WebSocket close code that asks the client to connect again."""

_MAX_REASON = 100
"""Characters. A close frame holds 123 bytes of reason."""


_MAX_SETTINGS = 256 * 1024
"""Bytes of the settings that are kept for one client. VS Code sends a few thousand."""

_AT_REST = frozenset({"subscribe", "unsubscribe", "fetchTurns", "disposeSession", "initialize", "reconnect", "ping"})
"""Methods that need only the state of a session. They do not wake a session that rests."""

_ANYONE = Identity("")
"""The dialect of a connection before the handshake has chosen one."""


class SessionWaker(Protocol):
    """Wakes sessions that rest, for requests that need more than their state."""

    def rests(self, channel: str) -> bool: ...

    def wake(self, channel: str) -> None: ...

    async def wake_gently(self, channel: str) -> None: ...

    async def awake(self, channel: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionParts:
    """What all connections of a host use."""

    commands: Commands
    delivery: Delivery
    tasks: Tasks
    tracing: Tracing
    config: HostConfig
    monotonic: Callable[[], float]
    client_facts: Callable[[str], ClientFacts]
    """Gives what a dialect needs for reading the messages of the client with this id."""
    sessions: SessionWaker
    take: Callable[[Connection, Dispatched], Awaitable[None] | None]
    """Handles an action of a client that is initialized. Returns an awaitable if that takes a while."""


class _Unread(InvalidRequest):
    """An action that is too large, or that cannot be read for another reason. It is refused under its own number."""

    def __init__(self, message: str, sent: SentActionHead) -> None:
        super().__init__(message)
        self.sent = sent


_UNREADABLE = (InvalidRequest, ParseError)


class Connection(RpcLoop):
    """Implements `ahpkit.host.feature.ConnectedClient` once the handshake is done."""

    def __init__(self, shared: ConnectionParts, transport: Transport) -> None:
        config = shared.config
        peer = Peer(max_bytes=config.max_message_bytes, max_values=MAX_VALUES, max_escapes=MAX_ESCAPES, errors=ERRORS)
        super().__init__(transport, peer, max_serving=MAX_PENDING_REQUESTS)
        self._parts = shared
        now = shared.monotonic()
        self._inflow = Inflow(
            FloodLimit(now=now, rate=config.message_rate, burst=config.message_burst),
            FloodLimit(now=now, rate=config.byte_rate, burst=config.byte_burst),
        )
        self._began = now
        """The time at which the handling of the present message began."""
        self._closing: str | None = None
        self._close_code = _CLOSE_POLICY
        self.outlet = Outlet(
            transport,
            peer,
            _ANYONE,
            budget=config.max_client_backlog,
            on_lagging=self._lagging,
            on_resync=self._resync,
            tasks=shared.tasks,
        )
        self._large: asyncio.Lock | None = None
        """Held while a large answer is made: one at a time, and only when the client has read what was sent before."""
        self.identify("")
        self.capabilities: ClientCapabilities = {}
        self.info: Implementation | None = None
        """The client's `clientInfo`. It is only shown and logged."""
        self.settings: JsonObject = {}
        """Settings that the client set on the root channel. They count for this connection only."""

    def identify(self, client_id: str) -> None:
        """Set the client's id: empty until the handshake."""
        self.client_id = client_id
        self.client_facts = self._parts.client_facts(client_id)

    @property
    def credential(self) -> str | None:
        return self.transport.peer.credential

    def keep_settings(self, changes: JsonObject, *, replace: bool) -> None:
        """Remember settings of the client, up to a limit."""
        settings = changes if replace else {**self.settings, **changes}
        if len(encode(settings)) <= _MAX_SETTINGS:
            self.settings = settings
        else:
            _log.warning("%s has settings of more than %d bytes; the last are not kept", self.client_id, _MAX_SETTINGS)

    def close(self, reason: str, *, code: int = _CLOSE_POLICY) -> None:
        """Finish the writes that have begun, then end the connection with this reason. `code` tells the client whether
        to reconnect."""
        if self._closing is None:
            self._closing, self._close_code = reason, code
            self._parts.tasks.spawn(self.aclose(), name="close a connection")

    async def aclose(self) -> None:
        """Close the transport, with the reason if there is one."""
        if self._closing is None:
            await self.transport.aclose()
        else:
            await self.transport.aclose(code=self._close_code, reason=self._closing[:_MAX_REASON])

    def _resync(self) -> None:
        self.close("reconnect to get the present state", code=_CLOSE_RESYNC)

    def _lagging(self) -> None:
        _log.warning("%s stopped reading and was dropped; it can reconnect", self.client_id or "a client")

    # -- to the client -------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        self.outlet.send(message)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.outlet.notify(method, params)

    def follows(self, uri: str) -> bool:
        return uri in self.outlet.channels

    async def request(self, method: str, params: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        result = await self.answer_to(self.outlet.request(method, params), timeout=timeout)
        result = self.outlet.dialect.read_answer(method, result)
        make_whole(method, {}, result=result)
        return result

    # -- from the client -----------------------------------------------------------------------------------------

    async def next_event(self) -> Event:
        """The next message that is not a short action.

        Waits while the log has no room, or the client sends too much. Most messages are short actions. They are handled
        here and skip the table of methods, because looking up the method costs more than all other work on such a
        message.
        """
        while True:
            self._inflow.took(self._parts.monotonic() - self._began)
            if self._parts.delivery.is_full:
                await self._parts.delivery.wait_room()
            data = await self.transport.receive()
            if not self._inflow.count(len(data)):
                await self._begin_share()
            self._began = self._parts.monotonic()
            if self._closing is not None:
                raise TransportClosed(self._closing, code=self._close_code)
            sent = read_dispatched(data) if self.client_id else None
            if sent is None:
                return await self._read_any(data)
            if (waiting := self._guarded("dispatchAction", self._parts.take, self, sent)) is not None:
                await waiting

    async def _begin_share(self) -> None:
        """Check whether the client sends too much, and let other clients be served before its next message is
        handled."""
        delay = self._inflow.renew(now=self._parts.monotonic())
        if delay is None:
            self.close(f"too many messages: more than {self._parts.config.message_rate:.0f} a second")
        else:
            await asyncio.sleep(delay)

    async def _read_any(self, data: bytes) -> Event:
        if len(data) <= LONG_MESSAGE:
            message = self._read_short(data)
        else:  # In a thread, so that others are served meanwhile. This connection waits for it.
            message = await asyncio.to_thread(self._read_long, data)
        if isinstance(message, _Unread):
            self._refuse_unread(message)
            return Rejected(None, message)
        return self._peer.take(message)

    def _read_short(self, data: bytes) -> Message | RpcError:
        """A message, or the error that refuses it. If the fault is deep inside of the message, such as a number that is
        too large, the error has the id of the request or the number of the action."""
        message = self._peer.read(data)
        if not isinstance(message, RpcError) or type(message) not in _UNREADABLE or message.request_id is not None:
            return message
        outline = outline_of(data)
        if type(message) is ParseError:
            message.request_id = outline.request
        if outline.dispatched is None or not self.client_id or message.request_id is not None:
            return message
        return _Unread(message.message, outline.dispatched)

    def _read_long(self, data: bytes) -> Message | RpcError:
        """Read a long message, or refuse it if it is an action that is too large."""
        if len(data) > MAX_ACTION_BYTES and self.client_id and (outline := outline_of(data)).is_action:
            reason = f"an action may have {MAX_ACTION_BYTES} bytes, this one has {len(data)}: attach a file instead"
            sent = outline.dispatched
            return InvalidRequest(reason) if sent is None else _Unread(reason, sent)
        message = self._read_short(data)
        if type(message) is InvalidRequest and message.request_id is None:
            return InvalidRequest(message.message, request_id=outline_of(data).request)
        return message

    def _refuse_unread(self, error: _Unread) -> None:
        """Refuse an action that cannot be read. The refusal has the number and the type of the action, but not its
        content."""
        sent = error.sent
        origin = Origin(self.client_id, sent.client_seq)
        head = self._parts.delivery.committed_head
        self.outlet.answer_action(sent.channel, SentAction({"type": sent.type}), head, origin, error.message)

    def on_rejected(self, error: AhpError) -> None:
        _log.debug("%s sent something unusable: %s", self.transport.peer.address, error)

    def _translate(self, method: str, params: Params) -> tuple[str, Params]:
        return self.outlet.dialect.read(method, params, self.client_facts)

    def hear(self, method: str, params: Params) -> Awaitable[None] | None:
        try:
            if method != "dispatchAction":  # An action is translated later, where an envelope can refuse it.
                method, params = self._translate(method, params)
            row = self._parts.commands.find_notification(Call(method, self.client_id, params))
        except RpcError as error:
            _log.debug("ignored the notification %s: %s", method, error)
            return None
        return row.hear(self, params)

    def begin(self, id: RequestId, method: str, params: Params) -> Work | None:
        try:
            command = self._parts.commands.find(Call(method, self.client_id, params))
            method, params = self._translate(method, params)
            command.policy(Call(method, self.client_id, params))
            # VS Code leaves out the only channel that `reconnect` can be about.
            check_params(method, {"channel": ROOT_URI, **params} if method == "reconnect" else params)
        except Exception as error:  # A request that cannot be read must not end the connection.
            if not isinstance(error, RpcError):
                _log.exception("%s could not be read", method)
            self.outlet.fail(id, method, error)
            return None
        return Work(method, partial(self._serve, id, command, params), ordered=command.ordered)

    async def _serve(self, request_id: RequestId, command: Command, params: Params) -> None:
        if not command.large:
            await self._run_and_answer(request_id, command, params)
            return
        self._large = self._large or asyncio.Lock()
        async with self._large:
            await self.outlet.room()
            await self._run_and_answer(request_id, command, params)

    async def _run_and_answer(self, request_id: RequestId, command: Command, params: Params) -> None:
        try:
            with self._parts.tracing.request(command.name, params):
                result = await self._run(command, params)
            self.outlet.respond(request_id, command.name, params, result, large=command.large)
        except Exception as error:  # A command that fails is answered with an error.
            if not isinstance(error, RpcError):
                _log.exception("%s failed", command.name)
            self.outlet.fail(request_id, command.name, error)

    async def _run(self, command: Command, params: Params) -> object:
        channel = params.get("channel")
        if isinstance(channel, str) and command.name not in _AT_REST and self._parts.sessions.rests(channel):
            await self._parts.sessions.awake(channel)
        if not command.changes:
            return await command.serve(self, params)
        self._parts.delivery.check_writable()
        result = await command.serve(self, params)
        await self._parts.delivery.durable()
        return result


__all__ = ["Connection", "ConnectionParts", "SessionWaker"]
