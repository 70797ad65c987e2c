"""Passes the host's requests and notifications (not actions) to the part that handles them.

Every request is answered, by a handler or with an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ahpkit.client.resources import METHODS, Resources
from ahpkit.client.tasks import Tasks
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.extensions import check_method
from ahpkit.wire.errors import MethodNotFound

RequestHandler = Callable[[JsonObject], Awaitable[Any] | Any]
"""Serves a request of the host: its params to its result. Raise an `RpcError` to refuse."""

NotificationListener = Callable[[str, JsonObject], Awaitable[None] | None]
"""Hears a notification: its method and params."""

_HOST_REQUESTS = METHODS | {"createResourceWatch"}
"""The protocol's own host-to-client requests."""


class HostRequests:
    """Handlers by method and listeners to everything."""

    def __init__(self, resources: Resources, tasks: Tasks) -> None:
        self._resources = resources
        self._tasks = tasks
        self._handlers: dict[str, RequestHandler] = {}
        self.listeners: list[NotificationListener] = []

    def serve(self, method: str, handler: RequestHandler) -> None:
        """Register who answers `method`: one of the protocol's host-to-client requests, or an extension."""
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
        """Pass a notification to the listeners, and one of an extension to its handler. Unknown ones are ignored."""
        handler = self._handlers.get(method)
        if handler is not None:
            self._tasks.call(handler, params)
        for listener in tuple(self.listeners):
            self._tasks.call(listener, method, params)


__all__ = ["HostRequests", "NotificationListener", "RequestHandler"]
