"""Canvas extensions: processes that the host starts and restarts, or that connect to a socket, as canvas providers."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import random
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ahpkit import __version__
from ahpkit.canvas import extension_protocol as plane
from ahpkit.canvas.extension_protocol import ExtensionRefused, from_rpc_error
from ahpkit.canvas.limits import check_declarations
from ahpkit.canvas.provider import DuplicateExtension, ProviderEvents, ProviderGone, ProviderRegistrar
from ahpkit.host.limits import MAX_ESCAPES, MAX_PROGRAM_VALUES, FloodLimit
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import MethodNotFound, RpcError, TransportClosed
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration
from ahpkit.transports.errors import BindError
from ahpkit.transports.process import ChildProcess
from ahpkit.transports.stdio import LineTransport
from ahpkit.transports.unix import unix_listener
from ahpkit.wire.backoff import backoff
from ahpkit.wire.peer import Peer
from ahpkit.wire.rpc import RpcConnection
from ahpkit.wire.transport import Transport

HELLO_TIMEOUT = 20.0
"""Seconds to answer `initialize`: a Python process with a cold cache needs a few."""

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one message of an extension."""

NEWS_PER_SECOND = 100.0
NEWS_BURST = 1_000.0
"""Pushes of one extension. Each is logged and sent to every client. Values that change more often belong on the
extension's own page."""

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

    def on_notification(self, method: str, params: JsonObject) -> None:
        """Handle a notification of the extension. A malformed one is logged and changes nothing."""
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
    """Do the handshake with an extension, and let it serve until its connection ends. Raises `ExtensionRefused`."""
    provider: ExtensionProvider | None = None
    news = FloodLimit(now=time.monotonic(), rate=NEWS_PER_SECOND, burst=NEWS_BURST)

    def on_notification(method: str, params: JsonObject) -> None:
        if not news.take(now=time.monotonic()):
            _log.warning("%s pushes more than %d changes a second: dropped", transport.peer.address, NEWS_PER_SECOND)
            transport.abort()
        elif provider is not None:
            provider.on_notification(method, params)

    peer = Peer(max_bytes=MAX_LINE, max_values=MAX_PROGRAM_VALUES, max_escapes=MAX_ESCAPES)
    rpc = RpcConnection(transport, on_request=_no_method, on_notification=on_notification, peer=peer)
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


SOCKET_NAME = "extensions.sock"
"""Name of the socket in the host's data directory."""

LONGEST_PAUSE = 30.0
"""Seconds between the end of a process that keeps ending early and its next start."""

_STABLE = 10.0
"""Seconds after which an end counts as the first one again."""

_MAX_CONNECTIONS = 64
"""Extensions on the socket at the same time."""


class ExtensionProcess:
    """Starts a command and talks to it over its stdin and stdout; starts it again when it ends.

    Its output on stderr, and lines on stdout that are not messages, are kept for the log, because the last lines say
    why the command ended. The command runs in its own process group and ends with everything that it started.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.command:
            raise ValueError("an extension needs a command")
        self._cwd = cwd or Path.cwd()
        self._env = dict(os.environ if env is None else env)
        self._longest_pause = longest_pause

    @property
    def default_id(self) -> str:
        """The id of an extension that names none. It is the same for the same command, also after a restart of the
        host."""
        digest = hashlib.sha256("\0".join(self.command).encode()).hexdigest()
        return f"{Path(self.command[0]).name}-{digest[:8]}"

    async def run(self, registrar: ProviderRegistrar) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            why = await self._run_once(registrar)
            failures = 1 if time.monotonic() - began > _STABLE else failures + 1
            delay = backoff(failures, random.random, longest=self._longest_pause)
            _log.warning("the canvas extension %s ended, starting again in %.1f s: %s", self.command[0], delay, why)
            await asyncio.sleep(delay)

    async def _run_once(self, registrar: ProviderRegistrar) -> str:
        """Run the process to its end; returns why it ended."""
        try:
            async with ChildProcess(self.command, env=self._env, cwd=self._cwd, max_line=MAX_LINE) as process:
                try:
                    await serve_extension(process.transport, registrar, default_id=self.default_id)
                except ExtensionRefused as error:
                    return " | ".join([str(error), *process.log.lines(3)])
                return " | ".join(["the connection ended", *process.log.lines(3)])
        except OSError as error:
            return f"it cannot be started: {error.strerror}"


class ExtensionSocket:
    """Listens on a Unix socket that only this user may connect to."""

    def __init__(self, path: Path, *, max_connections: int = _MAX_CONNECTIONS) -> None:
        self.path = path
        self._max_connections = max_connections

    async def run(self, registrar: ProviderRegistrar) -> None:
        try:
            with unix_listener(self.path) as listener:
                connections = _Connections(registrar, self._max_connections)
                server = await asyncio.start_unix_server(connections.accept, sock=listener, start_serving=False)
                # Connections end first: closing a server waits for them.
                async with server, asyncio.TaskGroup() as connections.tasks:
                    await server.start_serving()
                    await asyncio.Event().wait()
        except BindError as error:
            _log.warning("canvas extensions cannot connect: %s", error)


class _Connections:
    """Extensions that connected by themselves. Each one is served by a separate task."""

    tasks: asyncio.TaskGroup

    def __init__(self, registrar: ProviderRegistrar, most: int) -> None:
        self._registrar = registrar
        self._most = most
        self._count = 0

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._count >= self._most:
            _log.warning("an extension was turned away: %d are connected", self._count)
            writer.close()
            return
        self._count += 1
        self.tasks.create_task(self._serve(LineTransport(reader, writer, address="extension", max_bytes=MAX_LINE)))

    async def _serve(self, transport: LineTransport) -> None:
        try:
            await serve_extension(transport, self._registrar)
        except ExtensionRefused as error:
            _log.warning("an extension on the socket was refused: %s", error)
        except Exception:  # One extension must not end the others.
            _log.exception("serving an extension failed")
        finally:
            self._count -= 1


__all__ = [
    "MAX_LINE",
    "SOCKET_NAME",
    "ExtensionProcess",
    "ExtensionProvider",
    "ExtensionSocket",
    "Hello",
    "serve_extension",
]
