"""For tests of canvases: a provider that does as told, an agent that hands out its runtime, clients with a role."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ahpkit.canvas import CanvasError, PythonProvider, canvas, canvas_action
from ahpkit.host.agent import CanvasRuntime, Turn
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import BOUND

EXTENSION = "example.boards"
TITLED = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
CHART: Json = {"canvasId": "chart", "displayName": "Chart", "description": "A chart", "actions": [{"name": "draw"}]}


class Board:
    """Records what it was asked; waits, fails or answers as told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.hold: asyncio.Event | None = None
        self.opening: Any = None
        """What `open` returns or raises; by default a URL and the input's title."""
        self.closing: Exception | None = None
        self.cancelled: list[str] = []

    async def _asked(self, verb: str, request: Mapping[str, Any]) -> None:
        self.calls.append((verb, request))
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled.append(request["instanceId"])
                raise

    async def open(self, request: Mapping[str, Any]) -> Any:
        await self._asked("open", request)
        if isinstance(self.opening, Exception):
            raise self.opening
        title = request.get("input", {}).get("title", "Board")
        return self.opening or {"url": f"https://board.example/{request['instanceId']}", "title": title}

    @canvas_action(description="Add a card", input_schema={"type": "object", "required": ["card"]})
    async def add(self, request: Mapping[str, Any]) -> Any:
        await self._asked("add", request)
        return {"cards": [request["input"]["card"]]}

    @canvas_action()
    async def fail(self, request: Mapping[str, Any]) -> Any:
        raise CanvasError("the board is locked", code="locked")

    @canvas_action()
    async def crash(self, request: Mapping[str, Any]) -> Any:
        raise RuntimeError("secret internals")

    @canvas_action()
    async def echo(self, request: Mapping[str, Any]) -> Any:
        return request.get("input")

    async def close(self, request: Mapping[str, Any]) -> None:
        await self._asked("close", request)
        if self.closing is not None:
            raise self.closing

    def verbs(self) -> list[str]:
        return [f"{verb} {request['instanceId']}" for verb, request in self.calls]


def board_provider(board: Board, extension_id: str = EXTENSION, *, schema: Any = None) -> PythonProvider:
    made = canvas("board", display_name="Board", description="A board", input_schema=schema)(board)
    return PythonProvider(extension_id, [made], name="Boards")


async def runtime(bench: Bench, client: RawClient, chat: str, turn_id: str = "t1") -> CanvasRuntime:
    """The canvas runtime of the agent whose turn is running."""
    got: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def script(turn: Turn) -> None:
        got.set_result(turn.canvas)
        await asyncio.Event().wait()

    bench.agent.script = script
    await client.accepted(chat, say("go", turn_id, startedAt="2026-11-15T12:00:00.000Z"))
    async with asyncio.timeout(BOUND):
        return await got


async def claim(client: RawClient, session: str, **fields: Any) -> None:
    active: Json = {"clientId": client.client_id, "tools": [], **fields}
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})


async def release(client: RawClient, session: str) -> None:
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": None})


async def failure(call: Any) -> CanvasError:
    """The error of a call that must fail."""
    async with asyncio.timeout(BOUND):
        with pytest.raises(CanvasError) as raised:
            await call
    return raised.value


async def request_for(client: RawClient, instance_id: str, kind: str = "open") -> Json:
    """The request about an instance, once the client sees it."""

    def found(envelope: Json) -> bool:
        request = envelope["action"].get("request", {})
        return (request.get("instanceId"), request.get("kind")) == (instance_id, kind)

    return (await client.action(found))["action"]["request"]


async def complete(client: RawClient, session: str, request: Json, **outcome: Any) -> None:
    """Answer a request as the client to which it is addressed."""
    outcome = outcome or {"result": {"kind": request["kind"]}}
    action = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"], **outcome}
    await client.accepted(session, action)


def canvas_actions(client: RawClient, session: str) -> list[Json]:
    """The actions about canvases on the session's channel, in order."""
    actions = [envelope["action"] for envelope in client.actions(session)]
    return [action for action in actions if "canvas" in action["type"]]


def kinds(actions: Sequence[Json]) -> list[str]:
    return [action["type"].removeprefix("session/canvas") for action in actions]


def session_id(uri: str) -> str:
    return uri.partition(":/")[2]


__all__ = [
    "CHART",
    "EXTENSION",
    "TITLED",
    "Board",
    "board_provider",
    "canvas_actions",
    "claim",
    "complete",
    "failure",
    "kinds",
    "release",
    "request_for",
    "runtime",
    "session_id",
]
