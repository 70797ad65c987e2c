"""Agents that nobody here wrote, against the fake model: text, approval, denial, cancel, restart and resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ahpkit.agents.acp import AcpAgent
from ahpkit.testing.fake_model import FakeModel
from ahpkit.testing.recording import RecordingChat, RecordingTurn
from support.real_agents import AGENTS, Real, made, needs_agents
from support.scripted_acp import MARK, Scripted
from support.told import Told
from support.waiting import until

pytestmark = needs_agents


class Session:
    """One chat with a real agent."""

    def __init__(self, chat: RecordingChat, agent: AcpAgent, opened: Any, real: Real, model: FakeModel) -> None:
        self.chat = chat
        self.agent = agent
        self.opened = opened
        self.real = real
        self.model = model
        self.target = chat.working_directory / "written.txt"

    async def run(self, prompt: str, **script: Any) -> RecordingTurn:
        turn = RecordingTurn(prompt, chat=self.chat, **script)
        await self.opened.run(turn)
        return turn

    @property
    def write(self) -> str:
        if not self.real.asks:
            pytest.skip("this agent asks no permission for its own tools")
        return f"CALL {self.real.tool} {json.dumps(self.real.write(self.target))}"


@pytest.fixture(params=list(AGENTS))
async def session(request: pytest.FixtureRequest, scripted: Scripted) -> AsyncGenerator[Session]:
    real = AGENTS[request.param]
    chat = scripted.chat(config=real.config)
    async with FakeModel() as model:
        home, mark = scripted.directory / "home", {MARK: str(scripted.directory)}
        agent = made(request.param, model, home, chat.working_directory, **mark)
        scripted.agents.append(agent)
        yield Session(chat, agent, await agent.open(chat), real, model)
        await agent.aclose()


async def test_a_prompt_is_answered_in_streamed_text(session: Session) -> None:
    turn = await session.run("say these words")

    assert "say these words" in turn.answer
    assert turn.verbs().count("text") >= 1


async def test_a_tool_call_is_approved_and_done(session: Session) -> None:
    turn = await session.run(session.write, confirmations=[True])

    assert "confirm" in turn.verbs()
    assert session.target.read_text().strip() == "hello"
    assert ("complete", True) in [(said[0], said[2]) for said in turn.said if said[0] == "complete"]
    assert all(call.over for call in turn.tool_calls.values())


async def test_a_tool_call_is_denied_and_not_done(session: Session) -> None:
    turn = await session.run(session.write, confirmations=[False] * 5)

    assert "confirm" in turn.verbs()
    assert not session.target.exists()
    assert "still there" in (await session.run("still there")).answer


async def test_a_turn_is_cancelled_and_the_next_one_works(session: Session) -> None:
    turn = RecordingTurn("SLOW 200", chat=session.chat)
    running = asyncio.create_task(session.opened.run(turn))
    await until(lambda: "3 " in turn.answer)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert "199" not in turn.answer
    assert "on we go" in (await session.run("on we go")).answer


async def test_it_is_restarted_and_remembers(session: Session) -> None:
    if not session.real.restores:
        pytest.skip("this agent does not find what it has just written")
    first = await session.run("my number is 4711")
    await session.opened.restart()
    before = len(session.model.requests)
    second = await session.run("what was it")

    assert "4711" in first.answer
    assert "4711" not in second.answer, "the replayed history is not shown again"
    asked = [json.dumps(request.body) for request in session.model.requests[before:]]
    assert any("4711" in body and "what was it" in body for body in asked)


async def test_what_it_keeps_is_listed_and_told_again(session: Session) -> None:
    await session.run("my number is 4711")
    await session.opened.aclose()
    directory = session.chat.working_directory

    kept = await session.agent.sessions(directory, start=True)

    if not kept:
        pytest.skip("this agent lists nothing")
    [ours] = [one for one in kept if one.working_directory == directory]
    told = Told()
    await session.agent.recall(session.chat, ours.memory, told)
    [(said, answered)] = told.conversation()
    assert "my number is 4711" in said
    assert "4711" in answered
