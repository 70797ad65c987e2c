"""What a client offers to the sessions it is active in: tools and canvases by name. Knows no sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ahpkit.client.canvas import Canvas, CanvasError
from ahpkit.client.tools import Tool
from ahpkit.protocol.common.state import JsonObject

Offered = Literal["tools", "canvases"]


class Offers:
    """Registered tools and canvases; listeners hear which of the two changed."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.canvases: dict[str, Canvas] = {}
        self.listeners: list[Callable[[Offered], None]] = []

    def add_tool(self, tool: Tool) -> None:
        self.tools[tool.name] = tool
        self._tell("tools")

    def remove_tool(self, name: str) -> None:
        del self.tools[name]
        self._tell("tools")

    def add_canvas(self, canvas: Canvas) -> None:
        canvas.attach(self)
        self.canvases[canvas.canvas_id] = canvas
        self._tell("canvases")

    def canvas_declared(self, canvas: Canvas) -> None:
        self._tell("canvases")

    def canvas_pushed(self, canvas: Canvas, session_id: str, instance_id: str, changes: JsonObject) -> None:
        raise CanvasError("a client's canvas cannot push changes: the protocol has no action for it")

    def _tell(self, changed: Offered) -> None:
        for listener in tuple(self.listeners):
            listener(changed)


__all__ = ["Offered", "Offers"]
