"""Terminals of chats: what a tool call says of a command, what stays readable, and what runs beside the turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import Turn
from ahpkit.host.terminals.chat_terminals import MAX_PREVIEW, command_result
from ahpkit.log.entry import Batch
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.terminal import TerminalCommandPart, TerminalState
from support import requirement
from support.bench import say
from support.raw_client import Json, RawClient
from support.terminals import Shell, TerminalBench, terminal_bench
from support.waiting import BOUND

STARTED = "2026-11-15T12:00:00.000Z"


class Runner:
    """An agent whose turns run their prompt as a command, and show the terminal in a tool call."""

    def __init__(self, bench: TerminalBench, client: RawClient, session: str, chat: str, directory: Path) -> None:
        self.bench = bench
        self.client = client
        self.session = session
        self.chat = chat
        self.directory = directory
        self.commands: list[Any] = []
        self._turns = 0
        bench.agent.script = self._run

    async def _run(self, turn: Turn) -> None:
        """`& command` leaves the command running."""
        left = turn.prompt.startswith("& ")
        claim: Any = {"kind": "session", "session": turn.chat.session_uri, "chat": turn.chat.uri}
        terminal = await self.bench.terminals.open_terminal(
            turn.chat.session_uri, turn.prompt.removeprefix("& "), env={}, cwd=self.directory, claim=claim
        )
        self.commands.append(terminal)
        call = turn.tool_call("run")
        shown: Any = [{"type": "terminal", "resource": terminal.uri, "title": "Terminal"}]
        call.running(tool_input=turn.prompt)
        call.content(shown)
        if not left:
            await terminal.wait_exit()
            await terminal.release()
        call.complete(content=shown)

    async def turn(self, command: str, chat: str | None = None) -> Json:
        """Have a command run; the terminal as the finished tool call shows it."""
        self._turns += 1
        chat = chat or self.chat
        await self.client.accepted(chat, say(command, f"t{self._turns}", startedAt=STARTED))
        await self.client.action(
            lambda said: said["action"]["type"] == "chat/turnComplete" and said["action"]["turnId"] == f"t{self._turns}"
        )
        state = await self.bench.state(self.client, chat)
        [part] = [part for part in state["turns"][-1]["responseParts"] if part["kind"] == "toolCall"]
        [block] = part["toolCall"]["content"]
        return block

    async def background(self) -> list[Json]:
        return (await self.bench.state(self.client, self.chat)).get("backgroundWork") or []

    async def background_is(self, count: int) -> list[Json]:
        """Wait until so much runs beside the turns."""
        async with asyncio.timeout(BOUND):
            while True:
                if len(listed := await self.background()) == count:
                    return listed
                await asyncio.sleep(0.01)


class Disk(MemoryStorage):
    """A storage that loses everything that comes after the crash of its host."""

    dead = False

    def commit(self, batch: Batch) -> None:
        if not self.dead:
            super().commit(batch)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
async def runner(work: Path, disk: Disk) -> AsyncGenerator[Runner]:
    async with terminal_bench(work, sockets=True, storage=disk, max_released=1) as bench, asyncio.timeout(2 * BOUND):
        client = await bench.client("ahp-root://", client_id="me", offer=["1.0.0"])
        session, chat = await bench.session(client, workingDirectories=[work.as_uri()])
        yield Runner(bench, client, session, chat, work)


@requirement("gen:tool:terminal-result")
async def test_a_finished_command_says_its_code_and_the_end_of_its_output(runner: Runner) -> None:
    block = await runner.turn("printf '\\033[31mred\\033[0m\\n'; exit 3")
    assert block["result"] == {"exitCode": 3, "preview": "red\n"}
    told = [said["action"] for said in runner.client.actions(runner.chat)]
    first = next(action for action in told if action["type"] == "chat/toolCallContentChanged")
    assert "result" not in first["content"][0]


@requirement("gen:tool:terminal-result")
async def test_a_long_output_is_cut_and_says_so_and_a_signal_gives_no_code(runner: Runner) -> None:
    block = await runner.turn("seq 1 5000; kill -9 $$")
    assert block["result"]["truncated"] is True
    assert len(block["result"]["preview"]) == MAX_PREVIEW
    assert "5000\n" in block["result"]["preview"]
    assert "exitCode" not in block["result"]


@requirement("gen:tool:terminal-result")
async def test_a_command_that_still_runs_has_no_result(runner: Runner) -> None:
    assert "result" not in await runner.turn("& read line")
    await runner.commands[0].kill()


@requirement("gen:tool:terminal-result")
def test_in_a_shell_that_lives_on_the_last_command_counts() -> None:
    state: TerminalState = {
        "title": "",
        "claim": {"kind": "client", "clientId": "c"},
        "lifecycle": {"status": "running"},
        "content": [{"type": "unclassified", "value": "$ "}],
    }
    assert command_result(state) is None
    part: TerminalCommandPart = {
        "type": "command",
        "commandId": "1",
        "commandLine": "x",
        "timestamp": 0,
        "output": "x",
        "isComplete": False,
    }
    assert command_result({**state, "content": [part]}) is None
    ended: TerminalCommandPart = {**part, "isComplete": True, "exitCode": 4}
    assert command_result({**state, "content": [part, ended]}) == {"exitCode": 4, "preview": "x"}


@requirement("gen:terminal:retained")
async def test_terminals_of_tool_results_stay_readable_also_after_a_restart(runner: Runner) -> None:
    """Many more than are listed, and one whose process the host never saw ending."""
    blocks = [await runner.turn(f"echo number {number}; exit {number}") for number in range(4)]
    lost = await runner.turn("& echo left; read line")
    shell = Shell(runner.client, lost["resource"])
    if "left" not in str((await shell.subscribe())["content"]):
        await shell.shows("left")
    await check_readable(runner, blocks)
    runner.bench.renew()
    await runner.bench.restart()
    runner.client = await runner.bench.client("ahp-root://", client_id="again", offer=["1.0.0"])
    await check_readable(runner, blocks)
    state = await runner.bench.state(runner.client, lost["resource"])
    assert state["lifecycle"]["status"] == "exited"
    assert "left" in str(state["content"])
    assert (await runner.bench.state(runner.client, "ahp-root://"))["terminals"] == []


async def check_readable(runner: Runner, blocks: list[Json]) -> None:
    for number, block in enumerate(blocks):
        state = await runner.bench.state(runner.client, block["resource"])
        assert state["lifecycle"] == {"status": "exited", "exitCode": number}
        assert state["content"] == [{"type": "unclassified", "value": f"number {number}\r\n"}]


@requirement("gen:terminal:retained")
async def test_they_go_with_their_chat_and_with_their_session(runner: Runner) -> None:
    first = await runner.turn("echo first")
    await runner.client.ask("createChat", runner.session, chat="ahp-chat:/more")
    await runner.client.ask("subscribe", "ahp-chat:/more")
    second = await runner.turn("echo second", "ahp-chat:/more")
    await runner.client.ask("disposeChat", "ahp-chat:/more")
    assert (await runner.client.refused("subscribe", second["resource"]))["code"] == -32008
    assert (await runner.bench.state(runner.client, first["resource"]))["lifecycle"]["status"] == "exited"
    await runner.client.ask("disposeSession", runner.session)
    assert (await runner.client.refused("subscribe", first["resource"]))["code"] == -32008


@requirement("gen:chat:background-outlives-turn")
async def test_a_command_that_outlives_its_turn_is_background_work_until_it_ends(runner: Runner) -> None:
    await runner.turn("& echo $$; read line")
    [work] = await runner.background_is(1)
    assert work["startedAt"].endswith("Z")
    assert work == {
        "kind": "shell",
        "id": work["id"],
        "label": "echo $$; read line",
        "command": "echo $$; read line",
        "terminal": runner.commands[0].uri,
        "startedAt": work["startedAt"],
    }
    await runner.turn("true")
    assert await runner.background() == [work]
    await runner.commands[0].kill()
    await runner.background_is(0)


@requirement("gen:chat:background-outlives-turn", "gen:terminal:retained")
async def test_after_a_crash_nothing_is_said_to_run_and_the_output_is_there(runner: Runner, disk: Disk) -> None:
    block = await runner.turn("& echo $$ said; exec sleep 300")
    await runner.background_is(1)
    shell = Shell(runner.client, block["resource"])
    if "said" not in str((await shell.subscribe())["content"]):
        await shell.shows("said")
    disk.dead = True
    runner.bench.renew()
    await runner.bench.stop()
    disk.dead = False
    await runner.bench.start()
    runner.client = await runner.bench.client("ahp-root://", client_id="again", offer=["1.0.0"])
    assert await runner.background() == []
    state = await runner.bench.state(runner.client, block["resource"])
    assert state["lifecycle"] == {"status": "exited"}
    assert "said" in str(state["content"])


async def test_a_session_does_not_rest_while_a_command_of_its_agent_runs(runner: Runner) -> None:
    await runner.turn("& read line")
    keeps = runner.bench.host.registered.sessions.is_busy
    assert any(busy(runner.session) for busy in keeps)
    await runner.commands[0].kill()
    assert not any(busy(runner.session) for busy in keeps)


async def test_the_terminals_of_a_chat_that_moves_belong_to_its_new_session(runner: Runner) -> None:
    await runner.client.ask("createChat", runner.session, chat="ahp-chat:/more")
    await runner.client.ask("subscribe", "ahp-chat:/more")
    over = await runner.turn("echo over", "ahp-chat:/more")
    claim = {"kind": "session", "session": runner.session, "chat": "ahp-chat:/more"}
    shell = await Shell.open(runner.client, "shell", claim=claim)
    moved = await runner.client.ask("moveChat", "ahp-chat:/more", destination={"kind": "newSession"})
    for uri in (over["resource"], shell.uri):
        held = (await runner.bench.state(runner.client, uri))["claim"]
        assert (held["session"], held["chat"]) == (moved["session"], "ahp-chat:/more")
    listed = (await runner.bench.state(runner.client, "ahp-root://"))["terminals"]
    assert {one["claim"]["session"] for one in listed} == {moved["session"]}
    await runner.client.ask("disposeSession", runner.session)
    assert (await runner.bench.state(runner.client, over["resource"]))["lifecycle"]["status"] == "exited"
    again = await runner.turn("echo there", "ahp-chat:/more")
    state = await runner.bench.state(runner.client, again["resource"])
    assert state["claim"]["session"] == moved["session"]
