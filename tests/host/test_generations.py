"""Clients of newer generations on a real host: what VS Code and others say, and what they are told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from ahpkit.dialects import Generation
from ahpkit.host.agent import Turn
from ahpkit.host.config import HostConfig
from support import requirement
from support.bench import Bench
from support.raw_client import Json, RawClient

NEWEST = ["1.0.0", "0.9.0"]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    bench = Bench(tmp_path)
    await bench.start()
    try:
        yield bench
    finally:
        await bench.stop()


async def client(bench: Bench, *offer: str, client_id: str = "new") -> RawClient:
    raw = await bench.connect(client_id)
    found = await raw.ask(
        "initialize", clientId=client_id, protocolVersions=list(offer), initialSubscriptions=["ahp-root://"]
    )
    assert found["protocolVersion"] in offer
    return raw


def started(turn_id: str = "t1", text: str = "hi") -> Json:
    message = {"text": text, "origin": {"kind": "user"}}
    return {"type": "chat/turnStarted", "turnId": turn_id, "startedAt": "2026-11-15T12:00:00.000Z", "message": message}


def here(bench: Bench) -> str:
    return bench.config.default_directory.as_uri()


async def create(raw: RawClient, bench: Bench, uri: str = "scripted:/4711") -> tuple[str, str]:
    await raw.ask(
        "createSession",
        uri,
        workingDirectories=[bench.config.default_directory.as_uri()],
        config={"isolation": "folder"},
    )
    state = (await raw.ask("subscribe", uri))["snapshot"]["state"]
    chat = state["defaultChat"]
    await raw.ask("subscribe", chat)
    return uri, chat


@requirement("gen:negotiation:highest-offered", "gen:negotiation:real-one", "gen:negotiation:ranges")
@pytest.mark.parametrize(
    ("offer", "chosen"),
    [
        (["0.9.0", "1.0.0"], "1.0.0"),
        (["1.10.0"], "1.10.0"),
        (["0.4.0"], "0.4.0"),
        (["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"], "0.9.0"),
        (["1.0.0", "0.9.0", "0.8.0"], "0.9.0"),
        (["0.8.3", "0.7.9", "0.10.0", "2.0.0"], "0.8.3"),
        (["0.3.0", "0.7.2", "0.6.4"], "0.7.2"),
        (["0.5.9", "0.6.1"], "0.6.1"),
        (["0.5.1", "0.5.0"], "0.5.1"),
        (["0.5.0", "0.4.2"], "0.5.0"),
    ],
)
async def test_the_highest_version_is_spoken(bench: Bench, offer: list[str], chosen: str) -> None:
    raw = await bench.connect("x")
    assert (await raw.ask("initialize", clientId="x", protocolVersions=offer))["protocolVersion"] == chosen


@requirement("gen:negotiation:ranges")
@pytest.mark.parametrize("version", ["2.0.0", "10.0.0", "0.10.0", "0.11.0", "0.3.9", "0.0.4"])
async def test_no_other_version_is_spoken(bench: Bench, version: str) -> None:
    raw = await bench.connect("x")
    refused = await raw.refused("initialize", clientId="x", protocolVersions=[version])
    assert (refused["code"], version in refused["data"]["supportedVersions"]) == (-32005, False)


@requirement("gen:session:flat", "gen:project:channel-kind", "gen:active-clients:before-subscribe")
async def test_a_client_of_1_0_makes_a_session_the_way_vs_code_does(bench: Bench) -> None:
    raw = await client(bench, *NEWEST)
    uri = "scripted:/4711"
    await raw.ask(
        "createSession",
        uri,
        workingDirectories=[bench.config.default_directory.as_uri()],
        config={"isolation": "folder"},
    )
    raw.post(uri, {"type": "session/activeClientSet", "activeClient": {"clientId": "new", "tools": [{"name": "look"}]}})
    state = (await raw.ask("subscribe", uri))["snapshot"]["state"]
    assert {"provider", "title", "status", "lifecycle", "activeClients", "chats"} <= state.keys()
    assert state.keys().isdisjoint({"summary", "createdAt", "modifiedAt", "resource", "canvasRegistry"})
    assert state["config"]["values"] == {}
    if not state["activeClients"]:  # Not durable yet when the snapshot was made: then it follows.
        assert (await raw.action("session/activeClientSet"))["action"]["activeClient"]["clientId"] == "new"
    assert state["defaultChat"].startswith("ahp-chat://default/")
    chat = (await raw.ask("subscribe", state["defaultChat"]))["snapshot"]["state"]
    assert chat["turns"] == []
    await raw.accepted(state["defaultChat"], started())
    ended = await raw.action("chat/turnComplete")
    assert ended["action"]["duration"] >= 0


@requirement("gen:project:channel-kind")
async def test_kinds_of_channels_outlive_a_restart(bench: Bench) -> None:
    raw = await client(bench, *NEWEST)
    uri, chat = await create(raw, bench)
    await raw.accepted(chat, started())
    await raw.action("chat/turnComplete")
    storage = bench.storage
    await bench.stop()
    bench.storage = storage
    await bench.start()
    again = await client(bench, *NEWEST)
    state = (await again.ask("subscribe", chat))["snapshot"]["state"]
    assert [turn["id"] for turn in state["turns"]] == ["t1"]
    assert [one["resource"] for one in (await again.ask("listSessions"))["items"]] == [uri]


@requirement("gen:negotiation:no-renegotiation", "gen:reconnect:projected", "gen:error:no-turn-error")
@requirement("gen:project-state:turn-error")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.2", "0.7.0", "0.8.0", "0.9.0", "1.0.0"])
async def test_a_client_that_comes_back_is_spoken_to_as_before(bench: Bench, version: str) -> None:
    """Also while it is connected: whoever says hello again is refused, and nothing changes."""

    async def script(turn: Turn) -> None:
        raise RuntimeError("boom")

    bench.agent.script = script
    raw = await client(bench, version)
    other = "1.0.0" if version == "0.4.0" else "0.4.0"
    assert "already" in (await raw.refused("initialize", clientId="new", protocolVersions=[other]))["message"]
    uri, chat = await bench.session(raw)
    last = (await raw.accepted(chat, started()))["serverSeq"]
    error = await raw.action("chat/error")
    assert ("error" in error["action"], "part" in error["action"]) == (version < "0.9.0", version != "0.4.0")
    storage = bench.storage
    await bench.stop()
    bench.storage = storage
    await bench.start()
    back = await bench.connect("new")
    params = {"clientId": "new", "lastSeenServerSeq": last, "subscriptions": [uri, chat]}
    back.send({"jsonrpc": "2.0", "id": "again", "method": "reconnect", "params": params})  # VS Code names no channel.
    found = (await back.wait(lambda message: message.get("id") == "again"))["result"]
    assert found["type"] == "replay"
    assert error in found["actions"]
    assert ("summary" in (await back.ask("subscribe", uri))["snapshot"]["state"]) == (version == "0.4.0")
    [turn] = (await bench.state(back, chat))["turns"]
    assert ("error" in turn) == (version < "0.9.0")


def coming_back(client_id: str, **params: object) -> Json:
    """How a client of VS Code's kind comes back: it names no channel."""
    said = {"clientId": client_id, "lastSeenServerSeq": 5, "subscriptions": ["ahp-root://"], **params}
    return {"jsonrpc": "2.0", "id": "again", "method": "reconnect", "params": said}


