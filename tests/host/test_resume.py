"""Turns that failed and go on: who may resume them, what the agent gets, what clients of each version see."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig
from ahpkit.agents.python import agent
from ahpkit.agents.turn_input import GO_ON
from ahpkit.client import connect
from ahpkit.client.errors import TurnError
from ahpkit.client.events import TextDelta, TurnCompleted, TurnFailed
from ahpkit.host.agent import Agent, AgentError, Turn
from ahpkit.testing.fake_model import Fail, FakeModel, ModelRequest, Reply, Say
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.scripted_acp import Scripted

STARTED = "2026-11-15T12:00:00.000Z"


def start(text: str, turn_id: str = "t1", **extra: Any) -> Json:
    return say(text, turn_id, startedAt=STARTED, **extra)


def resume(turn_id: str = "t1") -> Json:
    return {"type": "chat/turnResume", "turnId": turn_id}


async def stumbling(turn: Turn) -> None:
    """Fails at first, goes on when it is resumed."""
    if not turn.resumed:
        turn.text("first half")
        raise AgentError("the line was cut", error_type="test/cut", resumable=True)
    turn.text(" and second")


async def failed(client: RawClient, chat: str, *, times: int = 1) -> Json:
    """Wait for a turn that failed so often; the last error."""

    def seen(said: Json) -> bool:
        return sum(one["action"]["type"] == "chat/error" for one in client.actions(chat)) >= times and (
            said["action"]["type"] == "chat/error"
        )

    await client.action(seen)
    return [one["action"] for one in client.actions(chat) if one["action"]["type"] == "chat/error"][-1]


async def new_client(bench: Bench, client_id: str = "new", version: str = "1.0.0") -> RawClient:
    return await bench.client("ahp-root://", client_id=client_id, offer=[version])


@requirement("gen:resume:reopens", "gen:resume:duration-total", "gen:turn:duration-emitted")
@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
async def test_a_turn_that_failed_goes_on(sockets: Bench, version: str) -> None:
    sockets.agent.script = stumbling
    client = await new_client(sockets, version=version)
    _, chat = await sockets.session(client)
    await client.accepted(chat, start("go"))
    error = await failed(client, chat)
    assert error["part"] == {
        "kind": "error",
        "error": {"errorType": "test/cut", "message": "the line was cut"},
        "resumable": True,
    }
    before = await sockets.state(client, chat)
    await client.accepted(chat, resume())
    ended = (await client.action("chat/turnComplete"))["action"]
    state = await sockets.state(client, chat)
    turn = state["turns"][-1]
    assert [part["kind"] for part in turn["responseParts"]] == ["markdown", "error", "markdown"]
    assert [part.get("content") for part in turn["responseParts"]] == ["first half", None, " and second"]
    assert len({part.get("id") for part in turn["responseParts"]}) == 3, "parts keep names of their own"
    assert (turn["id"], turn["state"], turn["startedAt"]) == ("t1", "complete", before["turns"][0]["startedAt"])
    assert ended["duration"] >= error["duration"]
    assert datetime.fromisoformat(state["modifiedAt"]) >= datetime.fromisoformat(before["modifiedAt"])
    assert [turn.resumed for turn in sockets.agent.turns] == [False, True]


@requirement("gen:resume:second-failure")
async def test_a_second_failure_is_a_second_error(sockets: Bench) -> None:
    async def script(turn: Turn) -> None:
        raise AgentError("again" if turn.resumed else "once", resumable=True)

    sockets.agent.script = script
    client = await new_client(sockets)
    _, chat = await sockets.session(client)
    await client.accepted(chat, start("go"))
    await failed(client, chat)
    await client.accepted(chat, resume())
    await failed(client, chat, times=2)
    turn = (await sockets.state(client, chat))["turns"][-1]
    assert [part["error"]["message"] for part in turn["responseParts"]] == ["once", "again"]
    await client.accepted(chat, resume())
    await failed(client, chat, times=3)


@requirement("gen:resume:refused", "gen:resume:only-resumable")
async def test_only_the_last_turn_with_a_resumable_error_is_resumed(sockets: Bench) -> None:
    client = await new_client(sockets)
    _, chat = await sockets.session(client)
    assert "not the last" in await client.rejected(chat, resume("t1"))

    async def fatal(turn: Turn) -> None:
        raise AgentError("for good")

    sockets.agent.script = fatal
    await client.accepted(chat, start("go"))
    await failed(client, chat)
    assert "cannot be resumed" in await client.rejected(chat, resume())
    sockets.agent.script = stumbling
    await client.accepted(chat, start("go", "t2"))
    await failed(client, chat, times=2)
    assert "not the last" in await client.rejected(chat, resume("t1"))
    ran = len(sockets.agent.turns)
    await client.accepted(chat, resume("t2"))
    await client.action("chat/turnComplete")
    assert "cannot be resumed" in await client.rejected(chat, resume("t2"))
    assert len(sockets.agent.turns) == ran + 1, "a refusal does not touch the agent"


@requirement("gen:resume:refused")
async def test_nothing_is_resumed_while_a_turn_runs(sockets: Bench) -> None:
    sockets.agent.script = stumbling
    client = await new_client(sockets)
    _, chat = await sockets.session(client)
    await client.accepted(chat, start("go"))
    await failed(client, chat)

    async def waits(turn: Turn) -> None:
        await turn.wait_steering()

    sockets.agent.script = waits
    await client.accepted(chat, start("wait", "t2"))
    assert "still running" in await client.rejected(chat, resume())


@requirement("gen:resume:open-question")
async def test_open_questions_of_a_resumed_turn_are_withdrawn(sockets: Bench) -> None:
    async def script(turn: Turn) -> None:
        if turn.resumed:
            return
        asking = turn.ask([{"id": "q", "kind": "text", "message": "?"}])
        task = sockets.host.services.spawn(_ignored(asking), name="ask")
        await turn.wait_steering()
        del task
        raise AgentError("left the question", resumable=True)

    sockets.agent.script = script
    client = await new_client(sockets)
    session, chat = await sockets.session(client)
    await client.accepted(chat, start("go"))
    await client.action("chat/inputRequested")
    steer = {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": start("x")["message"]}
    await client.accepted(chat, steer)
    await failed(client, chat)
    await client.accepted(chat, resume())
    await client.action("chat/turnComplete")
    parts = (await sockets.state(client, chat))["turns"][-1]["responseParts"]
    assert [part["response"] for part in parts if part["kind"] == "inputRequest"] == ["cancel"]
    assert not (await sockets.state(client, session)).get("inputNeeded")


async def _ignored(asking: Any) -> None:
    await asking


@requirement("gen:project:resync", "gen:project-state:turn-error")
@pytest.mark.parametrize("version", ["0.4.0", "0.7.0"])
async def test_older_clients_come_back_to_a_turn_that_goes_on(sockets: Bench, version: str) -> None:
    sockets.agent.script = stumbling
    new = await new_client(sockets)
    session, chat = await sockets.session(new)
    old = await new_client(sockets, "old", version)
    for uri in (session, chat):
        await old.ask("subscribe", uri)
    await new.accepted(chat, start("go"))
    error = await failed(old, chat)
    assert error["error"]["message"] == "the line was cut"
    state = await sockets.state(old, chat)
    assert state["turns"][-1]["error"]["errorType"] == "test/cut"
    assert "chat/turnResume" in await old.rejected(chat, resume())
    seen = max(said["serverSeq"] for said in old.actions())
    beside = await new_client(sockets, "beside", version)
    await beside.ask("subscribe", session)
    await new.accepted(chat, resume())
    closed = await old.wait_closed()
    assert closed.code == 1012
    assert "reconnect" in closed.reason
    await new.action("chat/turnComplete")
    await beside.ask("ping")  # It does not watch the chat.
    back = await sockets.connect("old")
    found = await back.ask("reconnect", clientId="old", lastSeenServerSeq=seen, subscriptions=[session, chat])
    assert found["type"] == "snapshot"
    turns = next(one["state"]["turns"] for one in found["snapshots"] if one["resource"] == chat)
    assert [turn["state"] for turn in turns] == ["complete"]


@requirement("gen:turn:crash-ends")
async def test_a_turn_that_the_host_interrupted_can_go_on(sockets: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.text("b" if turn.resumed else "a")
        if not turn.resumed:
            await turn.wait_steering()

    sockets.agent.script, sockets.agent.resumes = script, True
    client = await new_client(sockets)
    _, chat = await sockets.session(client)
    await client.accepted(chat, start("go"))
    await client.action("chat/delta")
    await sockets.restart()
    client = await new_client(sockets)
    state = (await client.ask("subscribe", chat))["snapshot"]["state"]
    assert "activeTurn" not in state
    assert state["turns"][-1]["state"] == "error"
    await client.accepted(chat, resume())
    await client.action("chat/turnComplete")
    state = await sockets.state(client, chat)
    assert [part.get("content") for part in state["turns"][-1]["responseParts"]] == ["a", None, "b"]


async def test_our_client_resumes_and_reports_only_what_is_new(sockets: Bench) -> None:
    sockets.agent.script = stumbling
    async with connect(sockets.url) as client:
        chat = await (await client.create_session()).chat()
        with pytest.raises(LookupError):
            chat.resume()
        with pytest.raises(TurnError) as failure:
            await chat.ask("go")
        assert failure.value.resumable
        events = [event async for event in chat.resume()]
        assert [event.text for event in events if isinstance(event, TextDelta)] == [" and second"]
        assert isinstance(events[-1], TurnCompleted)
        assert not any(isinstance(event, TurnFailed) for event in events)
        with pytest.raises(LookupError):
            chat.resume()


def python_agent() -> Agent:
    @agent(name="resuming")
    async def resuming(turn: Turn) -> str:
        if not turn.resumed:
            turn.text("one ")
            raise AgentError("cut", resumable=True)
        return f"two after {len(turn.parts)}"

    return resuming


async def resumed_texts(bench: Bench, provider: str) -> list[str]:
    async with connect(bench.url) as client:
        chat = await (await client.create_session(provider=provider)).chat()
        with pytest.raises(TurnError) as failure:
            await chat.ask("count")
        assert failure.value.resumable, failure.value
        await chat.resume().text()
        return [str(part.get("content", "")) for part in chat.state["turns"][-1]["responseParts"]]


async def test_a_python_function_is_run_again(sockets: Bench) -> None:
    sockets.agents = [python_agent()]
    await sockets.restart()
    assert await resumed_texts(sockets, "resuming") == ["one ", "", "two after 2"]


async def test_a_model_is_asked_again_with_what_it_said(sockets: Bench) -> None:
    asked: list[Json] = []

    def answer(request: ModelRequest) -> Reply:
        asked.append(request.body)
        return Fail(503, "busy") if len(asked) == 1 else Say("done")

    async with FakeModel(answer) as model:
        sockets.agents = [OpenAiAgent(OpenAiConfig(name="local", base_url=model.url))]
        await sockets.restart()
        assert (await resumed_texts(sockets, "local"))[1:] == ["done"]
        assert [message["content"] for message in asked[-1]["messages"]] == ["count"]


async def test_an_acp_agent_is_prompted_to_go_on(sockets: Bench, tmp_path: Path) -> None:
    made = Scripted(tmp_path)
    steps = [[{"text": "one "}, {"error": {"code": -32603, "message": "overloaded"}}], [{"text": "two"}]]
    sockets.agents = [made.agent(turns=steps, config={"name": "acp"})]
    await sockets.restart()
    assert await resumed_texts(sockets, "acp") == ["one ", "", "two"]
    prompts = [params["prompt"][-1]["text"] for params in made.received("session/prompt")]
    assert prompts == ["count", GO_ON]
