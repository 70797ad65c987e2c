"""Canvases of one session as an agent sees them (`session.canvas.*`). Knows no wire format and no provider."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ahpkit.canvas.registry import discovered, opened
from ahpkit.host.feature import Services
from ahpkit.protocol.common.state import JsonObject

if TYPE_CHECKING:
    from ahpkit.canvas.feature import Canvases

_log = logging.getLogger(__name__)

Listener = Callable[[str, JsonObject], Awaitable[None] | None]


class SessionCanvases:
    """Implements `ahpkit.host.agent.CanvasRuntime`."""

    def __init__(self, canvases: Canvases, session_uri: str, services: Services) -> None:
        self._canvases = canvases
        self._uri = session_uri
        self._services = services
        self._listeners: list[Listener] = []

    def list(self) -> Sequence[JsonObject]:
        return [discovered(entry) for entry in self._state().get("canvasRegistry", ())]

    def list_open(self) -> Sequence[JsonObject]:
        return [opened(instance, reopen=False) for instance in self._state().get("openCanvases", ())]

    async def open(
        self, canvas_id: str, instance_id: str, *, extension_id: str | None = None, input: Any = None
    ) -> JsonObject:
        instance, reopen = await self._canvases.open(self._uri, canvas_id, instance_id, extension_id, input)
        return opened(instance, reopen=reopen)

    async def close(self, instance_id: str) -> None:
        await self._canvases.close(self._uri, instance_id)

    async def invoke(self, instance_id: str, action: str, input: Any = None) -> Any:
        return (await self._canvases.invoke(self._uri, instance_id, action, input)).get("value")

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def instance_opened(self, instance: JsonObject, *, reopen: bool) -> None:
        self._tell("session.canvas.opened", opened(instance, reopen=reopen))

    def registry_changed(self) -> None:
        self._tell("session.canvas.registry_changed", {"canvases": list(self.list())})

    def _tell(self, event: str, data: JsonObject) -> None:
        for listener in tuple(self._listeners):
            try:
                told = listener(event, data)
            except Exception:
                _log.exception("a listener of %s failed", event)
                continue
            if inspect.isawaitable(told):
                self._services.spawn(_awaited(told), name=event)

    def _state(self) -> JsonObject:
        return self._services.state(self._uri) or {}


async def _awaited(told: Awaitable[None]) -> None:
    await told


__all__ = ["SessionCanvases"]