@requirement("gen:negotiation:no-renegotiation")
@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "0.9.0", "1.0.0"])
async def test_a_client_that_the_host_has_forgotten_is_told_to_begin_anew(bench: Bench, version: str) -> None:
    raw = await bench.connect("who")
    raw.send(coming_back("who"))
    answer = await raw.wait(lambda message: message.get("id") == "again")
    assert answer["error"]["code"] == -32008, "what VS Code understands as forgotten"
    found = await raw.ask("initialize", clientId="who", protocolVersions=[version])
    assert found["protocolVersion"] == version
    await raw.aclose()
    back = await bench.connect("who")
    back.send(coming_back("who"))
    assert "result" in await back.wait(lambda message: message.get("id") == "again")
    session, _ = await bench.session(back)
    assert ("summary" in await bench.state(back, session)) == (version == "0.4.0")


async def test_a_forgotten_client_may_name_its_version(bench: Bench) -> None:
    raw = await bench.connect("ours")
    raw.version = "0.9.3"  # It names it itself.
    raw.send(coming_back("ours", channel="ahp-root://", _meta={"ahpkit/spoken": "0.9.3"}))
    assert "result" in await raw.wait(lambda message: message.get("id") == "again")
    session, _ = await bench.session(raw)
    assert "summary" not in await bench.state(raw, session)


