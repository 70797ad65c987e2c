"""Canvases that this client provides: what they declare, and answering the host's requests to them. Knows no rendering.

@client.canvas("board", display_name="Board", description="A shared board")
class Board:
    async def open(self, request): return {"url": "https://…", "title": "Board"}

    @canvas_action(description="Add a card")
    async def add(self, request): ...

    async def close(self, request): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ahpkit.client.channels import Channel, Channels
from ahpkit.client.tasks import Tasks
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration

F = TypeVar("F", bound=Callable[..., Any])

_NO_HANDLER = "canvas_action_no_handler"
_UNAVAILABLE = "canvas_provider_unavailable"
_FAILED = "canvas_provider_error"

_ACTION = "_ahpkit_canvas_action"


class CanvasError(AhpError):
    """Raise it in a handler to answer with an error the agent can read."""

    def __init__(self, message: str, *, code: str = _FAILED) -> None:
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
    methods marked with `canvas_action`. A request is the wire's: `instanceId`, `input` and so on.
    """

    def __init__(
        self, canvas_id: str, provider: Any, *, display_name: str, description: str, input_schema: Any | None
    ) -> None:
        self._provider = provider
        self._actions = {
            getattr(method, _ACTION)["name"]: method
            for _, method in inspect.getmembers(provider, callable)
            if hasattr(method, _ACTION)
        }
        self.declaration: ClientCanvasDeclaration = {
            "canvasId": canvas_id,
            "displayName": display_name,
            "description": description,
        }
        if input_schema is not None:
            self.declaration["inputSchema"] = input_schema
        if self._actions:
            self.declaration["actions"] = [getattr(method, _ACTION) for method in self._actions.values()]

    async def answer(self, request: Mapping[str, Any]) -> JsonObject:
        """The result for a request of kind open, action or close. Raises `CanvasError`."""
        match request["kind"]:
            case "open":
                return {"kind": "open", **(await _called(getattr(self._provider, "open", None), request) or {})}
            case "close":
                await _called(getattr(self._provider, "close", None), request)
                return {"kind": "close"}
            case "action":
                handler = self._actions.get(request["actionName"])
                if handler is None:
                    raise CanvasError(f"there is no action {request['actionName']!r}", code=_NO_HANDLER)
                value = await _called(handler, request)
                return {"kind": "action"} if value is None else {"kind": "action", "value": value}
            case kind:
                raise CanvasError(f"requests of kind {kind!r} are not understood", code=_NO_HANDLER)


class CanvasRunner:
    """Answers the canvas requests of one session that target this client, each once, also over reconnects."""

    def __init__(
        self, channels: Channels, tasks: Tasks, session: Channel, *, client_id: str, canvases: Mapping[str, Canvas]
    ) -> None:
        self._channels = channels
        self._tasks = tasks
        self._session = session
        self._client_id = client_id
        self._canvases = canvases
        self._taken: set[str] = set()

    def look(self) -> None:
        """Take up requests that were not taken yet; forget those that are over."""
        requests = (self._session.confirmed or {}).get("canvasRequests", ())
        ours = {request["requestId"]: request for request in requests if self._is_ours(request)}
        new = ours.keys() - self._taken
        self._taken = set(ours)
        for request_id in new:
            self._tasks.spawn(self._serve(ours[request_id]), name=f"canvas request {request_id}")

    def _is_ours(self, request: Mapping[str, Any]) -> bool:
        target = request["target"]
        return target["kind"] == "activeClient" and target["clientId"] == self._client_id

    async def _serve(self, request: Mapping[str, Any]) -> None:
        action: JsonObject = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
        try:
            canvas = self._canvases.get(request["canvasId"])
            if canvas is None:
                raise CanvasError(f"this client provides no canvas {request['canvasId']!r}", code=_UNAVAILABLE)
            action["result"] = await canvas.answer(request)
        except CanvasError as error:
            action["error"] = {"code": error.code, "message": error.message}
        except Exception as error:
            action["error"] = {"code": _FAILED, "message": f"{type(error).__name__}: {error}"}
        self._channels.dispatch(self._session.uri, action)


async def _called(handler: Any, request: Mapping[str, Any]) -> Any:
    result = None if handler is None else handler(request)
    return await result if inspect.isawaitable(result) else result


__all__ = ["Canvas", "CanvasError", "CanvasRunner", "canvas_action"]
