"""Sub-agents that need a person: their questions are asked in the terminal of the chat that started them."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from support.process import finish_cli, host_process
from support.terminal import terminal

BOSS = """
from ahpkit.agents.python import agent


@agent(name="boss")
async def boss(turn):
    call = turn.tool_call("delegate", display_name="Delegate")
    call.running(tool_input="{}", message="Asking a helper")
    helper = await turn.subchat("Scout", "look", tool_call=call)
    call.content([{"type": "subagent", "resource": helper.uri, "title": "Scout"}])
    async with helper as scout:
        inner = scout.tool_call("climb", display_name="Climb")
        confirmation = await inner.confirm(tool_input="tree", message="Climb a tree")
        turn.text("While you decided. ")
        given = await scout.ask([{"id": "q", "kind": "text", "message": "How high?"}])
        answers = [answer["value"]["value"] for answer in given.answers.values()]
        turn.text(f"approved: {confirmation.approved}, {given.response} {answers}")
    call.complete(message="Asked a helper")
"""


@pytest_asyncio.fixture
async def home(tmp_path: Path) -> AsyncGenerator[Path]:
    """The home of a host whose agent has a sub-agent with questions."""
    (tmp_path / "boss.py").write_text(BOSS)
    (tmp_path / "host.toml").write_text('[agents.boss]\npython = "boss.py:boss"')
    async with host_process(tmp_path, "--config", "host.toml"):
        yield tmp_path


async def test_a_sub_agents_approvals_and_questions_reach_the_person(home: Path) -> None:
    async with terminal(["chat"], home) as person:
        await person.ready()
        person.enter("go")
        await person.see("… Asking a helper", "Scout asks:", "? Climb a tree", "    tree")
        await person.ready("  approve? [y]es [n]o [r]emember [l]ater: ")
        person.type("y")
        await person.see("Scout asks:", "How high?")
        await person.ready("  text: ")
        person.enter("very")
        await person.see("approved: True, accept ['very']", "✓ Asked a helper")
        await person.ready()
        assert "While you decided." in person.screen.text
        person.type("\x04")
        assert await person.exited() == 0


async def test_ctrl_c_cancels_a_turn_whose_sub_agent_asks(home: Path) -> None:
    async with terminal(["chat"], home) as person:
        await person.ready()
        person.enter("go")
        await person.ready("  approve? [y]es [n]o [r]emember [l]ater: ")
        person.interrupt()
        await person.see("✗ cancelled")
        await person.ready()
        person.interrupt()
        assert await person.exited() == 0
        assert person.is_sane


async def test_a_prompt_decides_for_sub_agents_too(home: Path) -> None:
    code, output, errors = await finish_cli(["prompt", "go", "--approve", "all"], home)
    assert (code, output) == (0, "While you decided. approved: True, decline []\n")
    assert "nobody is there to answer" in errors
    code, output, errors = await finish_cli(["prompt", "go"], home)
    assert "approved: False" in output
    assert "✗ Climb: not run (approvals are off; --approve all turns them on)" in errors
