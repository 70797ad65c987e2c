"""Requests in flight: every one ends, once, with the right reason."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ahpkit.canvas import Canvases, PythonProvider, canvas
from ahpkit.canvas.limits import MAX_ANSWER
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.connect import connect_transport
from support import requirement
from support.bench import Bench
from support.canvases import (
    CHART,
    Board,
    board_provider,
    canvas_actions,
    claim,
    failure,
    kinds,
    request_for,
    runtime,
)
from support.raw_client import Json, RawClient
from support.waiting import until


@requirement("canvas:bridge:timeout-cancels", "canvas:action:cancel-reasons", "canvas:state:request-deadline")
@requirement("canvas:bridge:open-failure", "canvas:bridge:action-failure", "canvas:bridge:close-failure")
async def test_a_provider_that_never_answers_is_given_up_at_the_deadline(tmp_path: Path, board: Board) -> None:
    bench = Bench(tmp_path)
    bench.features = [Canvases([board_provider(board)], timeout=0.5)]
    await bench.start()
    try:
        client, watcher = await bench.client(), await bench.client()
        session, chat = await bench.session(client)
        await watcher.ask("subscribe", session)
        agent = await runtime(bench, client, chat)
        board.hold = asyncio.Event()
        error = await failure(agent.open("board", "b1"))
        assert error.code == "canvas_timeout"
        for one in (client, watcher):
            cancelled = (await one.action("session/canvasRequestCancelled"))["action"]
            assert cancelled["reason"] == "timeout"
            assert set(cancelled) == {"type", "requestId", "reason"}
        await until(lambda: board.cancelled == ["b1"])  # It need not go on for nobody.
        board.hold.set()
        state = await bench.state(client, session)
        assert (state["canvasRequests"], state.get("openCanvases", [])) == ([], [])
        board.hold = None
        await agent.open("board", "b2")
        board.hold = asyncio.Event()
        assert (await failure(agent.invoke("b2", "add", {"card": 1}))).code == "canvas_timeout"
        assert (await failure(agent.close("b2"))).code == "canvas_timeout"
        board.hold = None
        assert [one["instanceId"] for one in (await bench.state(client, session))["openCanvases"]] == ["b2"]
        assert "InstanceClosed" not in kinds(canvas_actions(watcher, session))
    finally:
        await bench.stop()


async def test_a_client_that_answers_after_the_deadline_or_twice_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.features = [Canvases(timeout=0.05)]
    await bench.start()
    try:
        client = await bench.client()
        session, chat = await bench.session(client)
        await claim(client, session, canvasProviders=[CHART])
        agent = await runtime(bench, client, chat)
        opening = asyncio.create_task(agent.open("chart", "c1"))
        request = await request_for(client, "c1")
        assert (await failure(opening)).code == "canvas_timeout"
        answer = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
        answer |= {"result": {"kind": "open"}}
        assert "there is no canvas request" in await client.rejected(session, answer)
        assert (await bench.state(client, session)).get("openCanvases", []) == []
    finally:
        await bench.stop()


async def test_the_second_answer_of_a_client_is_refused(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await claim(client, session, canvasProviders=[CHART])
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1"))
    request = await request_for(client, "c1")
    answer = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
    first = client.post(session, {**answer, "result": {"kind": "open", "title": "first"}})
    second = client.post(session, {**answer, "result": {"kind": "open", "title": "second"}})
    echoes = [
        await client.action(lambda e, seq=seq: e.get("origin", {}).get("clientSeq") == seq) for seq in (first, second)
    ]
    assert ["rejectionReason" in echo for echo in echoes] == [False, True]
    assert (await opening)["title"] == "first"


@pytest.mark.parametrize(
    "outcome",
    [
        {"result": {"kind": "action", "value": 1}},
        {"result": {"kind": "open"}, "error": {"code": "x", "message": "y"}},
        {},
        {"result": {"kind": "open", "url": 7}},
        {"result": {"kind": "open", "title": "x" * 501}},
        {"result": {"kind": "open", "padding": "x" * MAX_ANSWER}},
        {"error": {"code": "x", "message": "x" * MAX_ANSWER}},
    ],
    ids=["wrong kind", "both", "neither", "malformed", "long title", "large result", "large error"],
)
async def test_what_is_no_answer_is_refused_and_the_request_stays(bench: Bench, outcome: Json) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await claim(client, session, canvasProviders=[CHART])
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1"))
    request = await request_for(client, "c1")
    answer = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
    assert await client.rejected(session, {**answer, **outcome})
    assert [one["requestId"] for one in (await bench.state(client, session))["canvasRequests"]] == [
        request["requestId"]
    ]
    await client.accepted(session, {**answer, "result": {"kind": "open"}})
    await opening


async def test_fifty_megabytes_are_no_answer(bench: Bench, board: Board) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    board.opening = {"title": "x", "padding": "y" * 50_000_000}
    await agent.open("board", "b1")  # Only url, title and status count.
    error = await failure(agent.invoke("b1", "echo", {"x": "y" * 300_000}))
    assert error.code == "canvas_invalid_input"
    board.opening = {"status": "y" * 50_000_000}
    error = await failure(agent.open("board", "b2"))
    assert error.code == "canvas_provider_error"
    assert len(str(client.received)) < 1_000_000
    assert (await bench.state(client, session))["canvasRequests"] == []


async def test_a_provider_that_will_not_be_stopped_is_not_heard_any_more(tmp_path: Path) -> None:
    answered = asyncio.Event()

    class Stubborn:
        async def open(self, request: Any) -> Any:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                answered.set()
            return {"title": "too late"}

    stubborn = PythonProvider("stubborn", [canvas("board", display_name="B", description="b")(Stubborn)])
    bench = Bench(tmp_path)
    bench.features = [Canvases([stubborn], timeout=0.05)]
    await bench.start()
    try:
        client = await bench.client()
        session, chat = await bench.session(client)
        agent = await runtime(bench, client, chat)
        assert (await failure(agent.open("board", "b1"))).code == "canvas_timeout"
        await answered.wait()
        await bench.host.services.durable()
        await client.ask("ping")
        told = [kind for kind in kinds(canvas_actions(client, session)) if kind != "RegistryChanged"]
        assert told == ["RequestCreated", "RequestCancelled"]
    finally:
        await bench.stop()


async def test_a_client_that_sends_fifty_megabytes_loses_its_connection_and_its_requests(bench: Bench) -> None:
    async with serve_http(bench.host.serve, auth=Authenticator(None)) as server:
        watcher = await bench.client()
        session, chat = await bench.session(watcher)
        agent = await runtime(bench, watcher, chat)
        desk = RawClient(await connect_transport(server.url), "desk")
        await desk.initialize(session)
        await claim(desk, session, canvasProviders=[CHART])
        opening = asyncio.create_task(agent.open("chart", "c1"))
        request = await request_for(desk, "c1")
        action = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
        desk.post(session, {**action, "result": {"kind": "open", "title": "x" * 50_000_000}})
        assert (await failure(opening)).code == "canvas_provider_unavailable"
        assert (await desk.wait_closed()).code == 1009
        cancelled = await watcher.action("session/canvasRequestCancelled")
        assert cancelled["action"]["reason"] == "providerDisconnected"


@requirement("canvas:action:cancel-reasons")
async def test_a_host_that_stops_cancels_what_waits(bench: Bench, board: Board) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    board.hold = asyncio.Event()
    opening = asyncio.create_task(agent.open("board", "b1"))
    await request_for(client, "b1")
    await bench.stop()
    assert (await failure(opening)).code == "canvas_provider_unavailable"
    bench.features = []
    await bench.start()
    back = await bench.connect("late")
    await back.ask("reconnect", clientId="late", lastSeenServerSeq=0, subscriptions=[session])
    assert board.cancelled == ["b1"]
    entries = await bench.host.spine.log.read(0, channels=[session], limit=None)
    assert b'"reason":"hostShutdown"' in b"".join(entry.payload for entry in entries)


@requirement("session:stop:last-words")
async def test_clients_hear_that_the_host_stops_before_they_are_disconnected(bench: Bench, board: Board) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    board.hold = asyncio.Event()
    opening = asyncio.create_task(agent.open("board", "b1"))
    request = await request_for(client, "b1")
    await bench.host.__aexit__()
    await client.wait_closed()
    assert (await failure(opening)).code == "canvas_provider_unavailable"
    cancelled = [
        e["action"] for e in client.actions(session) if e["action"]["type"] == "session/canvasRequestCancelled"
    ]
    assert [(one["requestId"], one["reason"]) for one in cancelled] == [(request["requestId"], "hostShutdown")]


async def test_a_session_that_is_disposed_ends_its_calls_and_tells_the_provider(bench: Bench, board: Board) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    await agent.open("board", "b1")
    board.hold = asyncio.Event()
    invoking = asyncio.create_task(agent.invoke("b1", "add", {"card": 1}))
    await request_for(client, "b1", "action")
    await client.ask("disposeSession", session)
    assert (await failure(invoking)).code == "canvas_instance_closed"
    await until(lambda: board.verbs()[-1:] == ["close b1"])
    board.hold.set()
    assert (await failure(agent.open("board", "b2"))).code in ("canvas_not_found", "canvas_provider_unavailable")
    assert kinds(canvas_actions(client, session))[-1] == "RequestCreated"


@requirement("canvas:request:server-target-rejects-clients", "canvas:roles:provider-answers")
async def test_no_client_answers_a_request_to_the_host_and_it_stays_in_flight(tmp_path: Path, board: Board) -> None:
    bench = Bench(tmp_path)
    bench.features = [Canvases([board_provider(board)])]
    await bench.start()
    try:
        client = await bench.client()
        session, chat = await bench.session(client)
        await claim(client, session, canRenderCanvases=True)
        agent = await runtime(bench, client, chat)
        board.hold = asyncio.Event()
        opening = asyncio.create_task(agent.open("board", "b1"))
        request = await request_for(client, "b1")
        answer = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
        assert await client.rejected(session, {**answer, "result": {"kind": "open", "title": "Mine"}})
        [waiting] = (await bench.state(client, session))["canvasRequests"]
        assert waiting["requestId"] == request["requestId"]
        board.hold.set()
        assert (await opening)["title"] == "Board"
    finally:
        await bench.stop()
