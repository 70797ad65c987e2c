"""Commands that agents run: what the agent gets, and what people see of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.terminals.terminal import AgentTerminal
from ahpkit.platform.pty import ExitStatus
from ahpkit.protocol.errors import Conflict, InvalidParams, PermissionDenied, SessionNotFound
from support.raw_client import Json, RawClient
from support.terminals import Shell, TerminalBench, root_terminals, terminal_bench
from support.waiting import BOUND, gone, is_alive


class Agents:
    """Opens terminals the way the agent of one session does."""

    def __init__(self, bench: TerminalBench, client: RawClient, session: str, directory: Path) -> None:
        self.bench = bench
        self.client = client
        self.session = session
        self.directory = directory

    async def run(self, command: str, *args: str, **options: Any) -> AgentTerminal:
        options = {"env": {}, "cwd": self.directory, **options}
        return await self.bench.terminals.open_terminal(self.session, command, args, **options)

    async def state(self, uri: str) -> Json:
        """What a client that comes now is shown."""
        await self.bench.host.services.durable()
        return await self.bench.state(self.client, uri)

    async def printed(self, terminal: AgentTerminal, text: str) -> None:
        """Wait until a command has printed `text`."""
        if text not in str((await self.state(terminal.uri))["content"]):
            await Shell(self.client, terminal.uri).shows(text)


@pytest.fixture
def limits() -> dict[str, Any]:
    """Limits of the host that a test sets."""
    return {}


@pytest.fixture
async def agents(tmp_path: Path, limits: dict[str, Any]) -> AsyncGenerator[Agents]:
    directory = tmp_path / "work"
    directory.mkdir()
    async with terminal_bench(directory, enabled=False, **limits) as bench, asyncio.timeout(BOUND):
        client = await bench.client("ahp-root://", client_id="me")
        session, _ = await bench.session(client, workingDirectory=directory.as_uri())
        yield Agents(bench, client, session, directory)


async def test_an_agent_gets_plain_output_and_the_code(agents: Agents) -> None:
    script = "printf '\\033[31mred\\033[0m\\n'; pwd; echo $GREETING; exit 3"
    terminal = await agents.run("sh", "-c", script, env={"GREETING": "hi"})
    assert await terminal.wait_exit() == ExitStatus(3)
    shown = terminal.output()
    assert (shown.text, shown.truncated, shown.exit) == (f"red\n{agents.directory}\nhi\n", False, ExitStatus(3))


async def test_people_see_the_colours_and_the_session_that_holds_it(agents: Agents) -> None:
    terminal = await agents.run("printf '\\033[31mred\\033[0m'")
    await terminal.wait_exit()
    state = await agents.state(terminal.uri)
    assert state["title"] == "printf '\\033[31mred\\033[0m'"
    assert state["claim"].items() >= {"kind": "session", "session": agents.session}.items()
    assert state["content"] == [{"type": "unclassified", "value": "\x1b[31mred\x1b[0m"}]
    assert state["exitCode"] == 0
    assert (await root_terminals(agents.client, 1))[0]["resource"] == terminal.uri


async def test_a_claim_may_name_the_tool_call(agents: Agents) -> None:
    claim = {"kind": "session", "session": agents.session, "turnId": "t", "toolCallId": "c"}
    terminal = await agents.run("true", claim=claim)
    await terminal.wait_exit()
    assert (await agents.state(terminal.uri))["claim"].items() >= claim.items()


async def test_output_can_be_read_while_the_command_runs(agents: Agents) -> None:
    terminal = await agents.run("echo first; read line; echo $line")
    await agents.printed(terminal, "first")
    assert (terminal.output().text, terminal.output().exit) == ("first\n", None)
    await terminal.kill()


async def test_the_output_kept_is_the_end_of_it_within_the_limit(agents: Agents) -> None:
    terminal = await agents.run("seq 1 1000; printf ü", output_limit=11)
    await terminal.wait_exit()
    shown = terminal.output()
    assert (shown.text, shown.truncated) == ("999\n1000\nü", True)


async def test_a_line_for_the_shell_is_run_by_one(agents: Agents) -> None:
    terminal = await agents.run("echo a | tr a b && exit 4")
    assert await terminal.wait_exit() == ExitStatus(4)
    assert terminal.output().text == "b\n"


async def test_kill_ends_the_command_and_keeps_the_output(agents: Agents) -> None:
    terminal = await agents.run("sleep 300 & echo $!; echo ready; wait")
    await agents.printed(terminal, "ready")
    pid = int(terminal.output().text.split()[0])
    await terminal.kill()
    assert not is_alive(pid)
    assert await terminal.wait_exit() == ExitStatus(None, "SIGHUP")
    assert terminal.output().text == f"{pid}\nready\n"
    assert terminal.output().exit == ExitStatus(None, "SIGHUP")


async def test_after_release_people_may_still_look(agents: Agents) -> None:
    terminal = await agents.run("echo seen; sleep 300")
    await agents.printed(terminal, "seen")
    await terminal.release()
    await terminal.release()
    state = await agents.state(terminal.uri)
    assert state["content"][0]["value"].startswith("seen\r\n")
    assert (await terminal.wait_exit()).signal == "SIGHUP"


@pytest.mark.parametrize("limits", [{"max_released": 2}])
async def test_of_released_terminals_only_the_last_are_kept(agents: Agents) -> None:
    used = [await agents.run("true") for _ in range(3)]
    needed = await agents.run("true")
    for terminal in used:
        await terminal.release()
    listed = (await agents.state("ahp-root://"))["terminals"]
    assert [found["resource"] for found in listed] == [terminal.uri for terminal in [*used[1:], needed]]
    assert (await agents.client.refused("subscribe", used[0].uri))["code"] == -32008


async def test_clients_look_but_do_not_touch(agents: Agents) -> None:
    terminal = await agents.run("cat")
    held = "this terminal is held by a session"
    assert await agents.client.rejected(terminal.uri, {"type": "terminal/input", "data": "x"}) == held
    assert await agents.client.rejected(terminal.uri, {"type": "terminal/cleared"}) == held
    claim = {"kind": "client", "clientId": "me"}
    assert await agents.client.rejected(terminal.uri, {"type": "terminal/claimed", "claim": claim}) == held


async def test_a_session_that_is_disposed_of_ends_its_commands(agents: Agents) -> None:
    terminal = await agents.run("echo $$; echo ready; exec sleep 300")
    await agents.printed(terminal, "ready")
    pid = int(terminal.output().text.split()[0])
    await agents.client.ask("disposeSession", agents.session)
    await gone(pid)
    assert await root_terminals(agents.client, 0) == []


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"cwd": Path("/etc")}, PermissionDenied, "not among the places you may read"),
        ({"cwd": Path("relative")}, InvalidParams, "not absolute"),
    ],
)
async def test_a_place_outside_the_workspace_is_refused(
    agents: Agents, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        await agents.run("true", **options)


async def test_what_cannot_be_run_is_refused_by_name(agents: Agents) -> None:
    with pytest.raises(InvalidParams, match="no program 'no-such-program'"):
        await agents.run("no-such-program", "x")
    terminal = await agents.run("no-such-program")
    assert await terminal.wait_exit() == ExitStatus(127)
    with pytest.raises(Conflict, match="cannot be started"):
        await agents.run("sh", "-c", "a\0b")
    agents.session = "ahp-session:/other"
    with pytest.raises(SessionNotFound):
        await agents.run("true")


async def test_the_commands_title_stays_whatever_it_calls_itself(agents: Agents) -> None:
    terminal = await agents.run("printf '\\033]0;other\\007'")
    await terminal.wait_exit()
    assert (await agents.state(terminal.uri))["title"].startswith("printf")
