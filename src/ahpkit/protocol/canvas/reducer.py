"""The canvas channel's reducer: the newest state replaces the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.canvas.actions import CanvasStateChangedAction
from ahpkit.protocol.common.reducing import Handler, apply
from ahpkit.protocol.common.state import JsonObject

__all__ = ["HANDLERS", "canvas_reducer"]


def canvas_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The canvas after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _state_changed(state: JsonObject, action: CanvasStateChangedAction) -> JsonObject:
    canvas = action.get("canvas")
    return {**canvas} if canvas else state


HANDLERS: Final[Mapping[str, Handler]] = {"canvas/stateChanged": _state_changed}
