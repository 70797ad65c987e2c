"""Lists with `--watch`: shown again when they change. A real host, and what changes it from another terminal."""

import asyncio
import json
import re
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.process import HostProcess, finish_cli, run_cli
from support.shell import shell
from support.template import Started
from support.terminal import terminal
from support.waiting import BOUND

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Watched:
    """A command that prints a list as one line of JSON, and another line for each change."""

    def __init__(self, process: Started) -> None:
        assert process.stdout is not None
        self._lines = process.stdout

    async def next(self) -> Any:
        async with asyncio.timeout(BOUND):
            line = await self._lines.readline()
        assert line, "the command has ended"
        return json.loads(line)

    async def until(self, text: str) -> None:
        while text not in json.dumps(await self.next()):
            pass


@asynccontextmanager
async def watched(host: HostProcess, *command: str, **environment: str) -> AsyncGenerator[Watched]:
    process = await run_cli([*command, "--watch", "--json"], host.home, **environment)
    try:
        yield Watched(process)
    finally:
        process.kill()
        await process.communicate()


async def run(host: HostProcess, *arguments: str) -> str:
    code, output, errors = await finish_cli(arguments, host.home)
    assert code == 0, errors
    return output.strip()


async def test_usage_grows_with_the_turns(host: HostProcess) -> None:
    async with watched(host, "usage", "--by", "agent") as usage:
        before = await usage.next()
        await run(host, "prompt", "/usage", "--keep")
        assert [one["turns"] for one in await usage.next()] == [sum(one["turns"] for one in before) + 1]


async def test_rules_and_decisions_appear_as_they_are_made(host: HostProcess) -> None:
    async with watched(host, "rules", "list") as rules, watched(host, "approvals", "log") as log:
        await rules.next()
        await log.next()
        await run(host, "rules", "add", "deny", "--owner", "mcp:nobody", "--tool", "harm")
        await rules.until("harm")
        session = await run(host, "prompt", '/tool calculate {"expression": "6*7"}', "--no-wait")
        while (await finish_cli(["approve", session], host.home))[0]:
            pass  # It does not wait yet.
        await log.until("allowed")


async def test_servers_of_a_session_are_shown_as_they_are_found(host: HostProcess) -> None:
    folder = host.home / "watched"
    folder.mkdir()
    session = await run(host, "prompt", "hello", "--dir", str(folder), "--no-wait")
    async with watched(host, "mcp", "list", "--session", session) as servers:
        await servers.next()
        (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"stranger": {"command": "true"}}}))
        await servers.until("stranger")


async def test_customizations_of_a_directory_are_read_again(host: HostProcess) -> None:
    folder = host.home / "customized"
    folder.mkdir()
    async with watched(host, "customizations", str(folder)) as tree:
        await tree.next()
        (folder / "AGENTS.md").write_text("Use tabs.\n")
        await tree.until("AGENTS.md")


async def test_devices_and_hosts_are_looked_for_again(host: HostProcess) -> None:
    async with watched(host, "devices", "list") as devices, watched(host, "status") as status:
        assert await devices.next() == []
        [before] = await status.next()
        link = re.sub(r"ahpkit-\w+\.localhost", "127.0.0.1", await run(host, "open", "--print"))
        await asyncio.to_thread(lambda: urllib.request.urlopen(link).close())
        assert len(await devices.next()) == 1
        await run(host, "prompt", "one more session", "--keep")
        [after] = await status.next()
        assert after["sessions"] == before["sessions"] + 1


async def test_an_agent_is_seen_when_it_is_installed(host: HostProcess, tmp_path: Path) -> None:
    async with watched(host, "agents", PATH=str(tmp_path)) as agents:
        states = {one["name"]: one["state"] for one in await agents.next()}
        assert states["goose"] == "missing"
        program = tmp_path / "goose"
        program.write_text("#!/bin/sh\necho 1.2.3\n")
        program.chmod(0o755)
        while {one["name"]: one["state"] for one in await agents.next()}["goose"] == "missing":
            pass


@pytest.mark.parametrize("command", ["rules list", "status"])
async def test_it_ends_with_the_reader_of_its_pipe_and_does_not_wait_for_a_change(
    host: HostProcess, command: str
) -> None:
    code, output, errors = await shell(f"ahpkit {command} --watch --json | head -1", host.home)
    assert (code, errors, output.count("\n")) == (0, "", 1)


@pytest.mark.parametrize("command", [["rules", "list"], ["devices", "list"]])
async def test_on_a_terminal_one_list_takes_the_place_of_the_other_until_ctrl_c(
    host: HostProcess, command: list[str]
) -> None:
    await run(host, "rules", "add", "deny", "--owner", "mcp:nobody", "--tool", "harm")
    async with terminal([*command, "--watch"], host.home, columns=160) as person:
        await person.until(lambda screen: any(text in screen.text for text in ("(mcp:nobody)", "last seen", "let in")))
        if command[0] == "rules":
            await run(host, "rules", "add", "allow", "--owner", "mcp:nobody", "--tool", "look")
            await person.until(lambda screen: screen.text.count("harm") == 1 and "look" in screen.text)
        person.interrupt()
        assert await person.exited() == 130
