"""What nobody here knows yet: fields, values of open enumerations, parts, kinds. Everything survives everywhere."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ahpkit.client import connect
from ahpkit.host.agent import Turn
from ahpkit.protocol.chat.actions import chat_response_part, chat_turn_started
from ahpkit.protocol.registry import COMMANDS
from support import requirement
from support.bench import Bench, say
from support.raw_client import CLIENTS, Json, RawClient

STARTED = "2026-11-15T12:00:00.000Z"
VERSIONS = ("0.4.0", "0.7.0", "0.9.0", "1.0.0")


def start(turn_id: str = "t1", **message: Any) -> Json:
    text = {"text": "hi", "origin": {"kind": "user"}, **message}
    return say("hi", turn_id, startedAt=STARTED) | {"message": text, "xFuture": {"deep": [1, {"er": None}]}}


async def all_versions(bench: Bench) -> tuple[dict[str, RawClient], str, str]:
    clients = {
        version: await bench.client("ahp-root://", client_id=f"v{version}", offer=[version]) for version in VERSIONS
    }
    session, chat = await bench.session(clients["1.0.0"])
    for version, client in clients.items():
        if version != "1.0.0":
            for uri in (session, chat):
                await client.ask("subscribe", uri)
    return clients, session, chat


@requirement("gen:forward:unknown-fields")
@pytest.mark.parametrize("sender", VERSIONS)
async def test_unknown_fields_are_kept_and_sent_on_to_every_version(sockets: Bench, sender: str) -> None:
    clients, _, chat = await all_versions(sockets)
    message: Any = {"mood": "curious", "model": {"id": "small", "flavour": {"a": 1}}}
    attachment = {"type": "simple", "label": "x", "colour": "red"}
    sent = start("t1", **message, attachments=[attachment])
    await clients[sender].accepted(chat, sent)
    for version, client in clients.items():
        echo = (await client.action("chat/turnStarted"))["action"]
        assert echo["xFuture"] == sent["xFuture"], version
        await client.action("chat/turnComplete")
        turn = (await sockets.state(client, chat))["turns"][0]
        assert turn["message"]["mood"] == "curious"
        assert turn["message"]["attachments"][0]["colour"] == "red"
    await sockets.restart()
    again = await sockets.client("ahp-root://", client_id="again", offer=["1.0.0"])
    turn = (await sockets.state(again, chat))["turns"][0]
    assert (turn["message"]["mood"], turn["message"]["model"]["flavour"]) == ("curious", {"a": 1})


@requirement("gen:forward:open-enum")
async def test_unknown_values_of_open_enumerations_survive_state_log_dialects_and_sdk(sockets: Bench) -> None:
    part: Any = {"kind": "hologram", "id": "h1", "content": {"voxels": [1, 2]}, "shape": "cube"}
    floating: Any = {
        "toolCallId": "odd",
        "toolName": "lift",
        "displayName": "Lift",
        "status": "levitating",
        "height": 3,
    }
    odd: Any = {"type": "hyperlink", "label": "a link", "target": "nowhere"}
    result: Any = {"type": "smell", "note": "of coffee"}

    async def script(turn: Turn) -> None:
        say_part = chat_response_part(turn_id=turn.id, part=part)
        sockets.host.services.dispatch(turn.chat.uri, say_part)
        odd_call = chat_response_part(turn_id=turn.id, part={"kind": "toolCall", "toolCall": floating})
        sockets.host.services.dispatch(turn.chat.uri, odd_call)
        call = turn.tool_call("sniff", contributor=cast("Any", {"kind": "robot", "serial": 7}))
        call.running(tool_input="{}", confirmed=cast("Any", "telepathy"))
        call.complete(content=[result])
        turn.text("done")

    sockets.agent.script = script
    clients, session, chat = await all_versions(sockets)
    origin = {"kind": "telegram", "sender": "Ann"}
    begun = chat_turn_started(
        turn_id="t1",
        started_at=STARTED,
        message=cast("Any", {"text": "hi", "origin": origin, "attachments": [odd]}),
    )
    async with connect(sockets.url) as sdk:
        held = await (await sdk.session(session)).chat(chat)
        sockets.host.services.dispatch(chat, begun)
        for version, client in clients.items():
            await client.action("chat/turnComplete")
            shown = (await client.action("chat/responsePart"))["action"]["part"]
            assert shown == part, version
            check(await sockets.state(client, chat), part, odd, origin, result)
        check(cast("Json", held.confirmed), part, odd, origin, result)
        await sockets.restart()
        again = await sockets.client("ahp-root://", client_id="again", offer=["1.0.0"])
        check(await sockets.state(again, chat), part, odd, origin, result)
        exported = await sdk.session(session)
        assert exported.chats[0]["resource"] == chat
    CLIENTS.clear()  # What no version knows is in no schema.


def check(state: Json, part: Json, odd: Json, origin: Json, result: Json) -> None:
    turn = state["turns"][0]
    assert part in turn["responseParts"]
    assert turn["message"]["origin"] == origin
    assert turn["message"]["attachments"] == [odd]
    odd_call, call = [one["toolCall"] for one in turn["responseParts"] if one["kind"] == "toolCall"]
    assert (odd_call["status"], odd_call["height"]) == ("levitating", 3), "also after the end of its turn"
    assert call["contributor"] == {"kind": "robot", "serial": 7}
    assert call["confirmed"] == "telepathy"
    assert call["content"] == [result]


@requirement("gen:forward:meta-on-params")
async def test_meta_is_taken_on_the_params_of_every_command(sockets: Bench) -> None:
    client = await sockets.connect("new")
    meta: Any = {"_meta": {"example.com/unknown": {"deep": [1]}}}
    await client.ask("initialize", clientId="new", protocolVersions=["1.0.0"], **meta)
    uri, chat = "ahp-session:/s", "ahp-chat:/c"
    await client.ask("createSession", uri, **meta)
    await client.ask("createChat", uri, chat=chat, **meta)
    plain = ((await client.ask("listSessions")), (await client.ask("subscribe", chat))["snapshot"]["state"])
    for method in sorted(COMMANDS.keys() - {"initialize", "reconnect"}):  # Whatever comes of it, it is the same.
        without = (await client.call(method, "ahp-chat:/none")).get("error")
        assert (await client.call(method, "ahp-chat:/none", **meta)).get("error") == without, method
    for method, channel, params in (
        ("ping", "ahp-root://", {}),
        ("subscribe", chat, {}),
        ("fetchTurns", chat, {}),
        ("listSessions", "ahp-root://", {}),
        ("completions", chat, {"kind": "userMessage", "text": "x", "offset": 1}),
        ("resolveSessionConfig", "ahp-root://", {}),
        ("moveChat", chat, {"destination": {"kind": "session", "session": uri}}),
        ("disposeChat", chat, {}),
        ("disposeSession", uri, {}),
    ):
        answer = await client.call(method, channel, **params, **meta)
        assert "error" not in answer, method
        if method == "listSessions":
            assert answer["result"] == plain[0]
        if method == "subscribe":
            assert answer["result"]["snapshot"]["state"] == plain[1]


@requirement("gen:forward:implementation-info")
@pytest.mark.parametrize("info", [None, {"name": "Visual Studio Code", "version": "9"}, {"name": "", "title": "x"}])
async def test_names_of_programs_decide_nothing_and_private_things_are_ignored(
    sockets: Bench, info: Json | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ahpkit")
    client = await sockets.connect("new")
    given: Any = {} if info is None else {"clientInfo": info}
    answer = await client.ask("initialize", clientId="new", protocolVersions=["1.0.0"], **given)
    assert answer["serverInfo"]["name"] == "ahpkit"
    assert f"new speaks 1.0.0: {'it gives no name' if info is None else info['name']}" in caplog.messages
    session, chat = await sockets.session(client)
    assert (await client.refused("x-example/ask"))["code"] == -32601
    assert (await client.refused("subscribe", "x-example:/channel"))["code"] in (-32008, -32602)
    client.send({"jsonrpc": "2.0", "method": "x-example/told", "params": {}})
    assert await client.rejected(chat, {"type": "x-example/acted", "value": 1})
    await client.ask("ping")
    assert (await sockets.state(client, session))["lifecycle"] == "ready"
