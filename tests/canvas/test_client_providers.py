"""Canvases that clients provide: opened, opened again, described anew; and which ones a plain client is told of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.authoring.canvas import canvas
from ahpkit.canvas import CanvasError, Canvases
from ahpkit.canvas.builtin import builtin_provider
from ahpkit.canvas.pages import Pages
from ahpkit.host.agent import ToolOutcome, Turn
from ahpkit.testing.memory_host import MemoryHost
from support import requirement
from support.bench import Bench, say
from support.canvases import complete, runtime
from support.clients import eventually
from support.raw_client import Json, RawClient

DRAWING: Json = {"canvasId": "drawing", "displayName": "Drawing", "description": "Draws."}


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    pages = Pages()
    made.features = [Canvases([builtin_provider(pages)])]
    await made.start()
    try:
        async with pages.serving("ws://127.0.0.1:7110"):
            yield made
    finally:
        await made.stop()


def claim(client: RawClient, **fields: Any) -> Json:
    active: Json = {"clientId": client.client_id, "tools": [], **fields}
    return {"type": "session/activeClientChanged", "activeClient": active}


@requirement("canvas:provider:told-of-reopen", "canvas:provider:client-push", "canvas:url:plain-string")
async def test_a_client_tells_a_reopen_from_an_open_and_pushes_what_changed(bench: Bench) -> None:
    client, other = await bench.client(), await bench.client()
    session, chat = await bench.session(client)
    await other.ask("subscribe", session)
    await client.accepted(session, claim(client, canvasProviders=[DRAWING]))
    agent = await runtime(bench, client, chat)
    for reopen in (False, True):
        opening = bench.host.services.spawn(_opened(agent), name="open")
        count = len([e for e in client.actions(session) if e["action"]["type"] == "session/canvasRequestCreated"])
        await client.wait(
            lambda _, count=count: (
                len([e for e in client.actions(session) if e["action"]["type"] == "session/canvasRequestCreated"])
                > count
            )
        )
        created = [e for e in client.actions(session) if e["action"]["type"] == "session/canvasRequestCreated"]
        request = created[-1]["action"]["request"]
        assert request.get("reopen", False) is reopen
        await complete(client, session, request, result={"kind": "open", "title": "One"})
        await opening
    changes: Json = {"title": "Two", "status": "drawn", "url": "https://example.org/two"}
    update = {"type": "session/canvasInstanceUpdated", "instanceId": "d1", "changes": changes}
    await client.accepted(session, update)
    [instance] = (await bench.state(other, session))["openCanvases"]
    assert {key: instance[key] for key in changes} == changes
    assert [one["title"] for one in agent.list_open()] == ["Two"]
    odd: Json = {"url": "odd:  renderers decide"}
    await client.accepted(session, {**update, "changes": odd})
    assert (await bench.state(other, session))["openCanvases"][0]["url"] == odd["url"]
    assert "somebody else" in await other.rejected(session, update)
    stale = {**update, "changes": {"availability": "stale"}}
    assert "not availability" in await client.rejected(session, stale)
    assert "no canvas instance" in await client.rejected(session, {**update, "instanceId": "none"})
    long = {**update, "changes": {"title": "x" * 100_000}}
    assert "characters" in await client.rejected(session, long)


async def _opened(agent: Any) -> None:
    await agent.open("drawing", "d1")


@requirement("canvas:provider:client-push")
async def test_a_canvas_of_the_sdk_pushes_through_its_client(bench: Bench) -> None:
    @canvas("drawing", display_name="Drawing", description="Draws.")
    async def drawing(request: Any) -> Json:
        return {"title": "reopened" if request.get("reopen") else "opened"}

    watcher = await bench.client()
    async with MemoryHost(bench.host).client() as client:
        client.add_canvas(drawing)
        session = await client.create_session(active_client=True)
        await watcher.ask("subscribe", session.uri)
        chat = (await session.chat()).uri
        await watcher.ask("subscribe", chat)
        agent = await runtime(bench, watcher, chat)
        assert (await agent.open("drawing", "d1"))["title"] == "opened"
        assert (await agent.open("drawing", "d1"))["title"] == "reopened"
        drawing.push(session.uri.partition(":/")[2], "d1", title="pushed", availability="ready")

        def titles() -> list[Any]:
            opened: Any = session.state.get("openCanvases", [])
            return [one.get("title") for one in opened]

        await eventually(lambda: titles() == ["pushed"])


@requirement("canvas:builtin:where-shown", "gen:project-action:canvas-capability")
@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
async def test_built_in_canvases_are_declared_where_somebody_can_show_one(bench: Bench, version: str) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    assert (await bench.state(client, session)).get("canvasRegistry", []) == []
    assert not [e for e in client.actions(session) if e["action"]["type"] == "session/canvasRegistryChanged"]
    await client.accepted(session, claim(client, canRenderCanvases=True))
    told = await client.action("session/canvasRegistryChanged")
    assert {one["canvasId"] for one in told["action"]["canvases"]} == {"chart", "checklist"}
    plain = await bench.connect()
    await plain.initialize(session, protocolVersions=[version])
    shown = (await plain.ask("subscribe", session))["snapshot"]["state"]
    assert ("canvasRegistry" in shown) is (version == "0.4.0")
    announced = await bench.connect()
    await announced.initialize(session, **NEWER)
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": None})
    assert (await bench.state(client, session))["canvasRegistry"] == []
    assert (await announced.action("session/canvasRegistryChanged"))["action"]["canvases"] == []
    await plain.ask("ping")
    heard = [one for one in plain.actions(session) if one["action"]["type"] == "session/canvasRegistryChanged"]
    assert bool(heard) is (version == "0.4.0")
    await client.accepted(session, claim(client, canRenderCanvases=True))
    agent = await runtime(bench, client, chat)
    await agent.open("checklist", "list")
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": None})
    left = (await bench.state(client, session))["canvasRegistry"]
    assert "checklist" in [one["canvasId"] for one in left], "one that is open stays declared"
    await agent.close("list")
    assert (await bench.state(client, session))["canvasRegistry"] == []


NEWER: Json = {"protocolVersions": ["1.0.0"], "capabilities": {"_meta": {"ahpkit/canvases": True}}}


async def _provides(bench: Bench) -> tuple[RawClient, RawClient, str, str]:
    """A client of 1.0.0 that provides a canvas, and one that watches: with the session and its chat."""
    client, watcher = await bench.connect("provider"), await bench.client()
    await client.initialize(**NEWER)
    session, chat = await bench.session(client)
    await watcher.ask("subscribe", session)
    await watcher.ask("subscribe", chat)
    await _offers(client, session)
    return client, watcher, session, chat


async def _offers(client: RawClient, session: str) -> None:
    active: Json = {"clientId": client.client_id, "tools": [], "canvasProviders": [DRAWING]}
    await client.accepted(session, {"type": "session/activeClientSet", "activeClient": active})


async def _asked(client: RawClient, session: str) -> Json:
    """The latest request to a client."""
    await client.action("session/canvasRequestCreated")
    created = [e["action"] for e in client.actions(session) if e["action"]["type"] == "session/canvasRequestCreated"]
    return created[-1]["request"]


@requirement("canvas:provider:lost-connection")
async def test_a_lost_connection_makes_instances_stale_at_once_also_where_the_entry_stays(bench: Bench) -> None:
    client, watcher, session, chat = await _provides(bench)
    agent = await runtime(bench, watcher, chat)
    opening = bench.host.services.spawn(_opened(agent), name="open")
    await complete(client, session, await _asked(client, session), result={"kind": "open", "title": "One"})
    await opening
    waiting = bench.host.services.spawn(_opened(agent), name="open again")
    await watcher.action(
        lambda envelope: (
            envelope["action"]["type"] == "session/canvasRequestCreated" and "reopen" in envelope["action"]["request"]
        )
    )
    await client.aclose()
    cancelled = await watcher.action("session/canvasRequestCancelled")
    assert cancelled["action"]["reason"] == "providerDisconnected"
    with pytest.raises(CanvasError) as gone:
        await waiting
    assert gone.value.code == "canvas_provider_unavailable"
    state = await bench.state(watcher, session)
    assert state["canvasRegistry"] == []
    assert [one["availability"] for one in state["openCanvases"]] == ["stale"]
    with pytest.raises(CanvasError, match="gone"):
        await agent.invoke("d1", "any")


@requirement("canvas:provider:stale-invoke-fails")
async def test_a_canvas_whose_provider_left_can_still_be_called_by_a_model_and_closed(bench: Bench) -> None:
    """The tools went with the last declaration: a model heard that there was no such tool, and nobody closed it."""
    client, watcher, session, chat = await _provides(bench)
    outcomes: list[ToolOutcome] = []

    async def ended(turn_id: str, calls: Sequence[tuple[str, Json]]) -> None:
        async def script(turn: Turn) -> None:
            for name, given in calls:
                outcomes.append(await turn.call_tool(name, json.dumps({"instanceId": "d1", **given})))

        bench.agent.script = script
        await watcher.accepted(chat, say("go", turn_id))
        await watcher.action(
            lambda e: (e["action"]["type"], e["action"].get("turnId")) == ("chat/turnComplete", turn_id)
        )

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ended("first", [("canvas_open", {"canvasId": "drawing"})]))
        await complete(client, session, await _asked(client, session), result={"kind": "open", "title": "One"})
    await client.aclose()
    await watcher.action("session/canvasInstanceUpdated")
    assert (await bench.state(watcher, session))["canvasRegistry"] == []
    await ended("second", [("canvas_invoke", {"actionName": "any"}), ("canvas_close", {})])
    assert [outcome.success for outcome in outcomes] == [True, False, True]
    assert "canvas_provider_unavailable" in (outcomes[1].error or "")
    assert not (await bench.state(watcher, session)).get("openCanvases")
    names = [tool.name for tool in bench.host.services.tools(session)]
    assert not [name for name in names if name.startswith("canvas_")], "nothing is left to open or to close"


@requirement("canvas:provider:lost-connection")
@pytest.mark.parametrize("resumes", [True, False], ids=["resumes", "begins anew"])
async def test_the_canvases_of_a_client_that_is_back_are_opened_again(bench: Bench, resumes: bool) -> None:
    client, watcher, session, chat = await _provides(bench)
    agent = await runtime(bench, watcher, chat)
    opening = bench.host.services.spawn(_opened(agent), name="open")
    await complete(client, session, await _asked(client, session), result={"kind": "open", "title": "One"})
    await opening
    await bench.host.services.durable()
    await client.aclose()
    await watcher.action("session/canvasInstanceUpdated")
    back = await bench.connect("provider")
    if resumes:
        seen = client.actions()[-1]["serverSeq"]
        await back.ask("reconnect", clientId="provider", lastSeenServerSeq=seen, subscriptions=[session])
    else:
        await back.initialize(session, **NEWER)
        assert (await bench.state(watcher, session))["canvasRegistry"] == []
        await _offers(back, session)
    request = await _asked(back, session)
    assert request["reopen"] is True
    await complete(back, session, request, result={"kind": "open", "title": "Two"})
    shown = await watcher.action(
        lambda envelope: (
            envelope["action"]["type"] == "session/canvasInstanceOpened"
            and envelope["action"]["instance"].get("title") == "Two"
        )
    )
    assert shown["action"]["instance"]["availability"] == "ready"
