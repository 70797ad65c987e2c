"""A canvas as Python code: its declaration and the handlers of its requests.

    @canvas("board", display_name="Board", description="A shared board")
    class Board:
        async def open(self, request): return {"url": "https://…", "title": "Board"}

        @canvas_action(description="Add a card")
        async def add(self, request): ...

        async def close(self, request): ...

or, of functions:

    @canvas("board", display_name="Board", description="A shared board")
    async def board(request): return {"url": "https://…", "title": "Board"}

    @board.action(description="Add a card")
    async def add(request): ...

The same canvas can be registered with a host, run in a separate process, or offered by a client.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError
from ahpkit.protocol.session.canvases import CanvasRequestKind, ClientCanvasDeclaration, SessionCanvasAction

F = TypeVar("F", bound=Callable[..., Any])

NO_HANDLER = "canvas_action_no_handler"
PROVIDER_UNAVAILABLE = "canvas_provider_unavailable"
PROVIDER_ERROR = "canvas_provider_error"

_ACTION = "_ahpkit_canvas_action"
_OPEN_KEYS = ("url", "title", "status")


class CanvasError(AhpError):
    """A canvas call failed. Raise it in a handler to answer with an error the agent can read."""

    def __init__(self, message: str, *, code: str = PROVIDER_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class CanvasEvents(Protocol):
    """Serves a canvas, and receives its pushes."""

    def canvas_declared(self, canvas: Canvas) -> None:
        """Called when the declaration of a canvas changed."""
        ...

    def canvas_pushed(self, canvas: Canvas, session_id: str, instance_id: str, changes: JsonObject) -> None:
        """Called when an instance has another title, status, url or availability."""
        ...


class CanvasHandlers(Protocol):
    """Answers requests: a canvas, or a provider of several. A request has the wire's keys."""

    async def open(self, request: Mapping[str, Any]) -> JsonObject: ...

    async def close(self, request: Mapping[str, Any]) -> None: ...

    async def invoke(self, request: Mapping[str, Any]) -> Any: ...


class Canvas:
    """One canvas: its declaration and the handlers of its requests.

    `handlers` is a class (made without arguments) or an object that may have `open(request)`, `close(request)` and
    methods marked with `canvas_action`; or a function, which opens it. `open` returns `url`, `title` and `status`, each
    optional. A request has the wire's keys: `sessionId`, `instanceId`, `input` and so on. Handlers may be plain
    functions, which must not block, or coroutines.
    """

    def __init__(
        self,
        canvas_id: str,
        handlers: Any = None,
        *,
        display_name: str,
        description: str,
        input_schema: Any | None = None,
    ) -> None:
        made = handlers() if isinstance(handlers, type) else handlers
        is_function = callable(made) and not hasattr(made, "open")
        self.canvas_id = canvas_id
        self._facts: ClientCanvasDeclaration = {
            "canvasId": canvas_id,
            "displayName": display_name,
            "description": description,
        }
        if input_schema is not None:
            self._facts["inputSchema"] = copy.deepcopy(input_schema)
        self._open = made if is_function else getattr(made, "open", None)
        self._close = None if is_function else getattr(made, "close", None)
        self._actions: dict[str, tuple[SessionCanvasAction, Callable[..., Any]]] = {}
        self._events: CanvasEvents | None = None
        for method in _marked(made):
            self._add(getattr(method, _ACTION), method)

    @property
    def declaration(self) -> ClientCanvasDeclaration:
        actions = [action for action, _ in self._actions.values()]
        return cast("ClientCanvasDeclaration", {**self._facts, **({"actions": actions} if actions else {})})

    # Handlers that are functions.

    def action(
        self, name: str | None = None, *, description: str | None = None, input_schema: Any | None = None
    ) -> Callable[[F], F]:
        """Make a function an action of this canvas."""

        def add(function: F) -> F:
            self._add(_action(function, name, description, input_schema), function)
            if self._events is not None:
                self._events.canvas_declared(self)
            return function

        return add

    def on_close(self, function: F) -> F:
        """Call a function when an instance is closed."""
        self._close = function
        return function

    # Being served.

    def attach(self, events: CanvasEvents) -> None:
        """Set the object that serves this canvas from now on."""
        self._events = events

    def push(self, session_id: str, instance_id: str, **changes: str | None) -> None:
        """Tell everyone that an instance has another `title`, `status`, `url` or `availability`; None clears one.

        A client dispatches `session/canvasInstanceUpdated` for it; the host accepts title, status and URL.
        """
        if self._events is None:
            raise CanvasError(f"the canvas {self.canvas_id!r} is not served by anyone yet")
        self._events.canvas_pushed(self, session_id, instance_id, dict(changes))

    async def open(self, request: Mapping[str, Any]) -> JsonObject:
        return await _called(self._open, request) or {}

    async def close(self, request: Mapping[str, Any]) -> None:
        await _called(self._close, request)

    async def invoke(self, request: Mapping[str, Any]) -> Any:
        found = self._actions.get(request["actionName"])
        if found is None:
            raise CanvasError(f"there is no action {request['actionName']!r}", code=NO_HANDLER)
        return await _called(found[1], request)

    def _add(self, action: SessionCanvasAction, handler: Callable[..., Any]) -> None:
        if action["name"] in self._actions:
            raise ValueError(f"canvas {self.canvas_id!r} has two actions named {action['name']!r}")
        self._actions[action["name"]] = (action, handler)


