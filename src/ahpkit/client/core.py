"""What all parts of a client share: its id, connection, channels, tasks, spans, selections, and the host's requests."""

from __future__ import annotations

import asyncio
import inspect
import time
import uuid
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Self, is_typeddict

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, TracerProvider

from ahpkit.client.channels import Channels
from ahpkit.client.connection import GREETING_TIMEOUT, Backoff, Dial, HostConnection
from ahpkit.client.dispatch import Accepted, Dispatch
from ahpkit.client.errors import UNREADABLE
from ahpkit.client.handshake import Handshake
from ahpkit.client.mirror import Mirror
from ahpkit.client.resources import METHODS, OnUnsavedText, Resources
from ahpkit.dialects.generations import CHANGED, SELECTION, Generation, selection_of
from ahpkit.dialects.negotiation import OFFERED
from ahpkit.dialects.older_host import HostDialect
from ahpkit.protocol.common.state import ROOT_URI, JsonObject
from ahpkit.protocol.extensions import check_method
from ahpkit.protocol.registry import COMMANDS
from ahpkit.protocol.type_schemas import required
from ahpkit.protocol.validation import make_whole
from ahpkit.wire.errors import MethodNotFound, RemoteProtocolError
from ahpkit.wire.rpc import RpcConnection
from ahpkit.wire.tasks import Tasks
from ahpkit.wire.trace_context import injected


class Selections:
    """Remembers the model and agent that this client uses in a session. Messages carry them; 0.4 hosts store them."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._chosen: dict[str, JsonObject] = {}

    def of(self, session: str) -> JsonObject:
        """Model and agent of a session: this client's choice, or else what a 0.4 host stores for all clients."""
        kept = selection_of(self._channels.optimistic(session))
        chosen = {**kept, **self._chosen.get(session, {})}
        return {key: value for key, value in chosen.items() if key != CHANGED and value is not None}

    def begin(self, session: str, selection: JsonObject) -> None:
        """Remember what was chosen at the creation of a session."""
        if selection:
            self._chosen[session] = selection

    def choose(self, session: str, key: str, value: Any | None) -> Dispatch:
        """Use another model or agent from now on; None: the default.

        For a 0.4 host this is an action. Other hosts get the choice with the next message.
        """
        if self._channels.dialect.generation == Generation.V0_4:
            self._chosen.get(session, {}).pop(key, None)
            return self._channels.dispatch(session, self._meta_changed(session, key, value))
        self._chosen[session] = {**self._chosen.get(session, {}), key: value}
        dispatch = Dispatch(session, self._meta_changed(session, key, value), 0)
        dispatch.settle(Accepted(0))
        return dispatch

    def _meta_changed(self, session: str, key: str, value: Any | None) -> JsonObject:
        state = self._channels.optimistic(session) or {}
        kept = {name: one for name, one in selection_of(state).items() if name != key}
        selection: JsonObject = {**kept, CHANGED: key} if value is None else {**kept, key: value, CHANGED: key}
        meta: JsonObject = state.get("_meta") or {}
        return {"type": "session/metaChanged", "_meta": {**meta, SELECTION: selection}}


RequestHandler = Callable[[JsonObject], Awaitable[Any] | Any]
"""Serves a request of the host: gets the params and returns the result. Raises an `RpcError` to refuse."""

NotificationListener = Callable[[str, JsonObject], Awaitable[None] | None]
"""Called with each notification: its method and params."""

_HOST_REQUESTS = METHODS | {"createResourceWatch"}
"""The protocol's own host-to-client requests."""


class HostRequests:
    """Passes the host's requests and notifications (not actions) to their handlers.

    A request without a handler is answered with an error.
    """

    def __init__(self, resources: Resources, tasks: Tasks) -> None:
        self._resources = resources
        self._tasks = tasks
        self._handlers: dict[str, RequestHandler] = {}
        self.listeners: list[NotificationListener] = []

    def serve(self, method: str, handler: RequestHandler) -> None:
        """Register the handler of `method`: one of the protocol's host-to-client requests, or an extension."""
        if method not in _HOST_REQUESTS:
            check_method(method)
        self._handlers[method] = handler

    async def answer(self, method: str, params: JsonObject) -> Any:
        """The result for a request of the host; raises an `RpcError` for a method that this client does not serve."""
        handler = self._handlers.get(method)
        if handler is not None:
            result = handler(params)
            return await result if inspect.isawaitable(result) else result
        if method in METHODS:
            return await self._resources.answer(method, params)
        raise MethodNotFound(f"this client does not serve {method}")

    def hear(self, method: str, params: JsonObject) -> None:
        """Pass a notification to all listeners and to the handler of its method, if there is one."""
        handler = self._handlers.get(method)
        if handler is not None:
            self._tasks.call(handler, params)
        for listener in tuple(self.listeners):
            self._tasks.call(listener, method, params)


