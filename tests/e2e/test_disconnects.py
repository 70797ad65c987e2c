"""Clients of a real host that leave in the middle of everything: what they began is whole, or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.protocol.meta_keys import MISSED
from support.flow import open_session, remark, say, state_of, title
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = "ahp-root://"
CALCULATE = '/tool calculate {"expression": "6 * 7"}'


def ask(client: RawClient, request_id: str, method: str, channel: str, **params: object) -> None:
    """Send a request and do not wait for its answer."""
    request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"channel": channel, **params}}
    client.send(request)


def leave(client: RawClient) -> None:
    """Be gone, with whatever was on its way in either direction."""
    client.transport.abort()


async def ready(client: RawClient, session: str) -> str:
    """Wait until a session is ready; its chat."""
    state = await state_of(client, session)
    if state["lifecycle"] == "creating":
        await client.action(lambda said: said["channel"] == session and said["action"]["type"] == "session/ready")
    assert state["defaultChat"] in [entry["resource"] for entry in state["chats"]]
    return state["defaultChat"]


async def whole(client: RawClient, session: str) -> None:
    """A session is ready, has its chat, takes a message and answers it."""
    chat = await ready(client, session)
    await client.ask("subscribe", chat)
    await client.accepted(chat, say("are you there?", f"probe-{session}"))
    await client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")


async def test_in_the_middle_of_create_session(host: HostProcess) -> None:
    watcher = await host.client(ROOT, client_id="watcher")
    for number in range(20):
        client = await host.client(client_id="leaver")
        ask(client, "c", "createSession", f"ahp-session:/left-{number}")
        if number % 2:
            await client.wait(lambda message: message.get("id") == "c")
        leave(client)
    there = [item["resource"] for item in (await watcher.ask("listSessions"))["items"]]
    # Those that were answered are there; the others may or may not have arrived.
    assert {f"ahp-session:/left-{number}" for number in range(1, 20, 2)} <= set(there)
    for uri in there:
        await whole(watcher, uri)
        await watcher.ask("disposeSession", uri)
    await watcher.aclose()


async def test_in_the_middle_of_a_turn(host: HostProcess) -> None:
    watcher, client = await host.client(client_id="watcher"), await host.client(client_id="leaver")
    _, chat = await open_session(client)
    await watcher.ask("subscribe", chat)
    client.post(chat, say("/stream 2000"))
    await client.action("chat/delta")
    leave(client)
    await watcher.action("chat/turnComplete")
    turn = (await state_of(watcher, chat))["turns"][0]
    assert turn["state"] == "complete"
    streamed = "".join(s["action"]["content"] for s in watcher.actions(chat) if s["action"]["type"] == "chat/delta")
    assert turn["responseParts"][0]["content"] == streamed
    await watcher.aclose()


async def test_in_the_middle_of_an_approval_another_client_decides(host: HostProcess) -> None:
    watcher, client = await host.client(client_id="watcher"), await host.client(client_id="leaver")
    _, chat = await open_session(client)
    await watcher.ask("subscribe", chat)
    client.post(chat, say(CALCULATE))
    call = (await client.action("chat/toolCallReady"))["action"]["toolCallId"]
    leave(client)
    approve = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": call, "approved": True}
    await watcher.accepted(chat, {**approve, "confirmed": "user-action", "selectedOptionId": "allow"})
    await watcher.action("chat/turnComplete")
    done = next(p for p in (await state_of(watcher, chat))["turns"][0]["responseParts"] if p["kind"] == "toolCall")
    assert done["toolCall"]["status"] == "completed"
    await watcher.aclose()


async def test_right_after_its_own_approval(host: HostProcess) -> None:
    """Whether the approval arrived or not: the call ran and was approved, or waits and was not."""
    watcher = await host.client(client_id="watcher")
    for _ in range(10):
        client = await host.client(client_id="leaver")
        _, chat = await open_session(client)
        await watcher.ask("subscribe", chat)
        client.post(chat, say(CALCULATE))
        call = (await client.action("chat/toolCallReady"))["action"]["toolCallId"]
        approve = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": call, "approved": True}
        client.post(chat, {**approve, "confirmed": "user-action"})
        leave(client)
        await watcher.dispatch(chat, {**approve, "confirmed": "user-action"})
        await watcher.action(lambda said, chat=chat: said["channel"] == chat and is_over(said))
        confirmed = [s for s in watcher.actions(chat) if s["action"]["type"] == "chat/toolCallConfirmed"]
        assert len([said for said in confirmed if "rejectionReason" not in said]) == 1
    await watcher.aclose()


def is_over(said: Json) -> bool:
    return said["action"]["type"] == "chat/turnComplete"


async def test_in_the_middle_of_a_question_another_client_answers(host: HostProcess) -> None:
    watcher, client = await host.client(client_id="watcher"), await host.client(client_id="leaver")
    _, chat = await open_session(client)
    await watcher.ask("subscribe", chat)
    client.post(chat, say("/ask"))
    request = (await client.action("chat/inputRequested"))["action"]["request"]
    leave(client)
    await watcher.accepted(chat, {"type": "chat/inputCompleted", "requestId": request["id"], "response": "decline"})
    await watcher.action("chat/turnComplete")
    await watcher.aclose()


async def test_in_the_middle_of_a_reconnect_it_may_come_back_again_and_again(host: HostProcess) -> None:
    writer, client = await host.client(client_id="writer"), await host.client(client_id="traveller")
    session, _ = await open_session(writer)
    seen = (await client.ask("subscribe", session))["snapshot"]["fromSeq"]
    leave(client)
    echoes = [await writer.accepted(session, title(f"{number}" * 1000)) for number in range(300)]
    params: Json = {"clientId": "traveller", "lastSeenServerSeq": seen, "subscriptions": [session]}
    for _ in range(20):
        back = await host.connect("traveller")
        ask(back, "r", "reconnect", ROOT, **params)
        leave(back)
    back = await host.connect("traveller")
    result = await back.ask("reconnect", **params, _meta={MISSED: "actions"})
    assert [said for said in result["actions"] if "origin" in said] == echoes
    live = await writer.accepted(session, title("live"))
    await back.action(lambda said: said == live)
    await back.aclose()
    await writer.aclose()


async def test_a_client_id_moves_to_the_newest_connection(host: HostProcess) -> None:
    clients = [await host.client(client_id="same") for _ in range(5)]
    for old in clients[:-1]:
        assert "connected again" in (await old.wait_closed()).reason
    assert await clients[-1].ask("ping") is None
    await clients[-1].aclose()


async def test_in_the_middle_of_a_huge_snapshot(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(client_id="writer")
        session, _ = await open_session(client)
        notes = f"{session}/annotations"
        await client.ask("subscribe", notes)
        await client.accepted(notes, remark("x" * 8_000_000))
        reader = await host.client(notes, client_id="reader")
        await reader.aclose()
        before = host.memory
        for number in range(20):
            leaver = await host.client(client_id=f"leaver-{number}")
            ask(leaver, "s", "subscribe", notes)
            leave(leaver)
        await client.accepted(notes, remark("small again"))
        reader = await host.client(client_id="reader")
        assert (await state_of(reader, notes))["annotations"][0]["entries"][0]["text"] == "small again"
        assert host.memory - before < 100_000_000  # Three snapshots at once, and their copies; not twenty.
        await client.aclose()
        await reader.aclose()


async def test_at_every_single_message_of_a_conversation(host: HostProcess) -> None:
    """Cut after the first, the second, … message that comes in: the session is whole for whoever looks next."""
    watcher = await host.client(client_id="watcher")
    cut_after, finished = 1, False
    while not finished:
        uri = f"ahp-session:/cut-{cut_after}"
        client = await host.client(client_id=f"leaver-{cut_after}")
        finished = await _converse(client, uri, cut_after)
        leave(client)
        if uri in [item["resource"] for item in (await watcher.ask("listSessions"))["items"]]:
            await _let_it_end(watcher, uri)
            await whole(watcher, uri)
            await watcher.ask("disposeSession", uri)
        cut_after += 1
    assert cut_after > 15
    await watcher.aclose()


async def _converse(client: RawClient, uri: str, limit: int) -> bool:
    """A conversation that stops once `limit` messages came in; True when it came to its end before."""
    client.received.clear()

    async def wait(found: str) -> Json:
        return await client.wait(lambda message: len(client.received) >= limit or _matches(message, found))

    ask(client, "create", "createSession", uri)
    ask(client, "look", "subscribe", uri)
    answer = await wait("look")
    if len(client.received) >= limit or "result" not in answer:
        return False
    chat = answer["result"]["snapshot"]["state"]["defaultChat"]
    ask(client, "chat", "subscribe", chat)
    steps = [("chat/turnComplete", say("hello", "one")), ("chat/toolCallReady", say(CALCULATE, "two"))]
    for awaited, action in steps:
        client.post(chat, action)
        await wait(awaited)
        if len(client.received) >= limit:
            return False
    return True


def _matches(message: Json, found: str) -> bool:
    if message.get("id") == found:
        return True
    return message.get("method") == "action" and message["params"]["action"]["type"] == found


async def _let_it_end(watcher: RawClient, uri: str) -> None:
    """Cancel the turn that the client left behind, if there is one."""
    chat = await ready(watcher, uri)
    await watcher.accepted(uri, title("behind it"))  # What the client sent last is durable now, and so in the state.
    turn = (await state_of(watcher, chat)).get("activeTurn")
    if turn is not None:
        await watcher.dispatch(chat, {"type": "chat/turnCancelled", "turnId": turn["id"]})
