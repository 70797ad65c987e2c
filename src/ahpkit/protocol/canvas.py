"""A canvas as Python code: its declaration and the handlers of its requests. Knows no wire, host or client.

    @canvas("board", display_name="Board", description="A shared board")
    class Board:
        async def open(self, request): return {"url": "https://…", "title": "Board"}

        @canvas_action(description="Add a card")
        async def add(self, request): ...

        async def close(self, request): ...

The same class serves on both sides: registered with a host, run in a process of its own, or offered by a client.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError

F = TypeVar("F", bound=Callable[..., Any])

NO_HANDLER = "canvas_action_no_handler"
PROVIDER_ERROR = "canvas_provider_error"

_ACTION = "_ahpkit_canvas_action"


class CanvasError(AhpError):
    """A canvas call failed. Raise it in a handler to answer with an error the agent can read."""

    def __init__(self, message: str, *, code: str = PROVIDER_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def canvas_action(
    name: str | None = None, *, description: str | None = None, input_schema: Any | None = None
) -> Callable[[F], F]:
    """Make a method an action that agents can invoke on an open instance."""

    def mark(method: F) -> F:
        declared = {"name": name or method.__name__, "description": description, "inputSchema": input_schema}
        setattr(method, _ACTION, {key: value for key, value in declared.items() if value is not None})
        return method

    return mark


class Canvas:
    """One canvas: its declaration and the object that handles its requests.

    The object may have `open(request)` returning `url`, `title` and `status` (each optional), `close(request)`, and
    methods marked with `canvas_action`. A request has the wire's keys: `instanceId`, `input` and so on. Handlers may be
    plain functions or coroutines.
    """

    def __init__(
        self, canvas_id: str, handlers: Any, *, display_name: str, description: str, input_schema: Any | None = None
    ) -> None:
        self.handlers = handlers
        self._actions = {
            getattr(method, _ACTION)["name"]: method
            for _, method in inspect.getmembers(handlers, callable)
            if hasattr(method, _ACTION)
        }
        self.declaration: JsonObject = {
            "canvasId": canvas_id,
            "displayName": display_name,
            "description": description,
        }
        if input_schema is not None:
            self.declaration["inputSchema"] = input_schema
        if self._actions:
            self.declaration["actions"] = [getattr(method, _ACTION) for method in self._actions.values()]

    async def open(self, request: Mapping[str, Any]) -> JsonObject:
        return await _called(getattr(self.handlers, "open", None), request) or {}

    async def close(self, request: Mapping[str, Any]) -> None:
        await _called(getattr(self.handlers, "close", None), request)

    async def invoke(self, request: Mapping[str, Any]) -> Any:
        handler = self._actions.get(request["actionName"])
        if handler is None:
            raise CanvasError(f"there is no action {request['actionName']!r}", code=NO_HANDLER)
        return await _called(handler, request)


def canvas(
    canvas_id: str, *, display_name: str, description: str, input_schema: Any | None = None
) -> Callable[[Any], Canvas]:
    """Make a canvas of a class (it is made without arguments) or of an object with handlers."""

    def make(handlers: Any) -> Canvas:
        made = handlers() if isinstance(handlers, type) else handlers
        return Canvas(canvas_id, made, display_name=display_name, description=description, input_schema=input_schema)

    return make


async def _called(handler: Any, request: Mapping[str, Any]) -> Any:
    result = None if handler is None else handler(request)
    return await result if inspect.isawaitable(result) else result


__all__ = ["Canvas", "CanvasError", "canvas", "canvas_action"]
