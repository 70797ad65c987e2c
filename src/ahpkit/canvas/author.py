"""The SDK for canvas providers that run in their own process.

    run_extension("example.notes", [notes])

is a whole program: `ahpkit serve --extension "python notes.py"` starts it, and it communicates over stdin and stdout.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from ahpkit.authoring.canvas import Canvas
from ahpkit.canvas import extension_protocol as plane
from ahpkit.canvas.errors import NOT_FOUND, CanvasError
from ahpkit.canvas.extension_protocol import ExtensionRefused, to_rpc_error
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import MethodNotFound
from ahpkit.transports.stdio import LineTransport, open_stdio
from ahpkit.transports.unix import reachable
from ahpkit.wire.backoff import backoff
from ahpkit.wire.rpc import RpcConnection
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)


class Extension:
    """Canvases under one extension id, served over connections to a host, one after another."""

    def __init__(self, extension_id: str, canvases: Sequence[Canvas], *, name: str | None = None) -> None:
        self._id = extension_id
        self._name = name
        self._canvases = {canvas.canvas_id: canvas for canvas in canvases}
        self._rpc: RpcConnection | None = None
        self._refusal: str | None = None
        for canvas in canvases:
            canvas.attach(self)

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends; raises `ExtensionRefused` when the host does not want us."""
        async with RpcConnection(transport, on_request=self._answer, on_notification=self._on_notification) as rpc:
            self._rpc = rpc
            try:
                await rpc.wait_closed()
            finally:
                self._rpc = None
        if self._refusal is not None:
            raise ExtensionRefused(self._refusal)

    # Requests from the host.

    async def _answer(self, method: str, params: JsonObject) -> Any:
        try:
            match method:
                case plane.INITIALIZE:
                    return self._hello()
                case plane.OPEN:
                    return await self._canvas(params).open(params)
                case plane.CLOSE:
                    return await self._canvas(params).close(params)
                case plane.INVOKE:
                    return await self._canvas(params).invoke(params)
                case _:
                    raise MethodNotFound(f"a canvas extension does not serve {method}")
        except CanvasError as error:
            raise to_rpc_error(error) from error

    def _hello(self) -> JsonObject:
        named = {"extensionName": self._name} if self._name else {}
        return {"extensionId": self._id, **named, "canvases": self._declarations()}

    def _declarations(self) -> list[Any]:
        return [canvas.declaration for canvas in self._canvases.values()]

    def _canvas(self, params: JsonObject) -> Canvas:
        canvas = self._canvases.get(params.get("canvasId", ""))
        if canvas is None:
            raise CanvasError(f"there is no canvas {params.get('canvasId')!r}", code=NOT_FOUND)
        return canvas

    def _on_notification(self, method: str, params: JsonObject) -> None:
        if method == plane.REFUSED:
            self._refusal = str(params.get("message"))

    # Messages from the canvases.

    def canvas_declared(self, canvas: Canvas) -> None:
        self._notify(plane.REGISTRY_CHANGED, {"canvases": self._declarations()})

    def canvas_pushed(self, canvas: Canvas, session_id: str, instance_id: str, changes: JsonObject) -> None:
        self._notify(plane.UPDATED, {**changes, "sessionId": session_id, "instanceId": instance_id})

    def _notify(self, method: str, params: JsonObject) -> None:
        if self._rpc is not None:
            self._rpc.notify(method, params)


def run_extension(
    extension_id: str, canvases: Sequence[Canvas], *, name: str | None = None, socket: Path | str | None = None
) -> None:
    """Serve canvases until the host ends it. With `socket`, connect there, and again whenever the host comes back.

    Over stdin and stdout nothing else may be printed; while it runs, `print` goes to stderr by itself.
    """
    extension = Extension(extension_id, canvases, name=name)
    running = _over_stdio(extension) if socket is None else _over_socket(extension, Path(socket))
    with suppress(KeyboardInterrupt):
        asyncio.run(running)


async def _over_stdio(extension: Extension) -> None:
    async with open_stdio() as transport:
        await extension.serve(transport)


async def _over_socket(extension: Extension, path: Path) -> None:
    failures = 0
    while True:
        try:
            async with connect_socket(path) as transport:
                failures = 0
                await extension.serve(transport)
        except OSError as error:
            _log.info("no host at %s: %s", path, error.strerror or error)
        failures += 1
        await asyncio.sleep(backoff(failures, random.random))


@asynccontextmanager
async def connect_socket(path: Path) -> AsyncGenerator[LineTransport]:
    """A connection to a host's socket for extensions."""
    reader, writer = await asyncio.open_unix_connection(reachable(path))
    transport = LineTransport(reader, writer, address=str(path))
    try:
        yield transport
    finally:
        await transport.aclose()


__all__ = ["Extension", "connect_socket", "run_extension"]
