"""Actions on `ahp-canvas:/<id>`, each with its constructor. Only the host dispatches them."""

from __future__ import annotations

from typing import Literal, TypedDict

from ahpkit.protocol.canvas.state import CanvasState


class CanvasStateChangedAction(TypedDict):
    """The canvas was replaced as a whole."""

    type: Literal["canvas/stateChanged"]
    canvas: CanvasState


def canvas_state_changed(*, canvas: CanvasState) -> CanvasStateChangedAction:
    """The canvas was replaced as a whole."""
    return {"type": "canvas/stateChanged", "canvas": canvas}


CanvasAction = CanvasStateChangedAction


__all__ = ["CanvasAction", "CanvasStateChangedAction", "canvas_state_changed"]
