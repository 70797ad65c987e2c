"""All canvases of a host: providers with one id, restarts, and sessions without canvases."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from ahpkit.canvas import Canvases, PythonProvider
from ahpkit.canvas.feature import canvas_uri
from ahpkit.canvas.provider import DuplicateExtension
from ahpkit.host.agent import CanvasRuntime
from ahpkit.host.feature import Feature
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.protocol.session.actions import session_active_client_set
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration
from ahpkit.protocol.session.state import SessionActiveClient
from support import requirement
from support.bench import Bench, say
from support.canvases import CHART, EXTENSION, Board, board_provider, claim, request_for, runtime
from support.raw_client import Json, RawClient
from support.waiting import BOUND, until


@requirement("canvas:registry:server-provider", "canvas:agent:list", "canvas:state:declaration-shape")
async def test_a_provider_of_the_host_is_declared_to_clients_and_agents(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    [entry] = (await bench.state(client, session))["canvasRegistry"]
    assert (entry["extensionId"], entry["canvasId"], entry["source"]) == (EXTENSION, "board", "server")
    assert "clientId" not in entry
    await claim(client, session, canvasProviders=[CHART])
    ours, theirs = (await runtime(bench, client, chat)).list()
    assert set(ours) == {"extensionId", "extensionName", "canvasId", "displayName", "description", "actions"}
    assert ours["actions"][0] == {
        "name": "add",
        "description": "Add a card",
        "inputSchema": {"type": "object", "required": ["card"]},
    }
    assert theirs == {**CHART, "extensionId": f"client:{client.client_id}"}


@requirement("canvas:state:declaration-identity")
async def test_an_extension_id_belongs_to_one_provider(canvases: Canvases, provider: PythonProvider) -> None:
    with pytest.raises(DuplicateExtension, match=r"'example\.boards' already"):
        canvases.add_provider(board_provider(Board()))
    with pytest.raises(DuplicateExtension):
        Canvases([provider, board_provider(Board())])
    with pytest.raises(ValueError, match="two canvases 'board'"):
        provider.add(board_provider(Board())._canvases["board"])  # pyright: ignore[reportPrivateUsage]  # A canvas of another provider.


@pytest.mark.parametrize("id", ["", "client:somebody"])
def test_no_provider_passes_for_a_client(id: str) -> None:
    with pytest.raises(ValueError, match="cannot be the id"):
        Canvases([board_provider(Board(), id)])


def test_a_provider_that_is_not_registered_is_not_removed(canvases: Canvases) -> None:
    canvases.remove_provider(board_provider(Board()))
    assert list(canvases._providers) == [EXTENSION]  # pyright: ignore[reportPrivateUsage]  # Who provides is not public.


@requirement("canvas:state:input-kept", "canvas:action:cancel-reasons")
async def test_after_a_crash_instances_are_stale_without_url_and_come_back_by_themselves(
    bench: Bench, board: Board
) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    await claim(client, session, canRenderCanvases=True)
    await agent.open("board", "b1", input={"title": "A"})
    board.hold = asyncio.Event()
    waiting = asyncio.create_task(agent.invoke("b1", "add", {"card": 1}))
    await request_for(client, "b1", "action")
    await client.ask("ping")
    await bench.host.services.durable()
    storage = bench.storage
    crashed = Bench(bench.config.default_directory)
    crashed.storage, crashed.features = storage, [Canvases([board_provider(board)])]
    await crashed.start()  # On what the first one wrote, as after a crash: it never had its last word.
    try:
        back = await crashed.client()
        state = await crashed.state(back, session)
        [instance] = state["openCanvases"]
        assert (instance["availability"], "url" in instance, "renderer" in instance) == ("stale", False, False)
        requests = [request["kind"] for request in state["canvasRequests"]]
        assert "action" not in requests
        board.hold.set()
        await back.action("session/canvasInstanceOpened")
        verb, request = board.calls[-1]
        assert (verb, request["reopen"], request["input"]) == ("open", True, {"title": "A"})
        [instance] = (await crashed.state(back, session))["openCanvases"]
        assert (instance["availability"], instance["url"]) == ("ready", "https://board.example/b1")
        entries = await crashed.host.spine.log.read(0, channels=[session], limit=None)
        assert b'"reason":"hostShutdown"' in b"".join(entry.payload for entry in entries)
    finally:
        await crashed.stop()
        waiting.cancel()


async def test_what_no_provider_declares_after_a_restart_stays_stale_and_can_be_closed(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await (await runtime(bench, client, chat)).open("board", "b1", input={"title": "A"})
    await bench.stop()
    bench.features = [Canvases()]
    await bench.start()
    back = await bench.client()
    state = await bench.state(back, session)
    assert state["canvasRegistry"] == []
    assert [one["availability"] for one in state["openCanvases"]] == ["stale"]
    await back.accepted(session, {"type": "session/canvasInstanceCloseRequested", "instanceId": "b1"})
    await back.action("session/canvasInstanceClosed")


async def test_a_client_that_is_not_back_after_a_restart_declares_no_canvas(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    chart: ClientCanvasDeclaration = {"canvasId": "chart", "displayName": "Chart", "description": "Shows numbers."}
    active: SessionActiveClient = {"clientId": "away", "tools": [], "canvasProviders": [chart]}
    bench.host.services.dispatch(session, session_active_client_set(active_client=active))
    await client.action(lambda said: "chart" in str(said["action"].get("canvases")))
    await bench.stop()
    bench.features = [Canvases()]
    await bench.start()
    back = await bench.client()
    await bench.state(back, session)
    await bench.host.services.durable()
    assert (await bench.state(back, session))["canvasRegistry"] == []
    assert not any("chart" in str(said["action"].get("canvases")) for said in back.actions(session))


async def test_a_provider_that_cannot_reopen_leaves_the_instance_stale(bench: Bench, board: Board) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await (await runtime(bench, client, chat)).open("board", "b1", input={"title": "A"})
    await bench.stop()
    board.opening = RuntimeError("no")
    bench.features = [Canvases([board_provider(board)])]
    await bench.start()
    back = await bench.client()
    await bench.state(back, session)
    await until(lambda: board.verbs() == ["open b1", "open b1"])
    await bench.host.services.durable()
    state = await bench.state(back, session)
    assert [one["availability"] for one in state["openCanvases"]] == ["stale"]
    assert state["canvasRequests"] == []


async def test_after_a_restart_an_extension_is_asked_for_a_few_instances_at_a_time(tmp_path: Path) -> None:
    slow, quick = Board(), Board()
    bench = Bench(tmp_path)
    bench.features = [Canvases([board_provider(slow, "slow"), board_provider(quick, "quick")])]
    await bench.start()
    try:
        client = await bench.client()
        _, chat = await bench.session(client)
        agent = await runtime(bench, client, chat)
        for number in range(20):
            await agent.open("board", f"s{number}", extension_id="slow")
        await agent.open("board", "q", extension_id="quick")
        await bench.stop()
        slow.hold = asyncio.Event()
        bench.features = [Canvases([board_provider(slow, "slow"), board_provider(quick, "quick")])]
        await bench.start()
        await until(lambda: quick.verbs() == ["open q"] * 2)  # One that hangs keeps no other waiting.
        assert len(slow.calls) == 20 + 8
        slow.hold.set()
        await until(lambda: len(slow.calls) == 40)
    finally:
        await bench.stop()


async def test_declarations_that_are_too_much_are_refused(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    huge = {**CHART, "description": "x" * 300_000}
    active: Json = {"clientId": client.client_id, "tools": [], "canvasProviders": [huge]}
    reason = await client.rejected(session, {"type": "session/activeClientChanged", "activeClient": active})
    assert "at most" in reason


@requirement("canvas:compat:purely-additive")
@requirement("canvas:surface:no-initialize-flag")
async def test_a_session_without_canvases_says_the_same_with_and_without_the_feature(tmp_path: Path) -> None:
    async def conversation(features: list[Feature]) -> list[str]:
        bench = Bench(tmp_path)
        bench.features = features
        await bench.start()
        try:
            client = await bench.client("ahp-root://")
            session, chat = await bench.session(await bench.client())
            await client.ask("subscribe", session)  # It is ready by now: its first snapshot is the same each time.
            await client.ask("subscribe", chat)
            await claim(client, session)
            await client.accepted(chat, say("hello"))
            await client.action("chat/turnComplete")
            await client.ask("disposeSession", session)
            await client.ask("listSessions")
            told = [one for one in client.received if one.get("method") != "root/sessionSummaryChanged"]  # Debounced.
            return [_normalised(message) for message in told]
        finally:
            await bench.stop()

    without, with_canvases = await conversation([]), await conversation([Canvases()])
    assert sorted(with_canvases) == sorted(without)
    assert len(without) > 10


def _normalised(message: Json) -> str:
    """Without ids and times: two actions in one millisecond tell one time less."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", str(message))
    text = re.sub(r"\d{13}|\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    return re.sub(r",? ?'(modifiedAt|duration)': '?(TIME|\d+)'?", "", text)


async def test_a_client_of_the_raw_kind_needs_no_canvas_state(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.start()
    try:
        client: RawClient = await bench.client()
        session, chat = await bench.session(client)
        state: dict[str, Any] = await bench.state(client, session)
        assert not {"canvasRegistry", "openCanvases", "canvasRequests"} & set(state)
        assert await runtime(bench, client, chat) is None
    finally:
        await bench.stop()


URL = "https://board.example/one"


async def opened(bench: Bench, client: RawClient) -> tuple[str, str, str, CanvasRuntime]:
    """A session with one open canvas: the session, its chat, the canvas' channel, and the agent's side."""
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    await agent.open("board", "one", input={"title": "Plan"})
    listed = (await client.action("chat/canvasesChanged"))["action"]["canvases"]
    assert listed == [{"resource": canvas_uri(session, "one")}]
    return session, chat, listed[0]["resource"], agent


async def test_an_open_canvas_is_listed_in_the_chat_and_has_a_channel(bench: Bench) -> None:
    client = await bench.client(offer=["1.0.0"])
    session, chat, uri, agent = await opened(bench, client)
    assert (await bench.state(client, chat))["canvases"] == [{"resource": uri}]
    state = await bench.state(client, uri)
    assert state == {
        "instanceId": "one",
        "extensionId": EXTENSION,
        "canvasId": "board",
        "title": "Plan",
        "url": URL,
        **({"extensionName": state["extensionName"]} if "extensionName" in state else {}),
    }
    await agent.open("board", "one", input={"title": "Other"})
    changed = await client.action("canvas/stateChanged")
    assert changed["channel"] == uri
    assert changed["action"]["canvas"] == {**state, "title": "Other"}
    assert not [said for said in client.actions(session) if "anvas" in said["action"]["type"]]
    await agent.close("one")
    await client.action(
        lambda said: said["action"]["type"] == "chat/canvasesChanged" and "canvases" not in said["action"]
    )
    assert "canvases" not in await bench.state(client, chat)
    assert (await client.refused("subscribe", uri))["code"] == -32008


async def test_clients_cannot_change_it(bench: Bench) -> None:
    client = await bench.client(offer=["1.0.0"])
    _, chat, uri, _ = await opened(bench, client)
    await client.ask("subscribe", uri)
    assert await client.rejected(uri, {"type": "canvas/stateChanged", "canvas": {"instanceId": "x"}})
    assert await client.rejected(chat, {"type": "chat/canvasesChanged", "canvases": []})


async def test_older_clients_are_told_nothing_of_it(bench: Bench) -> None:
    client = await bench.client(offer=["1.0.0"])
    session, chat = await bench.session(client)
    older = {version: await bench.client(session, chat, offer=[version]) for version in ("0.9.0", "0.7.0", "0.4.0")}
    agent = await runtime(bench, client, chat)
    await agent.open("board", "one", input={"title": "Plan"})
    await client.action("chat/canvasesChanged")
    for version, one in older.items():
        assert "canvases" not in await bench.state(one, chat)
        types = [said["action"]["type"] for said in one.actions() if "anvas" in said["action"]["type"]]
        assert bool(types) == (version == "0.4.0"), types
        assert all(kind.startswith("session/canvas") for kind in types)


async def test_it_ends_with_its_session(bench: Bench) -> None:
    client = await bench.client(offer=["1.0.0"])
    session, _, uri, _ = await opened(bench, client)
    await client.ask("disposeSession", session)
    assert (await client.refused("subscribe", uri))["code"] == -32008


@requirement("gen:canvas:url-not-kept")
async def test_the_address_is_in_no_file_and_not_there_after_a_restart_or_without_its_provider(
    bench: Bench, board: Board, tmp_path: Path
) -> None:
    await bench.stop()
    made, data = board_provider(board), tmp_path / "data"
    data.mkdir()
    feature = Canvases([made], timeout=BOUND)
    bench.features, bench.storage = [feature], SqliteStorage(data / "log.db")
    await bench.start()
    client = await bench.client(offer=["1.0.0"])
    session, _, uri, agent = await opened(bench, client)
    old = await bench.client(session, offer=["0.4.0"])
    assert (await bench.state(old, session))["openCanvases"][0]["url"] == URL
    await agent.open("board", "one", input={"title": "Again"})
    await bench.host.spine.store.checkpoint(session)
    await bench.host.spine.store.checkpoint(uri)
    assert (await bench.state(client, uri))["url"] == URL
    feature.remove_provider(made)
    await client.action(lambda said: said["channel"] == uri and "url" not in said["action"].get("canvas", {"url": 1}))
    assert "url" not in await bench.state(client, uri)
    assert "url" not in (await bench.state(old, session))["openCanvases"][0]
    await bench.stop()
    kept = b"".join(path.read_bytes() for path in data.iterdir())
    assert b"Again" in kept
    assert b"board.example" not in kept
    bench.features, bench.storage = [Canvases([], timeout=BOUND)], SqliteStorage(data / "log.db")
    await bench.start()
    client = await bench.client(offer=["1.0.0"])
    assert "url" not in await bench.state(client, uri)
    old = await bench.client(offer=["0.4.0"])
    assert "url" not in (await bench.state(old, session))["openCanvases"][0]


async def test_who_missed_an_address_gets_it_in_a_snapshot(bench: Bench) -> None:
    client = await bench.client(client_id="me", offer=["1.0.0"])
    session, chat = await bench.session(client)
    seen = bench.host.spine.store.committed_head
    other = await bench.client(offer=["1.0.0"])
    agent = await runtime(bench, other, chat) if await other.ask("subscribe", chat) else None
    assert agent is not None
    await client.aclose()
    await agent.open("board", "one", input={"title": "Plan"})
    await bench.host.services.durable()
    back = await bench.connect("me")
    told: Json = await back.ask("reconnect", clientId="me", lastSeenServerSeq=seen, subscriptions=[session, chat])
    assert told["type"] == "snapshot"
    old = await bench.connect("unknown-to-it")
    await old.initialize(session)
    assert (await bench.state(old, session))["openCanvases"][0]["url"] == URL
