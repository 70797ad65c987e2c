"""The demo agent's `/canvas` command: every call of the canvas runtime, results and error codes in the answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ahpkit.agents.demo_text import fenced_json
from ahpkit.authoring.canvas import CanvasError
from ahpkit.host.agent import CanvasRuntime, Turn
from ahpkit.protocol.common.state import JsonObject

USAGE = "list | open CANVASID INSTANCEID [JSON] | invoke INSTANCEID ACTION [JSON] | close INSTANCEID"


async def run_canvas(turn: Turn, arguments: str) -> None:
    """Do one canvas call and say how it went."""
    verb, _, rest = arguments.partition(" ")
    command = _VERBS.get(verb)
    if turn.canvas is None:
        turn.text("This host offers no canvases.")
    elif command is None:
        turn.text(f"Usage: `/canvas {USAGE}`")
    else:
        turn.text(await _answer(turn.canvas, command, rest))


async def _answer(canvas: CanvasRuntime, command: Verb, rest: str) -> str:
    try:
        return await command(canvas, rest.split(maxsplit=2))
    except json.JSONDecodeError as error:
        return f"The input is not valid JSON: {error}."
    except ValueError:
        return f"Usage: `/canvas {USAGE}`"
    except CanvasError as error:
        return f"The canvas call failed with `{error.code}`: {error}"


async def _list(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    declared = [_declared(one) for one in canvas.list()]
    opened = [f"- `{one['instanceId']}` of `{one['canvasId']}` is {one['availability']}" for one in canvas.list_open()]
    return "\n".join(["Canvases:", *(declared or ["- none"]), "", "Open:", *(opened or ["- none"])])


def _declared(canvas: JsonObject) -> str:
    actions = ", ".join(f"`{action['name']}`" for action in canvas.get("actions", ())) or "none"
    return f"- `{canvas['canvasId']}` of `{canvas['extensionId']}`: {canvas['description']} Actions: {actions}."


async def _open(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    canvas_id, instance_id, input = _two_and_json(words)
    opened = await canvas.open(canvas_id, instance_id, input=input)
    return f"Opened `{instance_id}`:\n\n{fenced_json(opened)}"


async def _invoke(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    instance_id, action, input = _two_and_json(words)
    result = await canvas.invoke(instance_id, action, input)
    return f"`{action}` returned:\n\n{fenced_json(result)}"


async def _close(canvas: CanvasRuntime, words: Sequence[str]) -> str:
    (instance_id,) = words
    await canvas.close(instance_id)
    return f"Closed `{instance_id}`."


def _two_and_json(words: Sequence[str]) -> tuple[str, str, Any]:
    first, second, *rest = words
    return first, second, json.loads(rest[0]) if rest else None


Verb = Callable[[CanvasRuntime, Sequence[str]], Awaitable[str]]

_VERBS: dict[str, Verb] = {"list": _list, "open": _open, "invoke": _invoke, "close": _close}

__all__ = ["USAGE", "run_canvas"]
