"""A canvas provider inside the host: canvases written in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ahpkit.authoring.canvas import Canvas
from ahpkit.canvas.errors import NOT_FOUND, CanvasError
from ahpkit.canvas.provider import ProviderEvents
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration


class PythonProvider:
    """Implements `ahpkit.canvas.provider.Provider`."""

    def __init__(self, extension_id: str, canvases: Iterable[Canvas], *, name: str | None = None) -> None:
        self.extension_id = extension_id
        self.needs_renderer = False
        self.extension_name = name
        self._canvases: dict[str, Canvas] = {}
        self._events: ProviderEvents | None = None
        for canvas in canvases:
            self.add(canvas)

    @property
    def declarations(self) -> Sequence[ClientCanvasDeclaration]:
        return [canvas.declaration for canvas in self._canvases.values()]

    def attach(self, events: ProviderEvents) -> None:
        self._events = events

    def add(self, canvas: Canvas) -> None:
        """Declare another canvas; sessions that run see it at once."""
        if canvas.canvas_id in self._canvases:
            raise ValueError(f"{self.extension_id} has two canvases {canvas.canvas_id!r}")
        canvas.attach(self)
        self._canvases[canvas.canvas_id] = canvas
        self.canvas_declared(canvas)

    def canvas_declared(self, canvas: Canvas) -> None:
        if self._events is not None:
            self._events.registry_changed()

    def canvas_pushed(self, canvas: Canvas, session_id: str, instance_id: str, changes: JsonObject) -> None:
        if self._events is not None:
            self._events.instance_changed(self, session_id, instance_id, changes)

    async def open(self, request: Mapping[str, Any]) -> JsonObject:
        return await self._canvas(request).open(request)

    async def close(self, request: Mapping[str, Any]) -> None:
        await self._canvas(request).close(request)

    async def invoke(self, request: Mapping[str, Any]) -> Any:
        return await self._canvas(request).invoke(request)

    def _canvas(self, request: Mapping[str, Any]) -> Canvas:
        canvas = self._canvases.get(request["canvasId"])
        if canvas is None:
            raise CanvasError(f"{self.extension_id} has no canvas {request['canvasId']!r}", code=NOT_FOUND)
        return canvas


__all__ = ["PythonProvider"]
