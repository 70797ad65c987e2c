"""Canvases as clients of 1.0 see them: a list in a chat, a channel for each, and addresses that nothing keeps."""

from __future__ import annotations

from pathlib import Path

from ahpkit.canvas import Canvases
from ahpkit.canvas.released import canvas_uri
from ahpkit.host.agent import CanvasRuntime
from ahpkit.log.sqlite import SqliteStorage
from support import requirement
from support.bench import Bench
from support.canvases import EXTENSION, Board, board_provider, runtime
from support.raw_client import Json, RawClient
from support.waiting import BOUND

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
