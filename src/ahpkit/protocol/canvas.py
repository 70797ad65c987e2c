"""An open canvas as 1.0.0 shows it to clients (`ahp-canvas:/<id>`, read only): state, actions, reducer.

Our own, richer model of canvases is part of the session's state (`session/canvases.py`); this is derived from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.reducing import Handler, apply
from ahpkit.protocol.common.state import URI, JsonObject


class CanvasReference(TypedDict):
    """A canvas in a chat's list."""

    resource: URI


class CanvasState(TypedDict):
    """State of `ahp-canvas:/<id>`. `url` is never logged and never restored."""

    instanceId: str
    extensionId: str
    extensionName: NotRequired[str]
    canvasId: str
    title: NotRequired[str]
    status: NotRequired[str]
    url: NotRequired[str]


class CanvasStateChangedAction(TypedDict):
    """The canvas was replaced as a whole."""

    type: Literal["canvas/stateChanged"]
    canvas: CanvasState


def canvas_state_changed(*, canvas: CanvasState) -> CanvasStateChangedAction:
    """The canvas was replaced as a whole."""
    return {"type": "canvas/stateChanged", "canvas": canvas}


CanvasAction = CanvasStateChangedAction


def canvas_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The canvas after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _state_changed(state: JsonObject, action: CanvasStateChangedAction) -> JsonObject:
    canvas = action.get("canvas")
    return {**canvas} if canvas else state


HANDLERS: Final[Mapping[str, Handler]] = {"canvas/stateChanged": _state_changed}


__all__ = [
    "HANDLERS",
    "CanvasAction",
    "CanvasReference",
    "CanvasState",
    "CanvasStateChangedAction",
    "canvas_reducer",
    "canvas_state_changed",
]