class Tracing:
    """Makes OpenTelemetry spans: one per request and per turn, with the context in `_meta`.

    If no OpenTelemetry SDK is installed, there are no spans, and messages are sent without a context.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("ahpkit.client", tracer_provider=provider)

    def span(self, name: str) -> AbstractContextManager[Span]:
        """A span around an operation of this client. It is the current span inside the `with`."""
        return self._tracer.start_as_current_span(f"ahp {name}", kind=SpanKind.CLIENT)

    def start_turn(self, chat: str) -> Span:
        """A span for a turn. The caller ends it."""
        return self._tracer.start_span("ahp turn", kind=SpanKind.CLIENT, attributes={"ahp.chat": chat})


def with_context(meta: Mapping[str, Any] | None, of: Span | None = None) -> JsonObject:
    """`meta` with the trace context of a span, or of the current span. Keys that the caller set are kept."""
    return injected(of) | dict(meta or {})


class Core:
    """The connection of one client and its copy of the host's states. Entering connects; leaving ends all tasks."""

    def __init__(
        self,
        dial: Dial,
        *,
        client_id: str | None,
        backoff: Backoff,
        locale: str | None,
        capabilities: Mapping[str, Any],
        request_timeout: float | None,
        unsaved_text: OnUnsavedText | None,
        versions: Sequence[str] = OFFERED,
        handshake_timeout: float = GREETING_TIMEOUT,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self.client_id = client_id or str(uuid.uuid4())
        self.tasks = Tasks()
        self.tracing = Tracing(tracer_provider)
        self.resources = Resources(self.client_id, unsaved_text=unsaved_text)
        self.host_requests = HostRequests(self.resources, self.tasks)
        self.connection = HostConnection(
            dial,
            greet=self._greet,
            on_request=self.host_requests.answer,
            on_notification=self._hear,
            backoff=backoff,
            tasks=self.tasks,
            greeting_timeout=handshake_timeout,
        )
        # The host remembers every (clientId, clientSeq) forever, so a client id that is reused continues with higher
        # numbers.
        first_client_seq = 1 if client_id is None else time.time_ns() // 1000
        self.channels = Channels(
            Mirror(self.client_id),
            self.connection,
            self.tasks,
            now=now,
            first_client_seq=first_client_seq,
            patience=request_timeout,
        )
        self.selections = Selections(self.channels)
        self.handshake = Handshake(
            self.client_id, self.channels, locale=locale, capabilities=capabilities, versions=versions
        )
        self._request_timeout = request_timeout

    async def __aenter__(self) -> Self:
        self.root = self.channels.hold(ROOT_URI)
        self.tasks.spawn(self.connection.run(), name="connection")
        try:
            await self.connection.wait_connected()
            await self.channels.wait_ready(self.root)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.connection.close()
        await self.tasks.__aexit__()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        channel: str = ROOT_URI,
        timeout: float | None = None,
    ) -> Any:
        """Send a request to the host. If the connection is lost, this waits for it. Raises the host's `RpcError`,
        `TransportClosed`, or `TimeoutError`."""
        seconds = self._request_timeout if timeout is None else timeout
        with self.tracing.span(method):
            asked: JsonObject = {"channel": channel, **(params or {})}
            if meta := with_context(asked.get("_meta")):
                asked["_meta"] = meta
            try:
                async with asyncio.timeout(seconds):
                    rpc = await self.connection.wait_connected()
                    result = await rpc.request(method, self.dialect.write(method, asked))
                    return self._read(method, result)
            except TimeoutError:
                raise TimeoutError(f"{method}: no answer within {seconds:g} s") from None

    def _read(self, method: str, result: Any) -> Any:
        """The result of a request in 1.0.0; raises `RemoteProtocolError` for one without a member that it must have."""
        try:
            make_whole(method, {}, result=result)
            read = self.dialect.result(method, result)
            for name in _members(method):
                read[name]
        except UNREADABLE as error:
            raise RemoteProtocolError(f"{method}: the host's answer cannot be read: {error!r}") from error
        return read

    async def read_text(self, uri: str) -> str:
        """Read the text that a reference names, such as the input of a tool call that is too large for the state."""
        found = await self.request("resourceRead", {"uri": uri, "encoding": "utf-8"})
        return found["data"] if found.get("encoding") != "base64" else b64decode(found["data"]).decode()

    @property
    def dialect(self) -> HostDialect:
        """The dialect of the host's protocol version; known after the handshake."""
        return self.channels.dialect

    async def _greet(self, rpc: RpcConnection) -> None:
        await self.handshake.greet(rpc)

    def _hear(self, method: str, params: JsonObject) -> None:
        try:
            self._take(method, params)
        except UNREADABLE as error:
            self.channels.unreadable(method, params, error)

    def _take(self, method: str, params: JsonObject) -> None:
        make_whole(method, params)
        moved = self._may_have_moved(method, params)
        if method == "action":
            self.channels.receive(params)
        else:
            params = self.dialect.notification(method, params)
            self.host_requests.hear(method, params)
        if moved:
            self.channels.check(params["action"]["chat"])
            return
        for uri in self._removed(method, params):
            self.channels.gone(uri, "it was removed")

    def _may_have_moved(self, method: str, params: JsonObject) -> bool:
        """Whether a removed chat could be moved. Then it may be in another session now."""
        if method != "action" or params["action"]["type"] != "session/chatRemoved":
            return False
        return bool((self.channels.confirmed(params["action"]["chat"]) or {}).get("movable"))

    def _removed(self, method: str, params: JsonObject) -> list[str]:
        """The channels that an action removes. The host sends no other message about their end."""
        if method == "action" and params["action"]["type"] == "session/chatRemoved":
            return [params["action"]["chat"]]
        if method == "root/sessionRemoved":
            uri: str = params["session"]
            chats = (self.channels.confirmed(uri) or {}).get("chats", ())
            return [*(chat["resource"] for chat in chats), f"{uri}/annotations", uri]
        return []


@cache
def _members(method: str) -> Sequence[str]:
    """The members that the result of a method must have."""
    spec = COMMANDS.get(method)
    return required(spec.result) if spec is not None and is_typeddict(spec.result) else ()


def now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def given(**fields: Any) -> JsonObject:
    """The fields whose value is not None. Absent values are left out of a message."""
    return {key: value for key, value in fields.items() if value is not None}


__all__ = [
    "Core",
    "HostRequests",
    "NotificationListener",
    "RequestHandler",
    "Selections",
    "Tracing",
    "given",
    "now",
    "with_context",
]
