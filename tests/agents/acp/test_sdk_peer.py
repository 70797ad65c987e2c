"""An agent that somebody built on the Python ACP SDK works with us, and our messages pass its validation."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.testing.recording import RecordingTurn
from support import requirement
from support.scripted_acp import Scripted
from support.waiting import until

PROGRAM = str(Path(__file__).with_name("sdk_agent.py"))


@pytest.fixture
async def opened(scripted: Scripted) -> tuple[Any, Any]:
    config = AcpAgentConfig(
        name="sdk", command=sys.executable, args=(PROGRAM,), env={"AHPKIT_TEST": str(scripted.directory)}
    )
    agent = AcpAgent(config)
    scripted.agents.append(agent)
    chat = scripted.chat()
    return await agent.open(chat), chat


@requirement("extensibility:capabilities:core-unaffected")
async def test_text_thoughts_and_usage_arrive_in_order(opened: tuple[Any, Any]) -> None:
    chat, record = opened
    turn = RecordingTurn("one two three", chat=record)

    assert await chat.run(turn) == "end_turn"

    assert turn.verbs() == ["think", "text", "text", "text", "usage"]
    assert turn.answer == "one two three "
    assert turn.said[-1][1]["inputTokens"] == 1


@pytest.mark.parametrize(("approved", "verbs"), [(True, ["confirm", "complete"]), (False, ["confirm"])])
async def test_a_tool_call_with_a_diff_is_approved_or_denied(
    opened: tuple[Any, Any], approved: bool, verbs: list[str]
) -> None:
    chat, record = opened
    turn = RecordingTurn("write", chat=record, confirmations=[approved])

    await chat.run(turn)

    assert [verb for verb in turn.verbs() if verb in ("confirm", "complete")] == verbs
    [confirm] = [said for said in turn.said if said[0] == "confirm"]
    assert confirm[3]["edits"][0]["after"]["uri"] == "file:///tmp/a.txt"


async def test_it_is_cancelled_and_goes_on(opened: tuple[Any, Any]) -> None:
    chat, record = opened
    turn = RecordingTurn("wait", chat=record)
    running = asyncio.create_task(chat.run(turn))
    await until(lambda: turn.answer == "waiting")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    following = RecordingTurn("hi", chat=record)
    await chat.run(following)

    assert following.answer == "hi "


async def test_it_is_restarted_and_its_replayed_history_is_not_doubled(opened: tuple[Any, Any]) -> None:
    chat, record = opened
    await chat.run(RecordingTurn("one", chat=record))
    await chat.restart()
    turn = RecordingTurn("two", chat=record)
    await chat.run(turn)

    assert turn.answer == "two "
