"""Offers the canvas calls as tools, for agents that do not speak AHP.

    definitions = TOOLS
    result = await call(turn.canvas, "canvas_open", {"canvasId": "chart", "instanceId": "load"})

Results have the shapes of the runtime's own interface. A call that fails raises `CanvasError`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from ahpkit.canvas.errors import NO_HANDLER, CanvasError
from ahpkit.canvas.registry import check_input
from ahpkit.host.agent import CanvasRuntime, ToolCall, ToolOutcome, Turn
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolAnnotations, ToolDefinition
from ahpkit.tools.registry import Owner, Tool

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
    return {"openCanvases": [*canvas.list_open()]}


async def _open(canvas: CanvasRuntime, given: Mapping[str, Any]) -> JsonObject:
    return await canvas.open(
        given["canvasId"], given["instanceId"], extension_id=given.get("extensionId"), input=given.get("input")
    )


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
    """Do what a tool call asks for; raises `CanvasError`, also for arguments that the schema does not allow."""
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

    def __init__(self, runtime_of: Callable[[str], CanvasRuntime]) -> None:
        self._runtime_of = runtime_of

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        """Nothing, as long as there is no canvas to open."""
        return [(_OWNER, TOOLS)] if self._runtime_of(session_uri).list() else []

    def asks(self, tool: Tool) -> bool:
        return False

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        try:
            given: Any = json.loads(tool_input or "{}")
            if not isinstance(given, dict):
                raise ValueError("an object is expected")
            arguments = cast("dict[str, Any]", given)
            result = await _called(self._runtime_of(turn.chat.session_uri), tool.own_name, arguments)
        except CanvasError as error:
            return ToolOutcome(success=False, error=f"{error} ({error.code})")
        except (ValueError, RecursionError) as error:
            return ToolOutcome(success=False, error=f"the input is not usable: {error}")
        text = json.dumps(result, ensure_ascii=False)
        return ToolOutcome(success=True, content=[{"type": "text", "text": text}], structured_content=result)


__all__ = ["TOOLS", "CanvasTools", "call"]
