"""Makes actions on canvases: one function for each, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.canvas.actions import CanvasStateChangedAction
from ahpkit.protocol.canvas.state import CanvasState

__all__ = ["canvas_state_changed"]


def canvas_state_changed(*, canvas: CanvasState) -> CanvasStateChangedAction:
    """The canvas was replaced as a whole."""
    return {"type": "canvas/stateChanged", "canvas": canvas}
