"""`ahpkit mcp`: list, tools and call, as a person would type them. Logging in is tested with the servers."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.cli.mcp import effect, shown_result
from ahpkit.client import connect
from support import requirement
from support.process import HostProcess, finish_cli, host_process, run_cli
from support.waiting import BOUND

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAM = str(Path(__file__).parents[1] / "mcp_servers" / "plain_server.py")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    home = tmp_path_factory.mktemp("home")
    config = home / "host.toml"
    config.write_text(
        f'[[mcp.servers]]\nname = "test"\ncommand = {json.dumps([sys.executable, PROGRAM])}\n'
        f'[[mcp.servers]]\nname = "off"\ncommand = {json.dumps([sys.executable, PROGRAM])}\nenabled = false\n'
        '[[rules]]\ndecision = "deny"\nowner = "mcp:test"\ntool = "hang"\n'
    )
    options = ("--durability", "memory", "--root", str(home.parent), "--config", str(config))
    async with host_process(home, *options) as running:
        yield running


async def typed(host: HostProcess, *words: str) -> tuple[int, str, str]:
    return await finish_cli(["mcp", *words], host.home)


async def test_servers_are_listed_without_a_session_and_nothing_is_left(host: HostProcess) -> None:
    code, output, errors = await typed(host, "list", "--json")
    assert code == 0, errors
    listed: list[Any] = json.loads(output)
    assert {one["name"]: one["enabled"] for one in listed} == {"test": True, "off": False}
    states = {one["name"]: one["state"]["kind"] for one in listed}
    assert (states["test"], states["off"]) == ("ready", "stopped")
    async with connect(host.url, token=host.token) as client:
        assert await client.sessions() == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_command_that_is_ended_leaves_no_session_and_no_servers(host: HostProcess, signum: int) -> None:
    process = await run_cli(["mcp", "list", "--watch"], host.home)
    assert process.stdout is not None
    async with asyncio.timeout(BOUND):
        await process.stdout.readline()
        process.send_signal(signum)
        _, errors = await process.communicate()
    assert (process.returncode, errors) == (130, b"")
    async with connect(host.url, token=host.token) as client:
        assert await client.sessions() == []


@pytest.mark.parametrize(
    ("hints", "said"),
    [
        ({}, "may destroy"),
        ({"readOnlyHint": True, "idempotentHint": True}, "reads only"),
        ({"destructiveHint": False, "idempotentHint": True}, "changes, repeatable"),
        ({"openWorldHint": False}, "may destroy, nothing outside"),
    ],
)
async def test_a_tool_is_shown_with_what_it_says_about_itself(hints: dict[str, bool], said: str) -> None:
    assert effect({"name": "t", "annotations": hints}) == said


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "text", "text": ""}, ""),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, "(image, image/png)"),
        ({"type": "resource_link", "uri": "file:///a.txt", "name": "a"}, "a: file:///a.txt"),
        ({"type": "resource_link", "uri": "file:///a.txt", "name": "a", "title": "The a"}, "The a: file:///a.txt"),
        ({"type": "resource", "resource": {"uri": "test://a", "text": "all of it"}}, "all of it"),
        (
            {"type": "resource", "resource": {"uri": "test://a", "blob": "AAAA", "mimeType": "application/pdf"}},
            "(resource, test://a, application/pdf)",
        ),
        ({"type": "hologram"}, "(hologram)"),
    ],
)
async def test_every_part_of_a_result_is_shown_or_named(part: dict[str, Any], said: str) -> None:
    assert shown_result({"content": [part, {"type": "text", "text": "end"}]}) == f"{said}\nend"


async def test_a_result_that_is_structured_only_is_shown() -> None:
    assert json.loads(shown_result({"content": [], "structuredContent": [1, "ü"]})) == [1, "ü"]


@requirement("session:tool:annotation-defaults")
async def test_tools_are_listed_and_called_in_a_session(host: HostProcess) -> None:
    async with connect(host.url, token=host.token) as client:
        session = await client.create_session(provider="demo", working_directory=host.home.as_uri())
        await session.wait(lambda _: session.mcp_server("test").state["kind"] == "ready")
        code, output, errors = await typed(host, "tools", "test", "--session", session.uri, "--json")
        assert code == 0, errors
        assert "add" in [tool["name"] for tool in json.loads(output)["test"]]
        _, output, _ = await typed(host, "tools")
        [line] = [line for line in output.splitlines() if "The add tool" in line]
        assert "may destroy" in line  # It says nothing about itself.
        assert await typed(host, "call", "test", "add", '{"a": 2, "b": 3}') == (0, "5\n", "")
        code, output, _ = await typed(host, "call", "test", "fail", "--json")
        assert (code, json.loads(output)["isError"]) == (1, True)
        decisions = await client.approvals(session=session.uri)
        assert [one["tool"] for one in decisions] == ["add", "fail"]
        code, output, _ = await typed(host, "list")
        assert code == 0
        assert "off  (configuration)" in output
        await session.dispose()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("call", "nothing", "add"), "it has: test, off"),
        (("call", "test", "nothing"), "has no tool 'nothing'"),
        (("call", "test", "add", "no json"), "not valid JSON"),
        (("call", "test", "add", "[]"), "a JSON object is expected"),
        (("call", "test", "hang"), "A rule denies this"),
        (("tools", "off"), "off does not run (stopped)"),
        (("login", "test"), "there is no session in this directory to log in for"),
        (("list", "--session", "x", "--dir", "."), "--dir is for when no --session is given"),
    ],
)
async def test_what_cannot_be_done_is_said(host: HostProcess, words: tuple[str, ...], reason: str) -> None:
    code, _, errors = await typed(host, *words)
    assert code != 0
    assert reason in errors
