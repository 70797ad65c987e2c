"""Extensions on the AHP side: advertised, answered, forwarded between agents and clients, never half."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import Turn
from ahpkit.host.extensions import Extension, advertises, check_namespace
from ahpkit.protocol.errors import LocalProtocolError, MethodNotFound
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import BOUND

ROOT = "ahp-root://"
NAME = "example.com/analytics"


async def extended(bench: Bench) -> list[Json]:
    """Restart the bench's host with an analytics extension; what its notification handler hears."""
    heard: list[Json] = []
    await bench.stop()
    await bench.start(lambda host: _register(host.extension(NAME, version="1.0", events=["tool"]), heard))
    return heard


def _register(extension: Extension, heard: list[Json]) -> None:
    @extension.request("summary")
    async def summary(client: Any, params: Json) -> Json:
        await asyncio.sleep(0)
        return {"for": client.client_id, "period": params.get("period")}

    @extension.request("crash")
    def crash(client: Any, params: Json) -> None:
        raise RuntimeError("secret internals")

    @extension.notification("event")
    def event(client: Any, params: Json) -> None:
        heard.append(params)


@requirement("extensibility:capabilities:advertised")
@requirement("extensibility:capabilities:in-capability-meta")
@requirement("extensibility:capabilities:any-announcement-value")
@requirement("extensibility:practice:versioned")
async def test_an_extension_is_advertised_in_meta_of_initialize_and_root(bench: Bench) -> None:
    await extended(bench)
    client = await bench.connect()
    result = await client.initialize(ROOT)
    announced = {"version": "1.0", "events": ["tool"]}
    assert result["_meta"][NAME] == announced
    assert result["snapshots"][0]["state"]["_meta"][NAME] == announced
    assert set(result) <= {
        "protocolVersion",
        "serverSeq",
        "snapshots",
        "defaultDirectory",
        "completionTriggerCharacters",
        "telemetry",
        "_meta",
    }


@requirement("extensibility:methods:request-carries-id")
@requirement("extensibility:methods:answered-under-same-id")
async def test_every_extension_request_is_answered_once_under_its_own_id(bench: Bench) -> None:
    await extended(bench)
    client = await bench.client()
    for number in range(20):
        params = {"period": number}
        client.send({"jsonrpc": "2.0", "id": f"r{number}", "method": f"_{NAME}/summary", "params": params})
    for number in range(20):
        answer = await client.wait(lambda m, number=number: m.get("id") == f"r{number}")
        assert answer["result"] == {"for": client.client_id, "period": number}
    ids = [message["id"] for message in client.received if str(message.get("id", "")).startswith("r")]
    assert len(ids) == len(set(ids)) == 20


@requirement("extensibility:methods:unknown-request-error")
@requirement("extensibility:practice:fails-gracefully")
async def test_unknown_and_failing_extension_requests_get_errors_and_the_connection_goes_on(bench: Bench) -> None:
    await extended(bench)
    client = await bench.client()
    assert (await client.refused("_example.com/unknown/thing"))["code"] == -32601
    crashed = await client.refused(f"_{NAME}/crash")
    assert crashed["code"] == -32603
    assert "secret" not in str(crashed)
    assert await client.ask("ping") is None


@requirement("extensibility:methods:notification-without-id")
@requirement("extensibility:methods:unknown-notification-ignored")
async def test_notifications_are_heard_or_ignored_and_never_answered(bench: Bench) -> None:
    heard = await extended(bench)
    client = await bench.client()
    client.send({"jsonrpc": "2.0", "method": f"_{NAME}/event", "params": {"event": "clicked", "_meta": {"a/b": 1}}})
    client.send({"jsonrpc": "2.0", "method": "_nobody/knows", "params": {}})
    client.send({"jsonrpc": "2.0", "method": "unknownNotification", "params": {}})
    assert await client.ask("ping") is None
    assert heard == [{"event": "clicked", "_meta": {"a/b": 1}}]
    assert [m for m in client.received if "id" in m and m["id"] is None] == []


