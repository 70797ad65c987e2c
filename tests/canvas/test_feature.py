"""The bridge with a provider inside the host and a client as provider, over real connections in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ahpkit.canvas import CanvasError, Canvases, PythonProvider, canvas, canvas_action
from ahpkit.host.agent import Turn
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


class Board:
    """Records what it was asked; answers as told."""

    def __init__(self) -> None:
        self.calls: list[Mapping[str, Any]] = []
        self.hold: asyncio.Event | None = None
        self.closed: list[str] = []

    async def open(self, request: Mapping[str, Any]) -> Json:
        self.calls.append(request)
        if self.hold is not None:
            await self.hold.wait()
        return {"url": "https://board.example/1", "title": request["input"]["title"], "status": "fresh"}

    @canvas_action(description="Add a card", input_schema={"type": "object", "required": ["card"]})
    async def add(self, request: Mapping[str, Any]) -> Any:
        self.calls.append(request)
        return {"cards": [request["input"]["card"]]}

    @canvas_action()
    async def crash(self, request: Mapping[str, Any]) -> Any:
        raise RuntimeError("secret internals")

    @canvas_action()
    async def hang(self, request: Mapping[str, Any]) -> Any:
        await asyncio.Event().wait()

    async def close(self, request: Mapping[str, Any]) -> None:
        self.closed.append(request["instanceId"])


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
async def provider(board: Board) -> PythonProvider:
    made = canvas("board", display_name="Board", description="A board", input_schema=SCHEMA)(board)
    return PythonProvider("example.boards", [made], name="Boards")


@pytest.fixture
async def bench(tmp_path: Path, provider: PythonProvider) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    made.features = [Canvases([provider], timeout=1.0, max_instances=3)]
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def runtime(bench: Bench, client: RawClient, chat: str) -> Any:
    """The canvas runtime that the agent of a running turn has."""
    got: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def script(turn: Turn) -> None:
        got.set_result(turn.canvas)
        await asyncio.Event().wait()

    bench.agent.script = script
    await client.accepted(chat, say("go"))
    async with asyncio.timeout(5):
        return await got


@requirement("canvas:registry:server-provider")
@requirement("canvas:agent:list")
@requirement("canvas:state:declaration-shape")
async def test_a_provider_of_the_host_is_declared_to_clients_and_agents(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    [entry] = (await bench.state(client, session))["canvasRegistry"]
    assert (entry["extensionId"], entry["canvasId"], entry["source"]) == ("example.boards", "board", "server")
    assert "clientId" not in entry
    [seen] = (await runtime(bench, client, chat)).list()
    assert "source" not in seen
    assert seen["actions"][0] == {
        "name": "add",
        "description": "Add a card",
        "inputSchema": {"type": "object", "required": ["card"]},
    }


@requirement("canvas:bridge:open-success")
@requirement("canvas:bridge:action-success")
@requirement("canvas:bridge:close-success")
@requirement("canvas:surface:one-request-triple")
@requirement("canvas:request:server-target-completed-by-host")
async def test_open_invoke_and_close_run_as_requests_that_everyone_sees(bench: Bench, board: Board) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    canvases = await runtime(bench, client, chat)
    opened = await canvases.open("board", "b1", input={"title": "Plan"})
    assert opened == {
        "instanceId": "b1",
        "canvasId": "board",
        "extensionId": "example.boards",
        "extensionName": "Boards",
        "availability": "ready",
        "input": {"title": "Plan"},
        "url": "https://board.example/1",
        "title": "Plan",
        "status": "fresh",
        "reopen": False,
    }
    assert await canvases.invoke("b1", "add", {"card": "x"}) == {"cards": ["x"]}
    await canvases.close("b1")
    assert board.closed == ["b1"]
    await client.action("session/canvasInstanceClosed")
    kinds = [
        e["action"]["type"].removeprefix("session/canvas")
        for e in client.actions(session)
        if "canvas" in e["action"]["type"]
    ]
    assert kinds == [
        "RequestCreated",
        "RequestCompleted",
        "InstanceOpened",
        "RequestCreated",
        "RequestCompleted",
        "RequestCreated",
        "RequestCompleted",
        "InstanceClosed",
    ]
    state = await bench.state(client, session)
    assert state["openCanvases"] == []
    assert state["canvasRequests"] == []


async def test_what_goes_wrong_has_a_code_and_leaves_no_request(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    canvases = await runtime(bench, client, chat)

    async def code(call: Any) -> str:
        with pytest.raises(CanvasError) as failure:
            await call
        return failure.value.code

    assert await code(canvases.open("none", "x")) == "canvas_not_found"
    assert await code(canvases.open("board", "x", input={})) == "canvas_invalid_input"
    assert await code(canvases.invoke("x", "add")) == "canvas_instance_not_found"
    assert await code(canvases.close("x")) == "canvas_instance_not_found"
    await canvases.open("board", "b1", input={"title": "A"})
    assert await code(canvases.invoke("b1", "fly")) == "canvas_action_no_handler"
    assert await code(canvases.invoke("b1", "add", {})) == "canvas_invalid_input"
    assert await code(canvases.invoke("b1", "crash")) == "canvas_provider_error"
    assert await code(canvases.invoke("b1", "hang")) == "canvas_timeout"
    await canvases.open("board", "b2", input={"title": "B"})
    await canvases.open("board", "b3", input={"title": "C"})
    assert await code(canvases.open("board", "b4", input={"title": "D"})) == "canvas_limit"
    cancelled = await client.action("session/canvasRequestCancelled")
    assert cancelled["action"]["reason"] == "timeout"
    assert (await bench.state(client, session))["canvasRequests"] == []
    assert "secret" not in str(client.received)


@requirement("canvas:provider:reopen")
async def test_opening_an_open_instance_reopens_it(bench: Bench, board: Board) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    canvases = await runtime(bench, client, chat)
    await canvases.open("board", "b1", input={"title": "A"})
    again = await canvases.open("board", "b1", input={"title": "B"})
    assert again["reopen"] is True
    assert board.calls[-1]["reopen"] is True
    await client.action(lambda e: e["action"].get("instance", {}).get("title") == "B")
    assert [one["title"] for one in (await bench.state(client, session))["openCanvases"]] == ["B"]


DECLARED = {"canvasId": "chart", "displayName": "Chart", "description": "A chart", "actions": [{"name": "draw"}]}


async def claim(client: RawClient, session: str, **fields: Any) -> None:
    active: Json = {"clientId": client.client_id, "tools": [], **fields}
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})


@requirement("canvas:client:extension-id-derived")
@requirement("canvas:registry:two-steps")
@requirement("canvas:request:completed-by-target-only")
@requirement("canvas:roles:client-canvas-renders-itself")
async def test_a_client_provides_a_canvas_and_answers_for_it(bench: Bench) -> None:
    owner, other = await bench.client(), await bench.client()
    session, chat = await bench.session(owner)
    await other.ask("subscribe", session)
    canvases = await runtime(bench, owner, chat)
    await claim(owner, session, canvasProviders=[DECLARED])
    changed = await owner.action(lambda e: len(e["action"].get("canvases", ())) == 2)
    claimed = await owner.action("session/activeClientChanged")
    assert claimed["serverSeq"] < changed["serverSeq"]
    assert changed["action"]["canvases"][1]["extensionId"] == f"client:{owner.client_id}"
    opening = asyncio.create_task(canvases.open("chart", "c1"))
    request = (await other.action("session/canvasRequestCreated"))["action"]["request"]
    assert request["target"] == {"kind": "activeClient", "clientId": owner.client_id}
    answer = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
    answer |= {"result": {"kind": "open", "url": "https://c.example"}}
    assert "another client" in await other.rejected(session, answer)
    await owner.accepted(session, answer)
    async with asyncio.timeout(5):
        assert (await opening)["url"] == "https://c.example"
    [instance] = (await bench.state(owner, session))["openCanvases"]
    assert instance["renderer"] == {"clientId": owner.client_id}


@requirement("canvas:provider:client-gone")
@requirement("canvas:provider:drop-makes-stale")
@requirement("canvas:provider:drop-cancels-requests")
@requirement("canvas:provider:stale-invoke-fails")
async def test_when_the_client_leaves_its_canvases_go_stale_and_its_requests_end(bench: Bench) -> None:
    owner, watcher = await bench.client(), await bench.client()
    session, chat = await bench.session(owner)
    await watcher.ask("subscribe", session)
    canvases = await runtime(bench, owner, chat)
    await claim(owner, session, canvasProviders=[DECLARED])
    await owner.action(lambda e: len(e["action"].get("canvases", ())) == 2)
    await canvases.open("board", "b1", input={"title": "stays"})
    opening = asyncio.create_task(canvases.open("chart", "c1"))
    request = await owner.action(lambda e: e["action"].get("request", {}).get("instanceId") == "c1")
    answer = {"type": "session/canvasRequestCompleted", "requestId": request["action"]["request"]["requestId"]}
    await owner.accepted(session, answer | {"result": {"kind": "open"}})
    await opening
    invoking = asyncio.create_task(canvases.invoke("c1", "draw"))
    await watcher.action(lambda e: e["action"].get("request", {}).get("kind") == "action")
    await owner.aclose()
    with pytest.raises(CanvasError) as failure:
        await invoking
    assert failure.value.code == "canvas_provider_unavailable"
    cancelled = await watcher.action("session/canvasRequestCancelled")
    assert cancelled["action"]["reason"] == "providerDisconnected"
    await watcher.action(lambda e: len(e["action"].get("canvases", "xx")) == 1)
    state = await bench.state(watcher, session)
    assert {one["instanceId"]: one["availability"] for one in state["openCanvases"]} == {"b1": "ready", "c1": "stale"}
    assert [one["canvasId"] for one in state["canvasRegistry"]] == ["board"]
    assert state["canvasRequests"] == []
    with pytest.raises(CanvasError, match="gone"):
        await canvases.invoke("c1", "draw")


@requirement("canvas:action:close-requested-starts-close")
@requirement("canvas:validate:close-by-other-than-renderer")
@requirement("canvas:validate:close-unknown-instance")
async def test_the_renderers_close_button_closes_the_instance(bench: Bench, board: Board) -> None:
    renderer, other = await bench.client(), await bench.client()
    session, chat = await bench.session(renderer)
    await other.ask("subscribe", session)
    await claim(renderer, session, canRenderCanvases=True)
    canvases = await runtime(bench, renderer, chat)
    await canvases.open("board", "b1", input={"title": "A"})
    assert board.calls[0]["host"] == {"capabilities": {"canvases": True}}
    close = {"type": "session/canvasInstanceCloseRequested", "instanceId": "b1"}
    assert await other.rejected(session, close)
    await other.accepted(session, {**close, "instanceId": "unknown"})
    await renderer.accepted(session, close)
    await renderer.action("session/canvasInstanceClosed")
    assert board.closed == ["b1"]


async def test_after_a_restart_instances_are_stale_without_url_and_come_back_by_themselves(
    bench: Bench, board: Board, provider: PythonProvider
) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    canvases = await runtime(bench, client, chat)
    await canvases.open("board", "b1", input={"title": "A"})
    board.hold = asyncio.Event()
    await client.ask("ping")
    await bench.stop()
    bench.features = [Canvases([provider])]
    await bench.start()
    back = await bench.client()
    state = await bench.state(back, session)
    [instance] = state["openCanvases"]
    assert instance["availability"] == "stale"
    assert "url" not in instance
    board.hold.set()
    await back.action("session/canvasInstanceOpened")
    assert board.calls[-1]["reopen"] is True
    assert board.calls[-1]["input"] == {"title": "A"}
    [instance] = (await bench.state(back, session))["openCanvases"]
    assert instance["availability"] == "ready"


async def test_a_push_of_the_provider_reaches_subscribers_as_just_what_changed(
    bench: Bench, provider: PythonProvider
) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    canvases = await runtime(bench, client, chat)
    await canvases.open("board", "b1", input={"title": "A"})
    provider.update(session.partition(":/")[2], "b1", title="B", status="fresh", other="ignored")
    updated = await client.action("session/canvasInstanceUpdated")
    assert updated["action"]["changes"] == {"title": "B"}
