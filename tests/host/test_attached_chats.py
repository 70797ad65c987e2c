"""Chats that are attached to messages: pinned, refused, empty, not expanded further. On a host behind real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig
from ahpkit.agents.python import agent
from ahpkit.client import connect
from ahpkit.host.agent import Turn
from ahpkit.protocol.chat.actions import chat_turn_started
from ahpkit.testing.fake_model import FakeModel
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.scripted_acp import Scripted

STARTED = "2026-11-15T12:00:00.000Z"


def attached(chat: str, **more: Any) -> Json:
    return {"type": "chat", "label": "the other chat", "resource": chat, **more}


def start(text: str, turn_id: str, *attachments: Json) -> Json:
    message = {"text": text, "origin": {"kind": "user"}, **({"attachments": list(attachments)} if attachments else {})}
    return say(text, turn_id, startedAt=STARTED) | {"message": message}


def queued(*attachments: Json) -> Json:
    return {
        "type": "chat/pendingMessageSet",
        "kind": "queued",
        "id": "q",
        "message": start("x", "x", *attachments)["message"],
    }


async def run_turn(client: RawClient, chat: str, action: Json) -> None:
    await client.accepted(chat, action)
    await client.action(
        lambda said: (
            said["channel"] == chat
            and said["action"]["type"] == "chat/turnComplete"
            and said["action"]["turnId"] == action["turnId"]
        )
    )


def read(turn: Turn) -> str:
    """What the agent reads of the first attachment."""
    items: Any = turn.message.get("attachments")
    item: Json = items[0]
    assert item["type"] == "simple"
    return item["modelRepresentation"]


async def two_chats(bench: Bench, version: str = "1.0.0") -> tuple[RawClient, str, str]:
    """A client and chats of two sessions."""
    client = await bench.client("ahp-root://", client_id="new", offer=[version])
    _, one = await bench.session(client)
    _, other = await bench.session(client)
    return client, one, other


@requirement("gen:attachment:chat-pinned")
@pytest.mark.parametrize("version", ["0.7.0", "0.9.0", "1.0.0"])
async def test_an_attached_chat_ends_where_it_was_when_the_message_was_accepted(sockets: Bench, version: str) -> None:
    client, chat, other = await two_chats(sockets, version)
    for number in (1, 2):
        await run_turn(client, other, start(f"fact {number}", f"o{number}"))

    async def waits(turn: Turn) -> None:
        await turn.wait_steering()

    sockets.agent.script = waits
    await client.accepted(chat, start("wait", "t1"))
    await client.accepted(chat, queued(attached(other)))
    pending = (await sockets.state(client, chat))["queuedMessages"][0]["message"]["attachments"][0]
    assert pending["endTurn"] == "o2"

    async def done(turn: Turn) -> None:
        turn.text("ok")

    sockets.agent.script = done
    await run_turn(client, other, start("fact 3", "o3"))
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
    await client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")
    told = read(sockets.agent.turns[-1])
    assert "fact 1" in told
    assert "You said: fact 2" in told
    assert "fact 3" not in told
    await run_turn(client, chat, start("again", "t3", attached(other, endTurn="o1")))
    assert "fact 2" not in read(sockets.agent.turns[-1])
    turn = (await sockets.state(client, chat))["turns"][-1]
    assert turn["message"]["attachments"] == [attached(other, endTurn="o1")], "history keeps the reference"
    await run_turn(client, chat, start("and now", "t4"))
    remembered: Any = sockets.agent.turns[-1].chat.history[-2]["message"]
    assert "fact 1" in remembered["attachments"][0]["modelRepresentation"]


@requirement("gen:attachment:chat-refused")
async def test_a_chat_that_cannot_be_attached_is_refused(sockets: Bench) -> None:
    client, chat, other = await two_chats(sockets)
    await run_turn(client, other, start("fact", "o1"))

    async def waits(turn: Turn) -> None:
        await turn.wait_steering()

    sockets.agent.script = waits
    await client.accepted(other, start("wait", "o2"))
    session = sockets.host.services.session_of(chat)
    for wrong in (
        attached("ahp-chat:/none"),
        attached(str(session)),
        attached(other, endTurn="o9"),
        attached(other, endTurn="o2"),
    ):
        assert "attachments" in await client.rejected(chat, start("hi", "t1", wrong))
        assert "attachments" in await client.rejected(chat, queued(wrong))
        message = start("hi", "t1", wrong)["message"]
        refused = await client.refused("createChat", str(session), chat="ahp-chat:/n", initialMessage=message)
        assert refused["code"] == -32602
    assert not {"activeTurn", "queuedMessages"} & (await sockets.state(client, chat)).keys()


@requirement("gen:attachment:chat-empty")
async def test_a_chat_without_turns_is_an_empty_transcript(sockets: Bench) -> None:
    client, chat, other = await two_chats(sockets)
    session = str(sockets.host.services.session_of(chat))
    await client.ask("createChat", session, chat="ahp-chat:/sibling")
    for number, empty in enumerate((other, "ahp-chat:/sibling")):
        await run_turn(client, chat, start("hi", f"t{number}", attached(empty)))
        assert "is empty" in read(sockets.agent.turns[-1])
    await run_turn(client, other, start("later", "o1"))
    await run_turn(client, chat, start("and?", "t9"))
    remembered: Any = sockets.agent.turns[-1].chat.history[0]["message"]
    assert "later" not in remembered["attachments"][0]["modelRepresentation"]


@requirement("gen:attachment:chat-not-recursive")
async def test_chats_inside_an_attached_chat_are_not_read(sockets: Bench) -> None:
    client, chat, other = await two_chats(sockets)
    _, inner = await sockets.session(client)
    await run_turn(client, inner, start("innermost secret", "i1"))
    await run_turn(client, other, start("look", "o1", attached(inner)))
    assert "innermost secret" in read(sockets.agent.turns[-1])
    await run_turn(client, chat, start("hi", "t1", attached(other)))
    told = read(sockets.agent.turns[-1])
    assert "look" in told
    assert "innermost secret" not in told


@requirement("gen:project-state:origin-kinds")
async def test_older_clients_see_the_label_of_an_attached_chat(sockets: Bench) -> None:
    client, chat, other = await two_chats(sockets)
    shown_by_version = {
        "0.4.0": ("simple", "systemNotification"),
        "0.6.0": ("simple", "systemNotification"),
        "0.7.0": ("chat", "systemNotification"),
        "0.8.0": ("chat", "systemNotification"),
        "0.9.0": ("chat", "automation"),
        "1.0.0": ("chat", "automation"),
    }
    readers = {
        version: await sockets.client("ahp-root://", chat, client_id=f"reader-{version}", offer=[version])
        for version in shown_by_version
    }
    await run_turn(client, other, start("fact", "o1"))
    await run_turn(client, chat, start("hi", "t1", attached(other)))
    automated: Any = {"text": "by itself", "origin": {"kind": "automation"}}
    begun = chat_turn_started(turn_id="t2", started_at=STARTED, message=automated)
    sockets.host.services.dispatch(chat, begun)
    for version, (attachment, kind) in shown_by_version.items():
        one = readers[version]
        said = (await one.action(lambda said: said["action"].get("turnId") == "t2"))["action"]
        assert said["message"]["origin"]["kind"] == kind
        state = await sockets.state(one, chat)
        shown = state["turns"][0]["message"]["attachments"][0]
        assert shown["type"] == attachment, version
        assert shown["label"] == "the other chat"
        assert state["turns"][-1]["message"]["origin"]["kind"] == kind


@requirement("gen:attachment:chat-pinned")
async def test_every_kind_of_agent_reads_an_attached_chat(sockets: Bench, tmp_path: Path) -> None:
    read_by_function: list[str] = []

    @agent(name="function")
    async def function(turn: Turn) -> str:
        read_by_function.append(str(turn.message.get("attachments")))
        return "done"

    acp = Scripted(tmp_path)
    async with FakeModel() as model:
        endpoint = OpenAiAgent(OpenAiConfig(name="endpoint", base_url=model.url))
        sockets.agents = [function, endpoint, acp.agent(config={"name": "acp"})]
        await sockets.restart()
        async with connect(sockets.url) as client:
            other = await (await client.create_session()).chat()
            await other.ask("the secret is blue")
            for provider in ("function", "endpoint", "acp"):
                chat = await (await client.create_session(provider=provider)).chat()
                given: Any = [attached(other.uri)]
                await chat.ask("which?", attachments=given)
        assert "secret is blue" in read_by_function[-1]
        assert "secret is blue" in str(model.requests[-1].body["messages"])
        assert "secret is blue" in str(acp.received("session/prompt")[-1])