@requirement("extensibility:naming:namespaced")
@requirement("extensibility:methods:custom-request-name")
@pytest.mark.parametrize("name", ["analytics", "", "_example.com/analytics", "traceparent", "/x", "example.com/"])
def test_names_without_a_namespace_are_refused_at_registration(name: str) -> None:
    with pytest.raises(LocalProtocolError, match="namespace"):
        check_namespace(name)


@requirement("extensibility:naming:method-prefix")
def test_the_method_is_underscore_namespace_slash_feature_and_the_key_the_namespace() -> None:
    extension = Extension(NAME, version=None, capability={})
    extension.request("summary")(lambda client, params: None)
    assert list(extension.requests) == [f"_{NAME}/summary"]
    assert advertises({"_meta": {NAME: {}}}, f"_{NAME}/summary")
    assert advertises({"_meta": {"zed.dev": {"workspace": True}}}, "_zed.dev/workspace/buffers")
    assert not advertises({"_meta": {"zed.dev": {}}}, f"_{NAME}/summary")
    assert not advertises({}, f"_{NAME}/summary")


async def test_one_name_is_registered_once(bench: Bench) -> None:
    bench.host.extension(NAME)
    with pytest.raises(LocalProtocolError, match="already"):
        bench.host.extension(NAME)


async def able(bench: Bench, name: str) -> RawClient:
    """A client that advertises the extension and answers its requests."""
    client = await bench.connect(name)
    await client.initialize(capabilities={"_meta": {NAME: {"version": "1"}}})
    return client


@requirement("extensibility:capabilities:checked-before-call")
@requirement("extensibility:meta:preserved-when-forwarding")
async def test_an_agents_request_goes_to_a_client_that_advertised_it_the_active_one_first(bench: Bench) -> None:
    outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def script(turn: Turn) -> None:
        params = {"depth": 2, "_meta": {"agent.dev/x": 1}}
        outcome.set_result(await turn.chat.extension_request(f"_{NAME}/buffers", params))

    bench.agent.script = script
    plain, first, active = await bench.client(), await able(bench, "first"), await able(bench, "active")
    session, chat = await bench.session(active)
    claim: Json = {"type": "session/activeClientChanged", "activeClient": {"clientId": "active", "tools": []}}
    await active.accepted(session, claim)
    await active.accepted(chat, say("go"))
    request = await active.wait(lambda m: m.get("method") == f"_{NAME}/buffers")
    assert request["params"] == {"depth": 2, "_meta": {"agent.dev/x": 1}, "channel": chat}
    active.send({"jsonrpc": "2.0", "id": request["id"], "result": {"buffers": []}})
    async with asyncio.timeout(BOUND):
        assert await outcome == {"buffers": []}
    for other in (plain, first):
        assert [m for m in other.received if m.get("method", "").startswith("_")] == []


async def test_without_an_able_client_the_agent_gets_method_not_found(bench: Bench) -> None:
    outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def script(turn: Turn) -> None:
        try:
            await turn.chat.extension_request(f"_{NAME}/buffers", {})
        except MethodNotFound as error:
            outcome.set_result(error.code)

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    async with asyncio.timeout(BOUND):
        assert await outcome == -32601
    await client.action("chat/turnComplete")


async def test_an_agents_notification_reaches_the_subscribers_that_advertised_it(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.chat.extension_notification(f"_{NAME}/opened", {"path": "a"})

    bench.agent.script = script
    interested, plain, elsewhere = await able(bench, "interested"), await bench.client(), await able(bench, "elsewhere")
    _, chat = await bench.session(interested)
    await plain.ask("subscribe", chat)
    await interested.accepted(chat, say("go"))
    heard = await interested.notification(f"_{NAME}/opened")
    assert heard == {"path": "a", "channel": chat}
    await plain.action("chat/turnComplete")
    await elsewhere.ask("ping")
    for other in (plain, elsewhere):
        assert [m for m in other.received if m.get("method", "").startswith("_")] == []


@requirement("extensibility:capabilities:core-unaffected")
async def test_a_peer_without_extensions_works_as_usual(bench: Bench, tmp_path: Path) -> None:
    await extended(bench)
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("hello"))
    await client.action("chat/turnComplete")
    assert tmp_path
