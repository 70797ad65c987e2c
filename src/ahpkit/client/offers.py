"""What a client offers to the sessions it is active in: tools and canvases by name. Knows no sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ahpkit.client.canvas import Canvas
from ahpkit.client.tools import Tool

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
        self.canvases[canvas.declaration["canvasId"]] = canvas
        self._tell("canvases")

    def _tell(self, changed: Offered) -> None:
        for listener in tuple(self.listeners):
            listener(changed)


__all__ = ["Offered", "Offers"]
