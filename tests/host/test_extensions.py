"""Extensions on the AHP side: advertised, answered, forwarded between agents and clients, never half."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as ws_connect
from websockets.asyncio.server import serve as ws_serve

from ahpkit.client import connect
from ahpkit.dialects.generations import OUR_ACTIONS, Generation, knows_action
from ahpkit.host.agent import Chat, Turn
from ahpkit.host.clients.agent_extensions import AGENT_CHANNEL, MAX_ANNOUNCEMENT
from ahpkit.host.clients.extensions import Extension
from ahpkit.host.host import Host
from ahpkit.protocol.channels import CHANNELS
from ahpkit.protocol.errors import InternalError, LocalProtocolError, MethodNotFound, RpcError
from ahpkit.protocol.registry import ACTIONS
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
        "serverInfo",
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
    assert len((await client.refused("_" + "x" * 1_000_000))["message"]) < 1000
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


async def restarted(bench: Bench, register: Callable[[Host], None]) -> None:
    await bench.stop()
    await bench.start(register)


async def test_a_name_or_a_method_is_registered_once_and_before_the_host_starts(bench: Bench) -> None:
    def register(host: Host) -> None:
        extension = host.extension(NAME)
        extension.request("summary")(lambda client, params: None)
        with pytest.raises(LocalProtocolError, match="already"):
            extension.request("summary")(lambda client, params: None)
        for taken in (NAME, "ahpkit/host"):
            with pytest.raises(LocalProtocolError, match="already"):
                host.extension(taken)

    await restarted(bench, register)
    with pytest.raises(LocalProtocolError, match="before it starts"):
        bench.host.extension("example.com/late")


def test_an_announcement_that_is_not_json_is_refused_at_registration() -> None:
    with pytest.raises(LocalProtocolError):
        Extension(NAME, version=None, capability={"limits": object()})


async def test_a_class_is_an_extension_and_its_public_methods_are_the_methods(bench: Bench) -> None:
    def register(host: Host) -> None:
        @host.extension(NAME, version="1.0")
        class Analytics:
            def __init__(self) -> None:
                self._seen: list[str] = []

            async def event(self, client: Any, params: Json) -> None:
                self._seen.append(params["event"])

            def summary(self, client: Any, params: Json) -> Json:
                return {"seen": self._seen}

            def _private(self, client: Any, params: Json) -> None: ...

    await restarted(bench, register)
    client = await bench.client()
    client.send({"jsonrpc": "2.0", "method": f"_{NAME}/event", "params": {"event": "clicked"}})
    assert await client.ask(f"_{NAME}/event", event="asked") is None
    assert await client.ask(f"_{NAME}/summary") == {"seen": ["clicked", "asked"]}
    for hidden in ("_private", "__init__"):
        assert (await client.refused(f"_{NAME}/{hidden}"))["code"] == -32601


async def test_whatever_a_handler_does_the_request_is_answered(bench: Bench) -> None:
    started = asyncio.Event()

    def register(host: Host) -> None:
        extension = host.extension(NAME)

        @extension.request("unspeakable")
        def unspeakable(client: Any, params: Json) -> Any:
            return {"a": object()}

        @extension.request("cancelled")
        async def cancelled(client: Any, params: Json) -> None:
            raise asyncio.CancelledError

        @extension.request("coded")
        async def coded(client: Any, params: Json) -> None:
            raise RpcError(-32050, "no quota", {"left": 0})

        @extension.request("slow")
        async def slow(client: Any, params: Json) -> None:
            started.set()
            await asyncio.Event().wait()

    await restarted(bench, register)
    client = await bench.client()
    assert (await client.refused(f"_{NAME}/unspeakable"))["code"] == -32603
    assert (await client.refused(f"_{NAME}/cancelled"))["code"] == -32603
    assert await client.refused(f"_{NAME}/coded") == {"code": -32050, "message": "no quota", "data": {"left": 0}}
    client.send({"jsonrpc": "2.0", "id": "slow", "method": f"_{NAME}/slow", "params": {}})
    async with asyncio.timeout(5):
        await started.wait()
    assert await client.ask("ping") is None


@requirement("extensibility:meta:any-json-values")
async def test_meta_that_is_no_object_is_a_mistake_of_the_caller(bench: Bench) -> None:
    await extended(bench)
    client = await bench.client()
    for wrong in ("x", 5, [1], None):
        refused = await client.refused(f"_{NAME}/summary", _meta=wrong)
        assert refused["code"] == -32602
        assert "_meta: expected object" in refused["message"]
    assert (await client.ask(f"_{NAME}/summary", period="x" * 1_000_000))["period"] == "x" * 1_000_000


async def test_a_notification_handler_may_wait_or_fail(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    heard: asyncio.Queue[Json] = asyncio.Queue()

    def register(host: Host) -> None:
        extension = host.extension(NAME)

        @extension.notification("event")
        async def event(client: Any, params: Json) -> None:
            await asyncio.sleep(0)
            await heard.put(params)

        @extension.notification("fails")
        def fails(client: Any, params: Json) -> None:
            raise RuntimeError("a bug in the handler")

    await restarted(bench, register)
    client = await bench.client()
    client.send({"jsonrpc": "2.0", "method": f"_{NAME}/fails", "params": {}})
    client.send({"jsonrpc": "2.0", "method": f"_{NAME}/event", "params": {"n": 1}})
    async with asyncio.timeout(5):
        assert await heard.get() == {"n": 1}
    assert "a bug in the handler" in caplog.text
    assert await client.ask("ping") is None


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


def asking(bench: Bench, method: str = f"_{NAME}/buffers", **params: Any) -> asyncio.Future[Any]:
    """Have the agent call an extension in its next turn; what came of it."""
    outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def script(turn: Turn) -> None:
        try:
            outcome.set_result(await turn.chat.extension_request(method, params))
        except Exception as error:
            outcome.set_result(error)

    bench.agent.script = script
    return outcome


async def asked_of(client: RawClient) -> Json:
    return await client.wait(lambda m: m.get("method") == f"_{NAME}/buffers")


async def test_those_who_follow_the_chat_are_asked_before_strangers(bench: Bench) -> None:
    outcome = asking(bench)
    await able(bench, "stranger")
    follower = await able(bench, "follower")
    _, chat = await bench.session(follower)
    await follower.accepted(chat, say("go"))
    request = await asked_of(follower)
    follower.send({"jsonrpc": "2.0", "id": request["id"], "result": 1})
    async with asyncio.timeout(5):
        assert await outcome == 1


async def test_a_client_that_leaves_while_it_is_asked_makes_room_for_the_next(bench: Bench) -> None:
    outcome = asking(bench)
    first, second = await able(bench, "first"), await able(bench, "second")
    _, chat = await bench.session(first)
    await first.accepted(chat, say("go"))
    await asked_of(first)
    await first.aclose()
    request = await asked_of(second)
    second.send({"jsonrpc": "2.0", "id": request["id"], "result": "from the second"})
    async with asyncio.timeout(5):
        assert await outcome == "from the second"


async def test_when_the_last_able_client_leaves_the_agent_learns_it_at_once(bench: Bench) -> None:
    outcome = asking(bench)
    client = await able(bench, "only")
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    await asked_of(client)
    await client.aclose()
    async with asyncio.timeout(5):
        error = await outcome
    assert isinstance(error, MethodNotFound)
    assert "has left" in error.message


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"error": {"code": -32077, "message": "no", "data": {"why": "busy"}}}, -32077, "no"),
        ({"result": 1, "error": {"code": 1, "message": "x"}}, -32603, "cannot be read"),
        ({}, -32603, "cannot be read"),
    ],
)
async def test_an_error_or_nonsense_of_the_client_is_the_agents_error_at_once(
    bench: Bench, answer: Json, code: int, words: str
) -> None:
    outcome = asking(bench)
    client, other = await able(bench, "asked"), await able(bench, "other")
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    request = await asked_of(client)
    client.send({"jsonrpc": "2.0", "id": request["id"], **answer})
    async with asyncio.timeout(5):
        error = await outcome
    assert isinstance(error, RpcError)
    assert (error.code, words in error.message) == (code, True)
    assert await client.ask("ping") is None
    assert [m for m in other.received if m.get("method", "").startswith("_")] == []


async def test_a_client_that_never_answers_is_given_up_on(bench: Bench) -> None:
    await bench.stop()
    bench.config = replace(bench.config, extension_patience=0.01)
    await bench.start()
    outcome = asking(bench)
    client = await able(bench, "silent")
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    async with asyncio.timeout(5):
        error = await outcome
    assert isinstance(error, InternalError)
    assert "silent did not answer" in error.message


async def test_channel_is_the_chat_and_what_the_agent_said_there_is_kept_in_meta(bench: Bench) -> None:
    asking(bench, channel="mine", sessionId="acp-1", _meta={"agent.dev/x": 1})
    client = await able(bench, "asked")
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    meta = {"agent.dev/x": 1, AGENT_CHANNEL: "mine"}
    assert (await asked_of(client))["params"] == {"sessionId": "acp-1", "channel": chat, "_meta": meta}


@requirement("extensibility:capabilities:advertised")
async def test_an_agent_sees_what_it_can_call_and_the_closest_clients_word_counts(bench: Bench) -> None:
    def register(host: Host) -> None:
        host.extension("example.com/private", version="1")
        host.extension("example.com/shared", version="2").agent_request("fetch")(lambda chat, params: None)

    seen: list[Json] = []

    async def script(turn: Turn) -> None:
        seen.append(turn.chat.extensions)

    await restarted(bench, register)
    bench.agent.script = script
    clients: list[RawClient] = []
    for name in ("close", "far"):
        clients.append(await bench.connect(name))
        meta = {NAME: name, f"{name}.dev": True, "example.com/off": False, "bare": 1, "a/b": "x" * MAX_ANNOUNCEMENT}
        meta["ahpkit/unsaved-text"] = True
        await clients[-1].initialize(capabilities={"_meta": meta})
    _, chat = await bench.session(clients[0])
    await clients[0].accepted(chat, say("go"))
    await clients[0].action("chat/turnComplete")
    shared = {"example.com/shared": {"version": "2"}}
    assert seen == [{NAME: "close", "close.dev": True, "far.dev": True, **shared}]


async def test_an_agent_calls_the_hosts_own_extension_where_that_serves_agents(bench: Bench) -> None:
    heard: list[tuple[str, Json]] = []

    def register(host: Host) -> None:
        extension = host.extension(NAME)

        @extension.agent_request("fetch")
        async def fetch(chat: Chat, params: Json) -> Json:
            return {"chat": chat.uri, **params}

        @extension.agent_notification("opened")
        def opened(chat: Chat, params: Json) -> None:
            heard.append((chat.uri, params))

    await restarted(bench, register)
    outcome = asking(bench, f"_{NAME}/fetch", n=1)
    client = await able(bench, "able")
    assert (await client.refused(f"_{NAME}/fetch"))["code"] == -32601
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    async with asyncio.timeout(5):
        assert await outcome == {"chat": chat, "n": 1}

    async def script(turn: Turn) -> None:
        turn.chat.extension_notification(f"_{NAME}/opened", {"path": "a"})

    bench.agent.script = script
    await client.accepted(chat, say("again", turn_id="second"))
    assert (await client.notification(f"_{NAME}/opened"))["path"] == "a"
    assert heard == [(chat, {"path": "a"})]


async def test_what_a_client_announced_still_holds_after_a_reconnect(bench: Bench) -> None:
    outcome = asking(bench)
    client = await able(bench, "away")
    _, chat = await bench.session(client)
    await client.aclose()
    back = await bench.connect("away")
    await back.ask("reconnect", clientId="away", lastSeenServerSeq=0, subscriptions=[chat])
    await back.accepted(chat, say("go"))
    request = await asked_of(back)
    back.send({"jsonrpc": "2.0", "id": request["id"], "result": "here"})
    async with asyncio.timeout(5):
        assert await outcome == "here"


@pytest.mark.parametrize("said", [{}, {"_meta": {}}, "x", [1], {"_meta": "x"}])
async def test_a_reconnect_may_announce_nothing_or_nonsense(bench: Bench, said: Any) -> None:
    outcome = asking(bench)
    plain = await bench.client()
    _, chat = await bench.session(plain)
    back = await bench.connect("away")
    again = {"ahpkit/capabilities": said}
    await back.ask("reconnect", clientId="away", lastSeenServerSeq=0, subscriptions=[], _meta=again)
    await plain.accepted(chat, say("go"))
    async with asyncio.timeout(5):
        assert isinstance(await outcome, MethodNotFound)


async def test_what_an_agent_announces_is_in_root_state_as_soon_as_it_is_known(bench: Bench) -> None:
    client = await bench.client(ROOT)
    bench.agent.meta = {"capabilities": {"_meta": {NAME: {"version": "1.0"}}}}
    bench.agent.changed()
    [agent] = (await client.action("root/agentsChanged"))["action"]["agents"]
    assert agent["_meta"] == {"ahpkit/agent": bench.agent.meta}
    assert (await bench.state(client, ROOT))["agents"] == [agent]


@requirement("extensibility:capabilities:core-unaffected")
async def test_a_peer_without_extensions_works_as_usual(bench: Bench, tmp_path: Path) -> None:
    await extended(bench)
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("hello"))
    await client.action("chat/turnComplete")
    assert tmp_path


VERSIONS = ("0.4.0", "0.7.0", "0.8.0", "0.9.0", "1.0.0")


@requirement("gen:forward:x-prefix")
@pytest.mark.parametrize("version", VERSIONS)
async def test_private_names_of_others_are_not_understood_and_do_no_harm(sockets: Bench, version: str) -> None:
    client = await sockets.client(ROOT, client_id="me", offer=[version])
    session, chat = await sockets.session(client)
    for method in ("x-acme/do", "x-do", "x-", "x-ahpkit/none/such", "x-initialize", "x-subscribe"):
        assert (await client.refused(method, session))["code"] == -32601, method
    client.send({"jsonrpc": "2.0", "method": "x-acme/heard", "params": {"channel": chat, "odd": [1]}})
    client.send({"jsonrpc": "2.0", "method": "x-", "params": {}})
    for action in ({"type": "x-acme/did", "deep": {"a": [1]}}, {"type": "x-chat/delta", "turnId": "t"}):
        assert "unknown action type" in await client.rejected(chat, action)
    assert (await client.refused("subscribe", "x-acme:/thing"))["code"] == -32008
    assert "unknown action type" in await client.rejected("x-acme:/thing", {"type": "x-acme/did"})
    await client.accepted(chat, say("hi", startedAt="2026-11-15T12:00:00.000Z"))
    await client.action("chat/turnComplete")


@requirement("gen:forward:x-prefix")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_private_method_of_ours_begins_with_x(sockets: Bench, version: str) -> None:
    """Or with the underscore of the extension guide: both name the same method."""
    heard = await extended(sockets)
    client = await sockets.client(ROOT, client_id="me", offer=[version])
    for prefix in ("x-", "_"):
        assert await client.ask(f"{prefix}ahpkit/rules/list") == {"rules": []}
        assert (await client.ask(f"{prefix}{NAME}/summary", period="day"))["period"] == "day"
        client.send({"jsonrpc": "2.0", "method": f"{prefix}{NAME}/event", "params": {"prefix": prefix}})
    await client.ask("ping")
    assert [params["prefix"] for params in heard] == ["x-", "_"]


@requirement("gen:forward:x-prefix")
async def test_our_client_says_x_and_ignores_what_it_does_not_know(sockets: Bench) -> None:
    said: list[str] = []

    async def heard(connection: Any) -> None:
        """Stands between the client and the host, and hears what the client asks for."""
        there = await ws_connect(sockets.url)

        async def back() -> None:
            async for message in there:
                await connection.send(message)

        copying = asyncio.create_task(back())
        try:
            async for message in connection:
                said.append(json.loads(message).get("method", ""))
                await there.send(message)
        finally:
            copying.cancel()
            await there.close()

    async with ws_serve(heard, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as client:
            session = await client.create_session()
            chat = await session.chat()
            assert await client.rules() == []
            news: Any = {"channel": ROOT, "odd": 1}
            sockets.host.clients.to_root("x-acme/news", news)
            assert await chat.ask("hi") == "You said: hi"
    assert "x-ahpkit/rules/list" in said
    assert not any(method.startswith("_") for method in said)


@requirement("gen:forward:x-prefix")
def test_we_have_no_private_actions_and_no_private_channels() -> None:
    """Everything we say is of the protocol, or of the canvas model that was specified with it."""
    assert {type for type in ACTIONS if not any(knows_action(each, type) for each in Generation)} == OUR_ACTIONS
    schemes = {channel.scheme.replace("\\", "") for channel in CHANNELS.values()}
    assert all(scheme.startswith("ahp-") or scheme == "mcp" for scheme in schemes)
