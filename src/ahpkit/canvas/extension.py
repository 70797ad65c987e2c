"""A canvas provider at the other end of a connection: greets, registers and unregisters it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ahpkit import __version__
from ahpkit.canvas import extension_protocol as plane
from ahpkit.canvas.extension_protocol import ExtensionRefused, from_rpc_error
from ahpkit.canvas.limits import check_declarations
from ahpkit.canvas.provider import DuplicateExtension, ProviderEvents, ProviderGone, ProviderRegistrar
from ahpkit.host.limits import FloodLimit
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import MethodNotFound, RpcError, TransportClosed
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration
from ahpkit.wire.peer import Peer
from ahpkit.wire.rpc import RpcConnection
from ahpkit.wire.transport import Transport

HELLO_TIMEOUT = 20.0
"""Seconds to answer `initialize`: a Python process with a cold cache needs a few."""

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one message of an extension."""

NEWS_PER_SECOND = 100.0
NEWS_BURST = 1_000.0
"""Pushes of one extension. Each is logged and sent to every client. What changes more often belongs on the extension's
own page."""

MAX_NAME = 200
"""Characters of an extension's id and of its name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hello:
    """How an extension introduces itself."""

    extension_id: str
    extension_name: str | None
    canvases: Sequence[ClientCanvasDeclaration]


def read_hello(answer: Any, default_id: str | None) -> Hello:
    """The answer to `initialize`; raises `ExtensionRefused`."""
    if not isinstance(answer, dict):
        raise ExtensionRefused("the answer to initialize is not an object")
    said = cast("JsonObject", answer)
    canvases = said.get("canvases", [])
    reason = check_declarations(canvases)
    if reason is not None:
        raise ExtensionRefused(reason)
    extension_id = _name(said.get("extensionId"), "extensionId") or default_id
    if extension_id is None:
        raise ExtensionRefused("extensionId: missing")
    return Hello(extension_id, _name(said.get("extensionName"), "extensionName"), canvases)


def _name(value: Any, where: str) -> str | None:
    if value is None or (isinstance(value, str) and 0 < len(value) <= MAX_NAME):
        return value
    raise ExtensionRefused(f"{where}: expected a string of 1 to {MAX_NAME} characters")


class ExtensionProvider:
    """Implements `ahpkit.canvas.provider.Provider` for as long as one connection lasts."""

    def __init__(self, rpc: RpcConnection, hello: Hello) -> None:
        self.extension_id = hello.extension_id
        self.extension_name = hello.extension_name
        self.needs_renderer = False
        self.declarations: Sequence[ClientCanvasDeclaration] = hello.canvases
        self._rpc = rpc
        self._events: ProviderEvents | None = None

    def attach(self, events: ProviderEvents) -> None:
        self._events = events

    async def open(self, request: Mapping[str, Any]) -> JsonObject:
        return await self._ask(plane.OPEN, request)

    async def close(self, request: Mapping[str, Any]) -> None:
        await self._ask(plane.CLOSE, request)

    async def invoke(self, request: Mapping[str, Any]) -> Any:
        return await self._ask(plane.INVOKE, request)

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        try:
            return await self._rpc.request(method, params)
        except RpcError as error:
            raise from_rpc_error(error) from error
        except TransportClosed as error:
            raise ProviderGone(f"the canvas extension {self.extension_id} is gone") from error

    def heard(self, method: str, params: JsonObject) -> None:
        """News of the extension. What makes no sense is logged and changes nothing."""
        if method == plane.REGISTRY_CHANGED:
            self._redeclare(params.get("canvases"))
        elif method == plane.UPDATED and self._events is not None:
            session_id, instance_id = params.get("sessionId"), params.get("instanceId")
            if isinstance(session_id, str) and isinstance(instance_id, str):
                self._events.instance_changed(self, session_id, instance_id, params)
        else:
            _log.info("the canvas extension %s sent %r, which the host does not understand", self.extension_id, method)

    def _redeclare(self, canvases: Any) -> None:
        reason = check_declarations(canvases)
        if reason is not None:
            _log.warning("the canvas extension %s sent a declaration that is not valid: %s", self.extension_id, reason)
            return
        self.declarations = canvases
        if self._events is not None:
            self._events.registry_changed()


async def serve_extension(
    transport: Transport,
    registrar: ProviderRegistrar,
    *,
    default_id: str | None = None,
    hello_timeout: float = HELLO_TIMEOUT,
) -> None:
    """Say hello to an extension and have it serve until its connection ends. Raises `ExtensionRefused`."""
    provider: ExtensionProvider | None = None
    news = FloodLimit(now=time.monotonic(), rate=NEWS_PER_SECOND, burst=NEWS_BURST)

    def on_notification(method: str, params: JsonObject) -> None:
        if not news.take(now=time.monotonic()):
            _log.warning("%s pushes more than %d changes a second: dropped", transport.peer.address, NEWS_PER_SECOND)
            transport.abort()
        elif provider is not None:
            provider.heard(method, params)

    rpc = RpcConnection(
        transport, on_request=_no_method, on_notification=on_notification, peer=Peer(max_bytes=MAX_LINE)
    )
    async with rpc:
        try:
            provider = ExtensionProvider(rpc, read_hello(await _greet(rpc, hello_timeout), default_id))
            registrar.add_provider(provider)
        except (ExtensionRefused, DuplicateExtension, ValueError) as error:
            rpc.notify(plane.REFUSED, {"message": str(error)})
            raise ExtensionRefused(str(error)) from error
        try:
            await rpc.wait_closed()
        finally:
            registrar.remove_provider(provider)


async def _greet(rpc: RpcConnection, timeout: float) -> Any:
    hello = {
        "hostInfo": {"name": "ahpkit", "version": __version__},
        "host": {"capabilities": {"canvases": True}},
    }
    try:
        return await rpc.request(plane.INITIALIZE, hello, timeout=timeout)
    except RpcError as error:
        raise ExtensionRefused(f"it does not answer initialize: {error.message}") from error
    except TransportClosed as error:
        raise ExtensionRefused(f"it left before it answered initialize: {error.reason}") from error
    except TimeoutError as error:
        raise ExtensionRefused(f"it did not answer initialize within {timeout:g} seconds") from error


async def _no_method(method: str, params: JsonObject) -> Any:
    raise MethodNotFound(f"the host does not serve {method}")


__all__ = ["HELLO_TIMEOUT", "MAX_LINE", "ExtensionProvider", "Hello", "read_hello", "serve_extension"]
