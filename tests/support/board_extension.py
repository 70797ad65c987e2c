"""A canvas extension for tests, as a program: `python board_extension.py [SOCKET]`. Its actions do what they say."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from ahpkit.canvas import CanvasError, canvas, canvas_action, run_extension

EXTENSION = "example.boards"


@canvas("board", display_name="Board", description="A board")
class Board:
    def __init__(self) -> None:
        self.opened: dict[str, Mapping[str, Any]] = {}

    async def open(self, request: Mapping[str, Any]) -> dict[str, str]:
        given = request.get("input", {})
        if given.get("die"):
            os._exit(3)
        if given.get("hang"):
            await asyncio.Event().wait()
        self.opened[request["instanceId"]] = request
        status = "again" if request.get("reopen") else "new"
        return {"url": f"https://board.example/{request['instanceId']}", "title": "Board", "status": status}

    @canvas_action(description="Add a card", input_schema={"type": "object", "required": ["card"]})
    def add(self, request: Mapping[str, Any]) -> dict[str, Any]:
        Board.push(request["sessionId"], request["instanceId"], status=f"has {request['input']['card']}")
        return {"cards": [request["input"]["card"]]}

    @canvas_action()
    def told(self, request: Mapping[str, Any]) -> Any:
        return dict(self.opened[request["instanceId"]])

    @canvas_action()
    def fail(self, request: Mapping[str, Any]) -> None:
        raise CanvasError("the board is locked", code="locked")

    @canvas_action()
    def crash(self, request: Mapping[str, Any]) -> None:
        raise RuntimeError("secret internals")

    @canvas_action()
    def pid(self, request: Mapping[str, Any]) -> list[int]:
        child = subprocess.Popen(["sleep", "1000"])
        return [os.getpid(), child.pid]

    @canvas_action()
    def die(self, request: Mapping[str, Any]) -> None:
        sys.stderr.write("out of cards\n")
        sys.stderr.flush()
        os._exit(3)

    @canvas_action()
    async def hang(self, request: Mapping[str, Any]) -> None:
        await asyncio.Event().wait()

    @canvas_action()
    def huge(self, request: Mapping[str, Any]) -> str:
        return "x" * request["input"]

    @canvas_action()
    def grow(self, request: Mapping[str, Any]) -> None:
        Board.action(f"grown{len(self.opened)}")(self.fail)

    def close(self, request: Mapping[str, Any]) -> None:
        del self.opened[request["instanceId"]]


if __name__ == "__main__":
    run_extension(EXTENSION, [Board], name="Boards", socket=sys.argv[1] if len(sys.argv) > 1 else None)
