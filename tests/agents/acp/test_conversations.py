"""`session/list` of an agent over real pipes, as what the host lists."""

from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import AgentError
from support.scripted_acp import Scripted


def listing(*pages: dict[str, Any]) -> dict[str, Any]:
    return {"methods": {"session/list": [{"result": page} for page in pages]}}


def entry(id: str = "a", **more: Any) -> dict[str, Any]:
    return {"sessionId": id, "cwd": "/w", **more}


async def found(scripted: Scripted, **script: Any) -> Any:
    return await scripted.agent(**script).sessions(scripted.directory, start=True)


async def test_conversations_are_found_with_title_directory_and_time(scripted: Scripted) -> None:
    page = {"sessions": [entry(title="A talk", updatedAt="2026-11-15T12:00:00.500Z"), entry("b")]}

    first, second = await found(scripted, **listing(page))

    assert (first.memory, first.working_directory, first.title) == ({"sessionId": "a"}, Path("/w"), "A talk")
    assert first.modified_at == 1_794_744_000_500
    assert (second.title, second.modified_at) == (None, None)


@pytest.mark.parametrize("time", ["yesterday", "", "+99999-01-01T00:00:00Z", 5, None])
async def test_a_time_that_is_none_is_left_out(scripted: Scripted, time: Any) -> None:
    [one] = await found(scripted, **listing({"sessions": [entry(updatedAt=time)]}))

    assert one.modified_at is None


@pytest.mark.parametrize("bad", [{}, {"sessionId": 5, "cwd": "/w"}, {"sessionId": "a"}, entry(cwd="rel"), "x", None])
async def test_an_entry_that_makes_no_sense_is_left_out(scripted: Scripted, bad: Any) -> None:
    [one] = await found(scripted, **listing({"sessions": [bad, entry("good")]}))

    assert one.memory == {"sessionId": "good"}


async def test_an_agent_that_lists_without_end_is_stopped(scripted: Scripted) -> None:
    page = {"sessions": [entry(str(number)) for number in range(400)], "nextCursor": "more"}

    assert len(await found(scripted, **listing(page))) == 1000
    assert [params.get("cursor") for params in scripted.received("session/list")] == [None, "more", "more"]


@pytest.mark.parametrize(
    "capabilities",
    [{"loadSession": True}, {"sessionCapabilities": {"list": {}}}],
    ids=["cannot list", "cannot take up what it lists"],
)
async def test_an_agent_that_cannot_is_not_asked(scripted: Scripted, capabilities: dict[str, Any]) -> None:
    assert await found(scripted, initialize={"agentCapabilities": capabilities}) == []
    assert scripted.received("session/list") == []


async def test_an_agent_is_only_started_for_it_when_somebody_wants_that(scripted: Scripted) -> None:
    agent = scripted.agent()

    assert await agent.sessions(scripted.directory, start=False) is None
    assert scripted.running() == []


async def test_an_agent_that_runs_is_asked_in_the_process_it_has(scripted: Scripted) -> None:
    agent = scripted.agent()
    await agent.open(scripted.chat())

    own = await agent.sessions(scripted.directory, start=False)

    assert own is not None
    assert own[0].working_directory == scripted.chat().working_directory
    assert len(scripted.received("initialize")) == 1


async def test_an_error_of_the_agent_is_one_for_people(scripted: Scripted) -> None:
    failing = {"session/list": [{"error": {"code": -32000, "message": "Authentication required"}}]}

    with pytest.raises(AgentError, match="Log in first"):
        await found(scripted, methods=failing)
