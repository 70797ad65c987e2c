"""Actions on `ahp-canvas:/<id>`, all of them the host's."""

from __future__ import annotations

from typing import Literal, TypedDict

from ahpkit.protocol.canvas.state import CanvasState


class CanvasStateChangedAction(TypedDict):
    """The canvas was replaced as a whole."""

    type: Literal["canvas/stateChanged"]
    canvas: CanvasState


CanvasAction = CanvasStateChangedAction


__all__ = ["CanvasAction", "CanvasStateChangedAction"]
