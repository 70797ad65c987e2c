"""A real host and clients that send what nobody should: each gets a clear answer, and nobody else notices."""

from __future__ import annotations

import json
import random

import pytest

from support import requirement
from support.flow import open_session, say, state_of, title
from support.process import HostProcess
from support.raw_client import Json, RawClient
from transports.raw import masked, raw

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = "ahp-root://"
PING = b'{"jsonrpc":"2.0","id":"alive","method":"ping","params":{"channel":"ahp-root://"}}'


async def alive(client: RawClient) -> None:
    """The connection is served as if nothing had happened."""
    client.received.clear()
    client.send_bytes(PING)
    assert (await client.wait(lambda message: message.get("id") == "alive"))["result"] is None


# -- messages -----------------------------------------------------------------------------------------------------


@requirement("core:wire:jsonrpc-error-codes")
@requirement("core:wire:no-batches")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e999}}', -32700),
        (b"[" * 100_000, -32700),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, -32700),
        (b"[]", -32600),
        (b"[" + PING + b"]", -32600),
        (b"null", -32600),
        (b'"ping"', -32600),
        (b"42", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"noSuchMethod"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"channel":7}}', -32602),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_a_malformed_message_is_answered_and_the_connection_goes_on(
    host: HostProcess, data: bytes, code: int
) -> None:
    client = await host.client()
    client.received.clear()
    client.send_bytes(data)
    answer = await client.wait(lambda message: "error" in message)
    assert answer["error"]["code"] == code
    assert answer["error"]["message"]
    await alive(client)
    await client.aclose()


async def test_answers_to_nothing_and_unknown_notifications_are_ignored(host: HostProcess) -> None:
    client = await host.client()
    messages: list[Json] = [
        {"id": 999, "result": {}},
        {"id": "x", "result": {}},
        {"id": 1, "error": {"code": 1, "message": "no"}},
        {"method": "noSuchNotification"},
        {"method": "_no/such", "params": {"channel": ROOT}},
        {"method": "unsubscribe"},
        {"method": "unsubscribe", "params": {"channel": ["x"]}},
        {"method": "dispatchAction", "params": {"channel": ROOT}},
    ]
    for message in messages:
        client.send({"jsonrpc": "2.0", **message})
    await alive(client)
    await client.aclose()


@requirement("core:wire:ids")
@pytest.mark.parametrize("request_id", ["", "a", "1", 0, -1, 2**63, 10**40, "\u0000", "ü" * 1000])
async def test_any_id_comes_back_as_it_was(host: HostProcess, request_id: str | int) -> None:
    client = await host.client()
    client.send({"jsonrpc": "2.0", "id": request_id, "method": "ping", "params": {"channel": ROOT}})
    await client.wait(lambda message: message.get("id") == request_id and "result" in message)
    await client.aclose()


async def test_an_id_in_use_is_refused_and_the_first_request_is_answered(host: HostProcess) -> None:
    client = await host.client()
    await client.ask("createSession", "ahp-session:/files", workingDirectory=host.home.as_uri())
    params: Json = {"channel": ROOT, "uri": host.home.as_uri()}
    answers: list[Json] = []
    for attempt in range(50):  # The first may be answered before the second is read: then there is nothing to refuse.
        request: Json = {"jsonrpc": "2.0", "id": f"twice-{attempt}", "method": "resourceList", "params": params}
        client.transport.write(client.transport.frame(json.dumps(request).encode()) * 2)
        answers = await both_answers(client, request["id"])
        if any("error" in answer for answer in answers):
            break
    [refused] = [answer for answer in answers if "error" in answer]
    assert "in use" in refused["error"]["message"]
    assert any("result" in answer for answer in answers)
    await client.aclose()


async def both_answers(client: RawClient, request_id: str) -> list[Json]:
    """The two answers to two requests with one id."""

    def received() -> list[Json]:
        return [message for message in client.received if message.get("id") == request_id]

    await client.wait(lambda message: len(received()) == 2)
    return received()


async def test_an_action_sent_twice_is_applied_once_and_echoed_twice(host: HostProcess) -> None:
    client = await host.client()
    session, _ = await open_session(client)
    for _ in range(2):
        client.post(session, title("once"), client_seq=777)
    await client.ask("ping")
    echo = await client.action(lambda said: said.get("origin", {}).get("clientSeq") == 777)
    await client.wait(lambda message: message.get("params") == echo and message is not client.received[0])
    follower = await client.accepted(session, title("next"))
    assert follower["serverSeq"] == echo["serverSeq"] + 2, "between them is only the new title of the only chat"
    await client.aclose()


@requirement("core:connection:before-initialize")
async def test_before_the_handshake_only_its_methods_are_served(host: HostProcess) -> None:
    client = await host.connect()
    for method in ("listSessions", "subscribe", "createSession", "noSuchMethod"):
        assert (await client.refused(method))["code"] == -32600
    client.post(ROOT, {"type": "root/configChanged", "config": {}})
    assert await client.ask("ping") is None
    await client.initialize()
    assert (await client.refused("initialize", protocolVersions=["0.4.0"], clientId="again"))["code"] == -32600
    await client.aclose()


# -- frames -------------------------------------------------------------------------------------------------------


async def test_a_message_over_the_limit_ends_that_connection_only(host: HostProcess) -> None:
    other = await host.client(client_id="other")
    client = await host.client(client_id="big")
    client.send_bytes(b'"' + b"x" * (16 * 1024 * 1024) + b'"')
    assert (await client.wait_closed()).code == 1009
    await alive(other)
    await other.aclose()


