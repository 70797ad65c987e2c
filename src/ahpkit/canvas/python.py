"""A canvas provider inside the host: Python objects with handlers. Knows no process and no wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from ahpkit.canvas.errors import NOT_FOUND, CanvasError
from ahpkit.canvas.provider import ProviderCall, ProviderEvents
from ahpkit.protocol.canvas import Canvas
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration


class PythonProvider:
    """Implements `ahpkit.canvas.provider.Provider`."""

    def __init__(self, extension_id: str, canvases: Iterable[Canvas], *, name: str | None = None) -> None:
        self.extension_id = extension_id
        self.extension_name = name
        self._canvases = {canvas.declaration["canvasId"]: canvas for canvas in canvases}
        self._events: ProviderEvents | None = None

    @property
    def declarations(self) -> Sequence[ClientCanvasDeclaration]:
        return [cast("ClientCanvasDeclaration", canvas.declaration) for canvas in self._canvases.values()]

    def attach(self, events: ProviderEvents) -> None:
        self._events = events

    async def start(self) -> None:
        """Nothing to start."""

    async def aclose(self) -> None:
        """Nothing to end."""

    def add(self, canvas: Canvas) -> None:
        """Declare another canvas; sessions that run see it at once."""
        self._canvases[canvas.declaration["canvasId"]] = canvas
        if self._events is not None:
            self._events.registry_changed(self)

    def update(self, session_id: str, instance_id: str, **changes: Any) -> None:
        """Tell everyone that an instance has another title, status or url; None clears one."""
        if self._events is not None:
            self._events.instance_changed(self, session_id, instance_id, changes)

    async def open(self, call: ProviderCall) -> JsonObject:
        return await self._canvas(call).open(call.params())

    async def close(self, call: ProviderCall) -> None:
        await self._canvas(call).close(call.params())

    async def invoke(self, call: ProviderCall) -> Any:
        return await self._canvas(call).invoke(call.params())

    def _canvas(self, call: ProviderCall) -> Canvas:
        if call.canvas_id not in self._canvases:
            raise CanvasError(f"{self.extension_id} has no canvas {call.canvas_id!r}", code=NOT_FOUND)
        return self._canvases[call.canvas_id]


__all__ = ["PythonProvider"]
