"""An agent made of a Python function."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ahpkit.agents.python import AgentNotLoaded, PythonAgent, TurnView, agent, load_agent
from ahpkit.host.agent import Agent, AgentError, Command, Turn
from ahpkit.testing.recording import RecordingChat, RecordingTurn
from support.waiting import BOUND


async def run(made: Agent, prompt: str = "hello", *, chat: RecordingChat | None = None) -> RecordingTurn:
    turn = RecordingTurn(prompt, chat=chat)
    async with asyncio.timeout(BOUND):
        await (await made.open(turn.chat)).run(turn)
    return turn


async def test_an_agent_takes_five_lines() -> None:
    @agent(name="parrot")
    async def parrot(turn: Turn) -> AsyncIterator[str]:
        yield "You said: "
        yield turn.prompt

    assert (await run(parrot)).said == [("text", "You said: "), ("text", "hello")]


async def test_an_async_function_drives_the_turn_and_may_return_a_last_word() -> None:
    @agent(name="driver")
    async def driver(turn: Turn) -> str:
        turn.think("hm")
        turn.text("a")
        return "b"

    assert (await run(driver)).said == [("think", "hm"), ("text", "a"), ("text", "b")]


async def test_an_async_function_need_not_return_anything() -> None:
    @agent(name="quiet")
    async def quiet(turn: Turn) -> None:
        turn.notice("nothing to say")

    assert (await run(quiet)).said == [("notice", "nothing to say")]


async def test_a_plain_function_runs_in_a_thread_and_answers_with_what_it_returns() -> None:
    threads: list[threading.Thread] = []

    @agent(name="plain")
    def plain(turn: TurnView) -> str:
        threads.append(threading.current_thread())
        return turn.prompt.upper()

    assert (await run(plain)).said == [("text", "HELLO")]
    assert threads != [threading.main_thread()]


async def test_a_plain_generator_streams_from_a_thread() -> None:
    @agent(name="words")
    def words(turn: TurnView) -> Iterator[str]:
        yield from turn.prompt.split()

    assert (await run(words, "a b c")).said == [("text", "a"), ("text", "b"), ("text", "c")]


async def test_a_plain_function_can_read_the_turn_and_nothing_else() -> None:
    chat = RecordingChat(config={"k": 1})
    seen: list[TurnView] = []

    @agent(name="reader")
    def reader(turn: TurnView) -> None:
        seen.append(turn)

    turn = await run(reader, chat=chat)
    assert (seen[0].id, seen[0].prompt, seen[0].config) == (turn.id, "hello", {"k": 1})
    assert not hasattr(seen[0], "text")


async def test_cancelling_the_turn_ends_the_generator() -> None:
    ended, started = asyncio.Event(), asyncio.Event()

    @agent(name="slow")
    async def slow(turn: Turn) -> AsyncIterator[str]:
        try:
            yield "a"
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.ensure_future(run(slow))
    async with asyncio.timeout(BOUND):
        await started.wait()
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert ended.is_set()


async def test_cancelling_the_turn_closes_a_plain_generator_after_its_step() -> None:
    in_step, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    @agent(name="slow")
    def slow(turn: TurnView) -> Iterator[str]:
        try:
            in_step.set()
            go_on.wait(BOUND)
            yield "too late"
        finally:
            closed.set()

    turn = RecordingTurn()
    running = asyncio.ensure_future((await slow.open(turn.chat)).run(turn))
    async with asyncio.timeout(BOUND):
        await asyncio.to_thread(in_step.wait, BOUND)
        running.cancel()
        go_on.set()
        await asyncio.wait([running])
    assert (running.cancelled(), closed.is_set(), turn.said) == (True, True, [])


async def test_a_failure_passes_through() -> None:
    @agent(name="broken")
    async def broken(turn: Turn) -> None:
        raise AgentError("no key", error_type="auth")

    with pytest.raises(AgentError, match="no key"):
        await run(broken)


async def test_the_agents_description_models_and_commands_come_from_the_decorator_and_the_docstring() -> None:
    @agent(name="bird", title="Bird", models=["small", "big"], commands=[Command("fly", "Fly away")])
    async def bird(turn: Turn) -> None:
        """Sings."""

    assert isinstance(bird, PythonAgent)
    assert (bird.provider, bird.display_name, bird.description) == ("bird", "Bird", "Sings.")
    assert list(bird.models) == [
        {"id": "small", "provider": "bird", "name": "small"},
        {"id": "big", "provider": "bird", "name": "big"},
    ]
    assert (await run(bird)).chat.said == [("commands", ["fly"])]


SOURCE = """
from ahpkit.agents.python import agent

@agent(name="parrot")
async def parrot(turn):
    yield turn.prompt

number = 7
"""


async def test_an_agent_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my_agent.py"
    file.write_text(SOURCE)
    assert (await run(load_agent(f"{file}:parrot"))).answer == "hello"


async def test_an_agent_is_loaded_from_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "an_agent_module.py").write_text(SOURCE)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    assert load_agent("an_agent_module:parrot").provider == "parrot"


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("parrot", "is not a reference to an agent"),
        (":parrot", "is not a reference to an agent"),
        ("no_such_module:parrot", "No module named"),
        ("nowhere.py:parrot", "there is no file .*/nowhere.py$"),
        ("{file}:crow", "has no attribute 'crow'"),
        ("{file}:number", "is not an agent but of type int"),
    ],
)
def test_a_reference_that_leads_nowhere_is_explained(reference: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "my_agent.py"
    file.write_text(SOURCE)
    with pytest.raises(AgentNotLoaded, match=problem):
        load_agent(reference.format(file=file))