@requirement("gen:errors:unknown-notification")
async def test_settings_of_vs_code_are_answered_and_change_nothing(bench: Bench) -> None:
    raw, other = await client(bench, *NEWEST), await client(bench, *NEWEST, client_id="other")
    raw.send({"jsonrpc": "2.0", "method": "setClientManagedSettingsPermissions", "params": {"permissions": {}}})
    for settings in ({"telemetryLevel": "all"}, {"workspaceTrust": {"enabled": True, "trustedUris": ["file:///"]}}):
        action = {"type": "root/configChanged", "config": settings}
        raw.post("ahp-root://", action, client_seq=0)
        echo = await raw.action(lambda said, settings=settings: said["action"].get("config") == settings)
        assert "rejectionReason" not in echo
    await other.ask("ping")
    assert other.actions("ahp-root://") == []
    assert "config" not in (bench.host.services.state("ahp-root://") or {})


@requirement("gen:active-clients:several")
async def test_two_clients_are_active_and_a_call_goes_to_the_one_that_asked(bench: Bench) -> None:
    offered: list[list[str]] = []

    async def script(turn: Turn) -> None:
        offered.append([tool["name"] for tool in turn.context.tools])
        call = turn.tool_call("look")
        await call.run_by_client(tool_input="{}")

    bench.agent.script = script
    one, two = await client(bench, *NEWEST, client_id="one"), await client(bench, *NEWEST, client_id="two")
    uri, chat = await create(one, bench)
    await two.ask("subscribe", uri)
    await two.ask("subscribe", chat)
    for raw, tools in ((one, ["look", "first"]), (two, ["look", "second"])):
        entry = {"clientId": raw.client_id, "tools": [{"name": name} for name in tools]}
        await raw.accepted(uri, {"type": "session/activeClientSet", "activeClient": entry})
    await two.accepted(chat, started())
    call = (await two.action("chat/toolCallStart"))["action"]
    assert call["contributor"] == {"kind": "client", "clientId": "two"}
    assert {"first", "look", "second"} <= set(offered[0])
    assert offered[0].count("look") == 1
    await two.action("chat/toolCallReady")
    done = {"turnId": "t1", "toolCallId": call["toolCallId"], "result": {"success": True, "pastTenseMessage": "p"}}
    refused = await one.dispatch(chat, {"type": "chat/toolCallComplete", **done})
    assert "another client" in refused["rejectionReason"]
    await two.accepted(chat, {"type": "chat/toolCallComplete", **done})
    await one.action("chat/turnComplete")


@requirement("gen:project-state:session-0-4", "gen:project-action:active-client-0-4", "gen:error:no-turn-error")
async def test_clients_of_three_generations_see_one_session(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.text("half")
        raise RuntimeError("boom")

    bench.agent.script = script
    old = await bench.client("ahp-root://", client_id="old")
    middle, new = await client(bench, "0.7.0", client_id="middle"), await client(bench, *NEWEST)
    session, chat = await bench.session(old)
    for raw in (middle, new):
        await raw.ask("subscribe", session)
        await raw.ask("subscribe", chat)
    await old.accepted(
        session, {"type": "session/activeClientChanged", "activeClient": {"clientId": "old", "tools": []}}
    )
    seen = (await new.action("session/activeClientSet"))["action"]["activeClient"]
    assert seen["clientId"] == "old"
    await old.accepted(chat, {"type": "chat/turnStarted", "turnId": "t1", "message": started()["message"]})
    begun = (await new.action("chat/turnStarted"))["action"]
    assert begun["startedAt"]
    for raw in (old, middle, new):
        error = (await raw.action("chat/error"))["action"]
        assert ("error" in error) == (raw is not new)
        assert ("part" in error) == (raw is not old)
    states = {raw.client_id: (await raw.ask("subscribe", chat))["snapshot"]["state"] for raw in (old, middle, new)}
    assert "error" not in states["new"]["turns"][0]
    assert states["old"]["turns"][0]["error"] == states["middle"]["turns"][0]["error"]


async def test_a_host_can_be_pinned_to_one_generation(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.config = HostConfig(default_directory=tmp_path, spoken=[Generation.V0_9])
    await bench.start()
    try:
        raw = await bench.connect("x")
        refused = await raw.refused("initialize", clientId="x", protocolVersions=["1.0.0"])
        assert refused["code"] == -32005
    finally:
        await bench.stop()


async def test_a_host_that_is_pinned_later_does_not_speak_what_it_spoke_before(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.start()
    try:
        await client(bench, "1.0.0", client_id="x")
        bench.config = HostConfig(default_directory=tmp_path, spoken=[Generation.V0_9])
        await bench.restart()
        back = await bench.connect("x")
        back.send(coming_back("x"))
        assert (await back.wait(lambda message: message.get("id") == "again"))["error"]["code"] == -32008
        assert (await back.refused("initialize", clientId="x", protocolVersions=["1.0.0"]))["code"] == -32005
    finally:
        await bench.stop()
