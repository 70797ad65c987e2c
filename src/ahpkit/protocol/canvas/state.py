"""State of a canvas as 1.0.0 shows it to clients: read only, of one open instance.

Our own, richer model of canvases is part of the session's state (`session/canvases.py`); this is derived from it.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.state import URI


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


__all__ = ["CanvasReference", "CanvasState"]
