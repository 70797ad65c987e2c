import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp.access import TerminalOutput
from ahpkit.agents.acp.callbacks import Callbacks
from ahpkit.agents.acp.mapping import SessionMapper
from ahpkit.host.agent import Chat
from ahpkit.testing.recording import RecordingChat, RecordingTurn
from ahpkit.wire.errors import InvalidParams, MethodNotFound
from support.scripted_acp import Scripted
from support.waiting import until


class Terminals:
    """Stands in for the host's terminals."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def create(
        self,
        command: str,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        output_limit: int | None,
        turn_id: str | None = None,
    ) -> str:
        self.calls.append(("create", command, list(args), dict(env), cwd, output_limit))
        return f"term-{len(self.calls)}"

    async def output(self, id: str) -> TerminalOutput:
        return TerminalOutput("shown", truncated=True)

    async def wait(self, id: str) -> TerminalOutput:
        return TerminalOutput("shown", exit_code=2, exited=True)

    async def kill(self, id: str) -> None:
        self.calls.append(("kill", id))

    async def release(self, id: str) -> None:
        self.calls.append(("release", id))

    def uri(self, id: str) -> str | None:
        return f"ahp-terminal:/{id}"


def callbacks(terminals: Terminals | None = None) -> Callbacks:
    mapper = SessionMapper(RecordingChat())
    return Callbacks(mapper, working_directory=Path("/w"), policy="ask", files=None, terminals=terminals)


async def test_without_access_files_and_terminals_are_unknown_methods() -> None:
    for method in ("fs/read_text_file", "fs/write_text_file", "terminal/create", "mcp/connect"):
        with pytest.raises(MethodNotFound, match=f"does not serve {method}"):
            await callbacks().serve(method, {})


async def test_a_terminal_is_created_watched_and_released() -> None:
    terminals = Terminals()
    served = callbacks(terminals)
    created = await served.serve(
        "terminal/create",
        {"command": "ls", "args": ["-l"], "env": [{"name": "A", "value": "b"}], "outputByteLimit": 10},
    )
    id = {"terminalId": created["terminalId"]}

    assert await served.serve("terminal/output", id) == {"output": "shown", "truncated": True}
    assert await served.serve("terminal/wait_for_exit", id) == {"exitCode": 2, "signal": None}
    assert await served.serve("terminal/kill", id) == {}
    assert await served.serve("terminal/release", id) == {}
    assert terminals.calls == [
        ("create", "ls", ["-l"], {"A": "b"}, Path("/w"), 10),
        ("kill", "term-1"),
        ("release", "term-1"),
    ]


async def test_a_session_reaches_its_own_terminals_only_and_leaves_none() -> None:
    terminals = Terminals()
    served = callbacks(terminals)
    await served.serve("terminal/create", {"command": "ls", "cwd": "/elsewhere"})

    with pytest.raises(InvalidParams, match="no terminal 'term-9'"):
        await served.serve("terminal/output", {"terminalId": "term-9"})
    with pytest.raises(InvalidParams, match="command: expected string"):
        await served.serve("terminal/create", {})
    await served.release()

    assert terminals.calls[-1] == ("release", "term-1")


async def test_terminals_are_announced_and_linked_in_tool_calls_when_the_host_has_them(scripted: Scripted) -> None:
    terminals = Terminals()

    def given(chat: Chat) -> Terminals:
        return terminals

    shown = [{"type": "terminal", "terminalId": "term-1"}]
    agent = scripted.agent(
        given={"terminals": given},
        turns=[
            [
                {"request": "terminal/create", "params": {"command": "ls"}},
                {
                    "update": {
                        "sessionUpdate": "tool_call",
                        "toolCallId": "t",
                        "status": "in_progress",
                        "content": shown,
                    }
                },
            ]
        ],
    )
    chat = scripted.chat()
    opened = await agent.open(chat)
    turn = RecordingTurn("x", chat=chat)
    await opened.run(turn)
    await opened.aclose()

    linked = {"type": "terminal", "resource": "ahp-terminal:/term-1", "title": "Terminal"}
    assert ("content", "t", [linked]) in turn.said
    assert scripted.received("initialize")[0]["clientCapabilities"]["terminal"] is True
    assert ("release", "term-1") in terminals.calls


async def test_a_cancel_ends_the_commands_of_the_turn_that_the_agent_leaves_running(scripted: Scripted) -> None:
    terminals = Terminals()

    def given(chat: Chat) -> Terminals:
        return terminals

    create = {"request": "terminal/create", "params": {"command": "sleep"}}
    running = [create, {"text": "started"}, {"wait_cancel": True}, {"stop": "cancelled"}]
    chat = scripted.chat()
    opened = await scripted.agent(given={"terminals": given}, turns=[[create], running]).open(chat)
    await opened.run(RecordingTurn("leave one in the background", chat=chat))
    turn = RecordingTurn("run another", chat=chat)
    task = asyncio.create_task(opened.run(turn))
    await until(lambda: turn.answer == "started")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [call for call in terminals.calls if call[0] == "kill"] == [("kill", "term-2")]
