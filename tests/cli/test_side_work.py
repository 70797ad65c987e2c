"""Sub-agents that need a person: their questions are asked in the terminal of the chat that started them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.cli.side_work import printed, readable
from ahpkit.client import Client, connect
from ahpkit.host.agent import Turn
from ahpkit.protocol.terminal import terminal_data
from support import requirement
from support.bench import running_bench
from support.process import HostProcess, finish_cli, host_process, run_cli
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


AGENT = """
from ahpkit.agents.python import agent


@agent(name="runner")
async def runner(turn):
    call = turn.tool_call("shell", display_name="Shell")
    call.running(tool_input="make", message="Run make")
    call.content([{"type": "terminal", "resource": turn.prompt, "title": "make"}])
    await turn.ask([{"id": "q", "kind": "text", "message": "Seen enough?"}])
    call.complete(message="Ran make")
"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[32mgreen\x1b[0m\r\n", "green\n"),
        ("10%\r50%\r100%\r\nnext", "100%\nnext"),
        ("\x1b]0;title\x07$ ", "$ "),
    ],
)
def test_what_drives_a_screen_is_left_out(text: str, left: str) -> None:
    assert readable(text) == left


def test_output_of_commands_and_of_no_command_is_one_text() -> None:
    content = [{"type": "unclassified", "value": "$ "}, {"type": "command", "commandId": "1", "output": "hi\r\n"}]
    assert printed({"content": content}) == "$ hi\n"


PLAIN: Any = {
    "title": "log",
    "content": [{"type": "unclassified", "value": "10%\r\n\x1b[31mred\x1b[0m first\n"}],
    "lifecycle": {"status": "running"},
    "claim": {"kind": "client", "clientId": "other"},
    "isPty": False,
}


@requirement("gen:terminal:not-pty")
def test_without_a_pty_nothing_is_taken_for_an_escape_sequence() -> None:
    assert printed(PLAIN) == "10%\n\u241b[31mred\u241b[0m first\n"
    assert printed({**PLAIN, "isPty": True}) == printed({"content": PLAIN["content"]}) == "10%\nred first\n"


@requirement("gen:terminal:not-pty")
async def test_tail_and_chat_show_output_without_a_pty_as_plain_text(tmp_path: Path) -> None:
    """What was printed before and what comes later, with every character visible."""
    uri = "ahp-terminal:/plain"

    async def shows(turn: Turn) -> None:
        call = turn.tool_call("shell")
        call.running(tool_input="make")
        call.content([{"type": "terminal", "resource": uri, "title": "make"}])
        await turn.wait_steering()

    async with running_bench(tmp_path, sockets=True) as bench, asyncio.timeout(40):
        bench.agent.script = shows
        bench.host.services.open_channel(uri, PLAIN)
        await bench.host.services.durable()
        tail = await run_cli(["tail", uri, "--url", bench.url], tmp_path)
        assert tail.stdout is not None
        assert (await tail.stdout.readline()).decode() == "10%\n"
        assert (await tail.stdout.readline()).decode() == "\u241b[31mred\u241b[0m first\n"
        bench.host.services.dispatch(uri, terminal_data(data="a\x1b[2Jb\n"))
        assert (await tail.stdout.readline()).decode() == "a\u241b[2Jb\n"
        tail.terminate()
        await tail.communicate()
        async with terminal(["chat", "--url", bench.url], tmp_path) as person:
            await person.ready()
            person.enter("go")
            await person.see("│ 10%", "│ \u241b[31mred\u241b[0m first", "│ a\u241b[2Jb")
            bench.host.services.dispatch(uri, terminal_data(data="\x1b]0;title\x07c\n"))
            await person.see("│ \u241b]0;title\u2407c")


@pytest_asyncio.fixture
async def host(tmp_path: Path) -> AsyncGenerator[HostProcess]:
    (tmp_path / "runner.py").write_text(AGENT)
    (tmp_path / "host.toml").write_text('[agents.runner]\npython = "runner.py:runner"')
    async with host_process(tmp_path, "--config", "host.toml", "--terminals") as running:
        yield running


async def opened(client: Client, uri: str, command: str) -> None:
    """A terminal that has printed what a command prints."""
    claim: Any = {"kind": "client", "clientId": client.client_id}
    await client.request("createTerminal", {"claim": claim, "cols": 80, "rows": 24}, channel=uri)
    client.dispatch(uri, {"type": "terminal/input", "data": f"stty -echo; {command}; exit\n"})
    async with client.subscribe(uri) as shell:
        await shell.wait_for(lambda state: state["lifecycle"]["status"] == "exited")


async def test_a_terminal_of_a_tool_call_is_shown_with_its_beginning(host: HostProcess) -> None:
    uri = "ahp-terminal:/make"
    async with connect(host.url, token=host.token) as client, asyncio.timeout(20):
        await opened(client, uri, "for i in $(seq 30); do echo line $i; done")
        async with terminal(["chat"], host.home) as person:
            await person.ready()
            person.enter(uri)
            await person.see("… Run make", "line 1", "  │ line 2", f"  │ … all of it:  ahpkit tail {uri}")
            assert "line 25" not in person.screen.text


async def test_tail_shows_what_a_terminal_prints(host: HostProcess) -> None:
    uri = "ahp-terminal:/make"
    async with connect(host.url, token=host.token) as client, asyncio.timeout(20):
        await opened(client, uri, "printf '\\033[31mred\\033[0m\\n'")
        tail = await run_cli(["tail", uri], host.home)
        assert tail.stdout is not None
        while "red" not in (line := (await tail.stdout.readline()).decode()):
            assert line
        tail.terminate()
        await tail.communicate()
        assert "\x1b" not in line
