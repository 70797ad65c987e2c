"""The demo agent on a real host: what clients see of its commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.agents.demo_commands import COMMANDS
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient

APPROVE = {"approved": True, "confirmed": "user-action", "selectedOptionId": "allow"}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    made.agent = cast(Any, DemoAgent())
    await made.start()
    yield made
    await made.stop()


async def ended(client: RawClient, chat: str, turn_id: str = "t1") -> None:
    ends = {"chat/turnComplete", "chat/turnCancelled", "chat/error"}
    await seen(client, chat, lambda action: action["type"] in ends and action["turnId"] == turn_id)


async def seen(client: RawClient, channel: str, found: Callable[[Json], bool]) -> Json:
    envelope = await client.action(lambda envelope: envelope["channel"] == channel and found(envelope["action"]))
    return envelope["action"]


async def answer(bench: Bench, client: RawClient, chat: str, at: int = -1) -> str:
    turn = (await bench.state(client, chat))["turns"][at]
    return "".join(part["content"] for part in turn["responseParts"] if part["kind"] == "markdown")


async def respond(client: RawClient, chat: str) -> None:
    """Approve the tool call that waits and answer the question that is asked, whichever comes."""
    waiting = ("chat/toolCallReady", "chat/inputRequested", "chat/turnComplete")
    action = await seen(client, chat, lambda action: action["type"] in waiting)
    if action["type"] == "chat/toolCallReady":
        decision = {"turnId": "t1", "toolCallId": action["toolCallId"], **APPROVE}
        await client.accepted(chat, {"type": "chat/toolCallConfirmed", **decision})
    elif action["type"] == "chat/inputRequested":
        name = {"state": "submitted", "value": {"kind": "text", "value": "Ada"}}
        done = {"requestId": action["request"]["id"], "response": "accept", "answers": {"name": name}}
        await client.accepted(chat, {"type": "chat/inputCompleted", **done})


def timeless(action: Json) -> Json:
    return {key: value for key, value in action.items() if key not in ("startedAt", "duration")}


@pytest.mark.parametrize(
    "prompt",
    ["hello", "/help", "/stream 5", "/think", '/tool calculate {"expression": "1+1"}', "/ask", "/usage", "/skills"],
)
async def test_the_same_prompt_gives_the_same_actions(bench: Bench, prompt: str) -> None:
    client, runs = await bench.client(), list[list[Json]]()
    for _ in range(2):
        _, chat = await bench.session(client)
        await client.accepted(chat, say(prompt))
        await respond(client, chat)
        await ended(client, chat)
        runs.append([timeless(envelope["action"]) for envelope in client.actions(chat)])
    assert runs[0] == runs[1]
    assert len(runs[0]) >= 4


async def test_the_commands_are_offered_as_completions(bench: Bench) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    offered = await client.ask("completions", chat, kind="userMessage", text="/", offset=1)
    assert [item["insertText"] for item in offered["items"]] == [f"/{name} " for name in COMMANDS]


@requirement("session:action:title-from-both-sides")
async def test_the_first_prompt_becomes_the_sessions_title_until_somebody_renames_it(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("Plan a trip"))
    await ended(client, chat)
    derived = await seen(client, session, lambda action: action["type"] == "session/titleChanged")
    assert derived["title"] == "Plan a trip"
    await client.accepted(session, {"type": "session/titleChanged", "title": "Rome"})
    await client.accepted(chat, say("And Paris?", "t2"))
    await ended(client, chat, "t2")
    assert (await bench.state(client, session))["summary"]["title"] == "Rome"


@requirement("client-tools:state:two-sources")
@requirement("client-tools:call:start-names-owner")
async def test_tools_of_the_client_and_of_the_host_work_side_by_side(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    active = {"clientId": client.client_id, "tools": [{"name": "ping"}]}
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})

    await client.accepted(chat, say('/tool ping {"a": 1}'))
    call = await seen(client, chat, lambda action: action["type"] == "chat/toolCallReady")
    result = {"success": True, "pastTenseMessage": "Pinged", "content": [{"type": "text", "text": "pong"}]}
    done = {"turnId": "t1", "toolCallId": call["toolCallId"], "result": result}
    await client.accepted(chat, {"type": "chat/toolCallComplete", **done})
    await ended(client, chat)
    assert "pong" in await answer(bench, client, chat)

    await client.accepted(chat, say('/tool calculate {"expression": "6*7"}', "t2"))
    call = await seen(client, chat, lambda one: one["type"] == "chat/toolCallReady" and one["turnId"] == "t2")
    assert (call["editable"], [option["id"] for option in call["options"][:2]]) == (True, ["allow", "deny"])
    edited = {"turnId": "t2", "toolCallId": call["toolCallId"], **APPROVE, "editedToolInput": '{"expression": "1+2"}'}
    await client.accepted(chat, {"type": "chat/toolCallConfirmed", **edited})
    await ended(client, chat, "t2")
    assert "```\n3\n```" in await answer(bench, client, chat)
    starts = [e["action"] for e in client.actions(chat) if e["action"]["type"] == "chat/toolCallStart"]
    assert [start.get("contributor") for start in starts] == [{"kind": "client", "clientId": client.client_id}, None]


async def test_steering_is_acknowledged_while_it_sleeps(bench: Bench) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("/sleep 3600"))
    message = {"text": "turn left", "origin": {"kind": "user"}}
    await client.accepted(chat, {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": message})
    await seen(client, chat, lambda action: "> turn left" in action.get("content", ""))
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1"})
    assert "steeringMessage" not in await bench.state(client, chat)


async def test_a_helper_works_in_a_read_only_chat_of_its_own(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("/subagent Count."))
    await ended(client, chat)
    (helper,) = [one for one in (await bench.state(client, session))["chats"] if one["resource"] != chat]
    assert (helper["title"], helper["interactivity"], helper["origin"]["kind"]) == ("Helper", "read-only", "tool")
    assert "> Count." in await answer(bench, client, helper["resource"])


async def test_a_requested_failure_is_shown_as_one(bench: Bench) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("/fail out of cheese"))
    await ended(client, chat)
    turn = (await bench.state(client, chat))["turns"][0]
    assert (turn["state"], turn["error"]) == ("error", {"errorType": "demo/requested", "message": "out of cheese"})
