"""The interface of a canvas provider (declarations, three calls, notices of changes), and a provider inside the host.

A provider may live in the host, in a separate process, or behind a client. The first two implement `Provider`; for a
client the bridge does this itself, by actions of the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ahpkit.authoring.canvas import Canvas
from ahpkit.canvas.errors import NOT_FOUND, CanvasError
from ahpkit.host.feature import Values
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration


class ProviderGone(AhpError):
    """The provider left during a call. The bridge cancels the request, and the provider's instances become stale."""


class DuplicateExtension(AhpError):
    """Two providers have the same extension id, so nobody could tell whose canvas is meant."""

    def __init__(self, extension_id: str) -> None:
        super().__init__(f"there is a canvas provider {extension_id!r} already: give one of the two another id")
        self.extension_id = extension_id


class ProviderEvents(Protocol):
    """The bridge, as a provider uses it."""

    @property
    def values(self) -> Values:
        """Small durable values, for providers inside the host. Begin the key with the extension id."""
        ...

    def registry_changed(self) -> None:
        """The declarations of a provider changed."""
        ...

    def instance_changed(self, provider: Provider, session_id: str, instance_id: str, changes: JsonObject) -> None:
        """An instance has another title, status, url or availability."""
        ...


class Provider(Protocol):
    """A provider on the host's side. Calls raise `CanvasError` or `ProviderGone`.

    A request has the names of the runtime's interface: `sessionId`, `extensionId`, `canvasId`, `instanceId`,
    `host.capabilities.canvases`, `session.workingDirectory`, and where they apply `input`, `actionName`, `reopen`.
    """

    @property
    def extension_id(self) -> str: ...

    @property
    def extension_name(self) -> str | None: ...

    @property
    def needs_renderer(self) -> bool:
        """Whether its canvases are declared only in sessions where somebody can show them."""
        ...

    @property
    def declarations(self) -> Sequence[ClientCanvasDeclaration]:
        """The canvases that the provider offers now."""
        ...

    def attach(self, events: ProviderEvents) -> None:
        """Called when the provider is registered with a bridge."""
        ...

    async def open(self, request: Mapping[str, Any]) -> JsonObject:
        """`{url?, title?, status?}`"""
        ...

    async def close(self, request: Mapping[str, Any]) -> None: ...

    async def invoke(self, request: Mapping[str, Any]) -> Any: ...


class ProviderRegistrar(Protocol):
    """Adds and removes providers while the host runs."""

    def add_provider(self, provider: Provider) -> None:
        """Raises `DuplicateExtension`."""
        ...

    def remove_provider(self, provider: Provider) -> None: ...


class ProviderSource(Protocol):
    """Brings providers that come and go: a process that is started again and again, a socket."""

    async def run(self, registrar: ProviderRegistrar) -> None:
        """Run until it is cancelled."""
        ...


class PythonProvider:
    """Implements `ahpkit.canvas.provider.Provider`."""

    def __init__(
        self, extension_id: str, canvases: Iterable[Canvas], *, name: str | None = None, needs_renderer: bool = False
    ) -> None:
        self.extension_id = extension_id
        self.needs_renderer = needs_renderer
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


__all__ = [
    "DuplicateExtension",
    "Provider",
    "ProviderEvents",
    "ProviderGone",
    "ProviderRegistrar",
    "ProviderSource",
    "PythonProvider",
]