async def test_a_frame_that_only_claims_to_be_huge_is_refused_by_its_head(host: HostProcess) -> None:
    async with raw(host.port) as client:
        await client.upgrade(Authorization=f"Bearer {host.token}")
        client.send(b"\x81\xff" + (1 << 40).to_bytes(8, "big") + b"\0\0\0\0")
        code, reason = await client.close_frame()
    assert code == 1009
    assert reason


async def test_a_message_just_below_the_limit_is_served(host: HostProcess) -> None:
    client = await host.client()
    await client.ask("ping", _meta={"padding": "x" * (15 * 1024 * 1024)})
    await client.aclose()


@requirement("core:wire:one-message-per-frame")
async def test_binary_and_broken_frames_end_that_connection_with_a_reason(host: HostProcess) -> None:
    for frames, code in ((masked(0x82, PING), 1003), (masked(0x83, b"x"), 1002), (masked(0xC1, b"x"), 1002)):
        async with raw(host.port) as client:
            await client.upgrade(Authorization=f"Bearer {host.token}")
            client.send(frames)
            found, reason = await client.close_frame()
            assert found == code
            assert reason
    async with raw(host.port) as client:
        client.send(b"\x16\x03\x01 this is not HTTP \r\n\r\n")
        await client.reader.read()
    await alive(await host.client())


# -- content ------------------------------------------------------------------------------------------------------


def nested(depth: int) -> Json:
    value: Json = {"bottom": True}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [10, 150, 190])
async def test_deep_values_reach_other_clients_and_a_restart_of_the_subscription(host: HostProcess, depth: int) -> None:
    client, other = await host.client(client_id="one"), await host.client(client_id="two")
    _, chat = await open_session(client)
    await other.ask("subscribe", chat)
    action = say("deep")
    action["message"]["_meta"] = nested(depth)
    await client.accepted(chat, action)
    seen = await other.action("chat/turnStarted")
    assert seen["action"]["message"]["_meta"] == nested(depth)
    await other.action("chat/turnComplete")
    assert (await state_of(other, chat))["turns"][0]["message"]["_meta"] == nested(depth)
    await client.aclose()
    await other.aclose()


@pytest.mark.parametrize(
    "value",
    ["1e400", "9" * 5_000, "[" * 300 + "]" * 300, "NaN", "[1, -Infinity]", f'"{"x" * 1_100_000}\\ud800 \\\\ud800"'],
    ids=["range", "digits", "depth", "no number", "no end", "half a character"],
)
@pytest.mark.parametrize("spelling", ["7", "7.0", "70e-1"])
async def test_what_holds_a_value_that_cannot_be_read_is_refused_under_its_id_or_number(
    host: HostProcess, value: str, spelling: str
) -> None:
    """Whoever asks gets an answer to that question, although the rest of it is not read."""
    client = await host.client()
    session, _ = await open_session(client)
    for id, told in (('"q"', "q"), (spelling, 7)):
        params = f'{{"_meta":{{"x":{value}}}}}'
        client.send_bytes(f'{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{params}}}'.encode())
        answer = await client.wait(lambda message, told=told: message.get("id") == told and "error" in message)
        assert answer["error"]["code"] == -32700
    action = f'{{"type":"session/titleChanged","title":"t","_meta":{{"x":{value}}}}}'
    params = f'{{"channel":"{session}","clientSeq":{spelling},"action":{action}}}'
    client.send_bytes(f'{{"jsonrpc":"2.0","method":"dispatchAction","params":{params}}}'.encode())
    refused = await client.action(lambda said: said.get("origin", {}).get("clientSeq") == 7)
    assert "Parse error" in refused["rejectionReason"]
    early = await host.connect("early")
    early.send_bytes(f'{{"jsonrpc":"2.0","method":"dispatchAction","params":{params}}}'.encode())
    assert (await early.wait(lambda message: "error" in message))["id"] is None
    await early.aclose()
    await client.aclose()


async def test_what_is_nested_too_deeply_is_refused_by_itself(host: HostProcess) -> None:
    client = await host.client()
    session, _ = await open_session(client)
    assert "nested more than 200 levels" in await client.rejected(session, {**title("deep"), "_meta": nested(300)})
    await client.accepted(session, title("flat"))
    await client.aclose()


async def test_half_a_character_in_a_title_becomes_the_replacement_character_for_everyone(host: HostProcess) -> None:
    client, other = await host.client(client_id="one"), await host.client(ROOT, client_id="two")
    session, _ = await open_session(client)
    await other.ask("subscribe", session)
    params = b'{"channel":"%b","clientSeq":50,"action":' % session.encode()
    action = b'{"type":"session/titleChanged","title":"cut \\ud83d off"}'
    client.send_bytes(b'{"jsonrpc":"2.0","method":"dispatchAction","params":' + params + action + b"}}")
    seen = await other.action("session/titleChanged")
    assert seen["action"]["title"] == "cut \ufffd off"
    assert (await state_of(other, session))["summary"]["title"] == "cut \ufffd off"
    sessions = (await client.ask("listSessions"))["items"]
    assert "cut \ufffd off" in [item["title"] for item in sessions]
    await client.aclose()
    await other.aclose()


async def test_a_megabyte_of_text_goes_round_unchanged(host: HostProcess) -> None:
    text = "".join(random.Random(1).choices('aä€😀"\\\u0000', k=600_000))
    assert len(text.encode()) > 1_000_000
    client, other = await host.client(client_id="one"), await host.client(client_id="two")
    _, chat = await open_session(client)
    await other.ask("subscribe", chat)
    await client.accepted(chat, say(text))
    assert (await other.action("chat/turnStarted"))["action"]["message"]["text"] == text
    await other.action("chat/turnComplete")
    turn = (await state_of(other, chat))["turns"][0]
    assert turn["message"]["text"] == text
    await client.aclose()
    await other.aclose()
