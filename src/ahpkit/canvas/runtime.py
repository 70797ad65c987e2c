"""Canvases of one session as an agent sees them (`session.canvas.*`)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ahpkit.canvas.errors import PROVIDER_UNAVAILABLE, CanvasError
from ahpkit.canvas.registry import discovered, opened
from ahpkit.host.feature import Services
from ahpkit.protocol.common.state import JsonObject

if TYPE_CHECKING:
    from ahpkit.canvas.bridge import SessionBridge

_log = logging.getLogger(__name__)

T = TypeVar("T")

Listener = Callable[[str, JsonObject], Awaitable[None] | None]


class SessionCanvases:
    """Implements `ahpkit.host.agent.CanvasRuntime`.

    A call goes on when its caller stops waiting, for example because the turn was cancelled: what it began belongs to
    the session. It ends at its deadline at the latest.
    """

    def __init__(self, bridge: SessionBridge, services: Services) -> None:
        self._bridge = bridge
        self._services = services
        self._listeners: list[Listener] = []

    def list(self) -> Sequence[JsonObject]:
        return [discovered(entry) for entry in self._bridge.registry]

    def list_open(self) -> Sequence[JsonObject]:
        self._bridge.publish()  # Whatever a provider changed without a word shows in the state, and so here.
        return [opened(instance, reopen=False) for instance in self._bridge.instances]

    async def open(
        self, canvas_id: str, instance_id: str, *, extension_id: str | None = None, input: Any = None
    ) -> JsonObject:
        instance, reopen = await self._detached(self._bridge.open(canvas_id, instance_id, extension_id, input))
        return opened(instance, reopen=reopen)

    async def close(self, instance_id: str) -> None:
        await self._detached(self._bridge.close(instance_id))

    async def invoke(self, instance_id: str, action: str, input: Any = None) -> Any:
        return (await self._detached(self._bridge.invoke(instance_id, action, input))).get("value")

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    # What the bridge reports.

    def instance_opened(self, instance: JsonObject, *, reopen: bool) -> None:
        """An instance was opened, or one that is open has changed."""
        self._tell("session.canvas.opened", opened(instance, reopen=reopen))

    def registry_changed(self) -> None:
        self._tell("session.canvas.registry_changed", {"canvases": [*self.list()]})

    def capabilities_changed(self, canvases: bool) -> None:
        """Somebody can show canvases now, or nobody can any more."""
        self._tell("capabilities.changed", {"ui": {"canvases": canvases}})

    def _tell(self, event: str, data: JsonObject) -> None:
        for listener in tuple(self._listeners):
            try:
                told = listener(event, data)
            except Exception:  # A listener is anybody's code.
                _log.exception("a listener of %s failed", event)
                continue
            if inspect.isawaitable(told):
                self._services.spawn(_finish(told), name=event)

    async def _detached(self, work: Coroutine[Any, Any, T]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._services.spawn(_settle(work, done), name="canvas call")
        return await done


async def _settle(work: Coroutine[Any, Any, T], done: asyncio.Future[T]) -> None:
    """Hand the outcome to whoever still waits for it."""
    try:
        result = await work
    except asyncio.CancelledError:
        _fail(done, CanvasError("the host is shutting down", code=PROVIDER_UNAVAILABLE))
        raise
    except Exception as error:  # Whoever waits for the call gets it.
        _fail(done, error)
    else:
        if not done.done():
            done.set_result(result)


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    if done.done():
        _log.info("a canvas call failed after its caller was gone: %s", error)
    else:
        done.set_exception(error)


async def _finish(told: Awaitable[None]) -> None:
    await told


__all__ = ["SessionCanvases"]