def canvas(
    canvas_id: str, *, display_name: str, description: str, input_schema: Any | None = None
) -> Callable[[Any], Canvas]:
    """Make a `Canvas` of a class, of an object with handlers, or of the function that opens it."""

    def make(handlers: Any) -> Canvas:
        return Canvas(
            canvas_id, handlers, display_name=display_name, description=description, input_schema=input_schema
        )

    return make


def canvas_action(
    name: str | None = None, *, description: str | None = None, input_schema: Any | None = None
) -> Callable[[F], F]:
    """Make a method an action that agents can invoke on an open instance."""

    def mark(method: F) -> F:
        setattr(method, _ACTION, _action(method, name, description, input_schema))
        return method

    return mark


async def answer(handlers: CanvasHandlers, kind: CanvasRequestKind, request: Mapping[str, Any]) -> JsonObject:
    """Let a canvas answer a request. Returns the result for the wire. Raises `CanvasError`, also for an invalid
    answer."""
    match kind:
        case "open":
            return {"kind": "open", **_opening(await handlers.open(request))}
        case "close":
            await handlers.close(request)
            return {"kind": "close"}
        case "action":
            value = await handlers.invoke(request)
            return {"kind": "action"} if value is None else {"kind": "action", "value": value}
        case _:
            raise CanvasError(f"requests of kind {kind!r} are not understood", code=NO_HANDLER)


def call_context(session_uri: str, state: Mapping[str, Any]) -> JsonObject:
    """The facts about the session in every request to a provider: `sessionId`, `host` and `session`."""
    directories: list[str] = state.get("workingDirectories") or []
    directory = directories[0] if directories else state.get("summary", {}).get("workingDirectory")
    return {
        "sessionId": session_uri.partition(":/")[2],
        "host": {"capabilities": {"canvases": can_render(state)}},
        "session": {"workingDirectory": directory} if directory else {},
    }


def can_render(state: Mapping[str, Any]) -> bool:
    """Whether somebody can show a canvas of this session now."""
    clients: list[JsonObject] = state.get("activeClients") or [state.get("activeClient") or {}]
    return any(client.get("canRenderCanvases") is True for client in clients)


def _action(
    function: Callable[..., Any], name: str | None, description: str | None, input_schema: Any | None
) -> SessionCanvasAction:
    action: SessionCanvasAction = {"name": name or function.__name__}
    if description is not None:
        action["description"] = description
    if input_schema is not None:
        action["inputSchema"] = copy.deepcopy(input_schema)
    return action


def _marked(handlers: Any) -> list[Callable[..., Any]]:
    """Methods that are marked as actions, in the order of their definition. An override takes the place of the method
    in the base class."""
    names = [name for base in reversed(type(handlers).__mro__) for name in vars(base)]
    methods = (getattr(handlers, name) for name in dict.fromkeys(names) if _is_marked(handlers, name))
    return list(methods)


def _is_marked(handlers: Any, name: str) -> bool:
    return hasattr(inspect.getattr_static(handlers, name, None), _ACTION)


def _opening(answer: Any) -> JsonObject:
    """The members url, title and status of an answer, each a string or absent."""
    if not isinstance(answer, dict):
        raise CanvasError("the answer to open is not an object")
    found = cast("JsonObject", answer)
    kept = {key: found[key] for key in _OPEN_KEYS if found.get(key) is not None}
    for key, value in kept.items():
        if not isinstance(value, str):
            raise CanvasError(f"the {key} in the answer to open is not a string")
    return kept


async def _called(handler: Callable[..., Any] | None, request: Mapping[str, Any]) -> Any:
    result = None if handler is None else handler(request)
    return await result if inspect.isawaitable(result) else result


__all__ = [
    "NO_HANDLER",
    "PROVIDER_ERROR",
    "PROVIDER_UNAVAILABLE",
    "Canvas",
    "CanvasError",
    "CanvasEvents",
    "CanvasHandlers",
    "answer",
    "call_context",
    "can_render",
    "canvas",
    "canvas_action",
]
