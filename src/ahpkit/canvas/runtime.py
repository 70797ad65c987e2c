"""Canvases of one session as an agent sees them (`session.canvas.*`), and the same calls as tools for models.

    definitions = TOOLS
    result = await call(turn.canvas, "canvas_open", {"canvasId": "chart", "instanceId": "load"})

Results of tools have the shapes of the runtime's own interface. A call that fails raises `CanvasError`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ahpkit.canvas.errors import NO_HANDLER, PROVIDER_UNAVAILABLE, CanvasError
from ahpkit.canvas.registry import check_input, discovered, opened
from ahpkit.host.agent import CanvasRuntime, ToolCall, ToolOutcome, Turn
from ahpkit.host.feature import Services
from ahpkit.protocol.common.reducing import without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolAnnotations, ToolDefinition
from ahpkit.tools.registry import Owner, Tool, input_object

if TYPE_CHECKING:
    from ahpkit.canvas.bridge import SessionBridge


_log = logging.getLogger(__name__)

T = TypeVar("T")

Listener = Callable[[str, JsonObject], Awaitable[None] | None]


class SessionCanvases:
    """Implements `ahpkit.host.agent.CanvasRuntime`.

    A call continues if its caller stops waiting (the turn was cancelled, for example), because its effects belong to
    the session. It ends at its deadline at the latest.
    """

    def __init__(self, bridge: SessionBridge, services: Services) -> None:
        self._bridge = bridge
        self._services = services
        self._listeners: list[Listener] = []

    def list(self) -> Sequence[JsonObject]:
        return [discovered(entry) for entry in self._bridge.registry]

    def list_open(self) -> Sequence[JsonObject]:
        self._bridge.publish()  # Includes what a provider changed without a notification.
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

    # Reports of the bridge.

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
    """Pass the outcome to the caller, if it still waits."""
    try:
        result = await work
    except asyncio.CancelledError:
        _fail(done, CanvasError("the host is shutting down", code=PROVIDER_UNAVAILABLE))
        raise
    except Exception as error:  # The caller gets it.
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


_CANVAS_ID = {"type": "string", "description": "The canvas, as canvas_list names it."}
_INSTANCE_ID = {"type": "string", "description": "The open instance: an id that you choose when you open it."}
_EXTENSION_ID = {"type": "string", "description": "Needed only when several extensions declare the canvas."}
_ACTION_NAME = {"type": "string", "description": "One of the canvas's actions, as canvas_list names them."}
_INPUT = {"description": "What the canvas or the action takes; canvas_list has the schema."}

Call = Callable[[CanvasRuntime, Mapping[str, Any]], Awaitable[JsonObject]]


def _tool(
    name: str, description: str, *required: str, changes: bool = True, **properties: JsonObject
) -> ToolDefinition:
    annotations: ToolAnnotations = {"readOnlyHint": not changes}
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        "annotations": annotations,
    }


async def _list(canvas: CanvasRuntime, given: Mapping[str, Any]) -> JsonObject:
    return {"canvases": [*canvas.list()]}


async def _list_open(canvas: CanvasRuntime, given: Mapping[str, Any]) -> JsonObject:
    return {"openCanvases": [_as_result(instance) for instance in canvas.list_open()]}


async def _open(canvas: CanvasRuntime, given: Mapping[str, Any]) -> JsonObject:
    instance = await canvas.open(
        given["canvasId"], given["instanceId"], extension_id=given.get("extensionId"), input=given.get("input")
    )
    return _as_result(instance)


def _as_result(instance: JsonObject) -> JsonObject:
    """An instance as the result of a tool call. The address of the canvas is left out, because the result becomes
    part of the chat and is stored, and whoever has the address can see the canvas."""
    return without(instance, "url")


async def _close(canvas: CanvasRuntime, given: Mapping[str, Any]) -> JsonObject:
    await canvas.close(given["instanceId"])
    return {}


async def _invoke(canvas: CanvasRuntime, given: Mapping[str, Any]) -> JsonObject:
    result = await canvas.invoke(given["instanceId"], given["actionName"], given.get("input"))
    return {} if result is None else {"result": result}


TOOLS: Sequence[ToolDefinition] = (
    _tool("canvas_list", "List the canvases that can be opened: what they take, what they can do.", changes=False),
    _tool("canvas_list_open", "List the open canvas instances and their state.", changes=False),
    _tool(
        "canvas_open",
        "Open a canvas so that the user sees it, or open an instance again that went stale.",
        "canvasId",
        "instanceId",
        canvasId=_CANVAS_ID,
        instanceId=_INSTANCE_ID,
        extensionId=_EXTENSION_ID,
        input=_INPUT,
    ),
    _tool(
        "canvas_invoke",
        "Run an action of an open canvas instance.",
        "instanceId",
        "actionName",
        instanceId=_INSTANCE_ID,
        actionName=_ACTION_NAME,
        input=_INPUT,
    ),
    _tool("canvas_close", "Close an open canvas instance.", "instanceId", instanceId=_INSTANCE_ID),
)

_CALLS: Mapping[str, Call] = {
    "canvas_list": _list,
    "canvas_list_open": _list_open,
    "canvas_open": _open,
    "canvas_invoke": _invoke,
    "canvas_close": _close,
}


async def call(runtime: CanvasRuntime, name: str, arguments: Mapping[str, Any] | None = None) -> JsonObject:
    """Run a tool call. Raises `CanvasError`, also for arguments that the schema does not allow."""
    definition = next((tool for tool in TOOLS if tool["name"] == name), None)
    if definition is None:
        raise CanvasError(f"there is no canvas tool {name!r}", code=NO_HANDLER)
    given = dict(arguments or {})
    check_input(definition.get("inputSchema"), given)
    return await _CALLS[name](runtime, given)


_called = call  # `call` is also what a tool call is named.
_OWNER = Owner("host", "canvas")


class CanvasTools:
    """The canvas calls as a source of tools for every session. The user sees what happens, so nobody is asked."""

    def __init__(self, runtime_of: Callable[[str], CanvasRuntime], has_canvases: Callable[[str], bool]) -> None:
        """`has_canvases`: whether a canvas of a session can be opened or is open, also one whose provider is gone."""
        self._runtime_of = runtime_of
        self._has_canvases = has_canvases

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        """The tools of a session; none while no canvas can be opened or closed."""
        return [(_OWNER, TOOLS)] if self._has_canvases(session_uri) else []

    def asks(self, tool: Tool) -> bool:
        return False

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        try:
            result = await _called(self._runtime_of(turn.chat.session_uri), tool.own_name, input_object(tool_input))
        except CanvasError as error:
            return ToolOutcome(success=False, error=f"{error} ({error.code})")
        except (ValueError, RecursionError) as error:
            return ToolOutcome(success=False, error=str(error))
        text = json.dumps(result, ensure_ascii=False)
        return ToolOutcome(success=True, content=[{"type": "text", "text": text}], structured_content=result)


__all__ = ["TOOLS", "CanvasTools", "SessionCanvases", "call"]
