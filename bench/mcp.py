"""What a call of an MCP tool costs through the host, against the same call made directly.

    python bench/mcp.py [--calls 300] [--rounds 5] [--quick]

An agent process calls a tool of a server process with the official SDK, one call after the other: (1) directly, over
stdio; (2) through the host, whose command the agent starts as its MCP server: our command, the gate with a rule that
allows the call, one card with start, approval and result in the durable log, and the host's own connection to the
server. A client watches from a third process. Beside them (3), one commit: the time until that client sees a durable
action stored. The target is (2) <= (1) + one more SDK round trip + one commit.

For comparison (4), a proxy that does nothing else: a server of the SDK that passes each call to a client of the SDK.
"""

from __future__ import annotations

# ruff: noqa: E402
import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).resolve().parent]
"""This file has the same name as the SDK's package, so its folder must not be searched first."""

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from ahpkit.agents.python import PythonAgent
from ahpkit.client import connect
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Turn
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.datadir import open_storage
from ahpkit.mcp.feature import McpServers
from ahpkit.transports.auth import Authenticator

WARM_UP = 20
"""Calls before those that count."""
SERVER = (sys.executable, __file__, "--role", "server")


async def serve() -> None:
    """The server: one tool that echoes."""

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return types.ListToolsResult(tools=[types.Tool(name="echo", description="Says it again", input_schema=schema)])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        said = str((params.arguments or {}).get("text"))
        return types.CallToolResult(content=[types.TextContent(type="text", text=said)])

    server: Server[Any] = Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def proxy() -> None:
    """A server and a client of the SDK, with nothing between them."""
    parameters = StdioServerParameters(command=SERVER[0], args=list(SERVER[1:]), env=dict(os.environ))
    async with Client(parameters, cache=None) as client:
        tools = await client.list_tools()

        async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
            return tools

        async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await client.call_tool(params.name, params.arguments)

        server: Server[Any] = Server("proxy", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


async def call(tool: str, calls: int, command: Sequence[str]) -> None:
    """The agent: prints the milliseconds of each call."""
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    spent: list[float] = []
    async with Client(parameters, cache=None) as client:
        await client.list_tools()
        for number in range(calls + WARM_UP):
            before = time.perf_counter()
            result = await client.call_tool(tool, {"text": f"hello {number}"})
            spent.append((time.perf_counter() - before) * 1000)
            assert not result.is_error, result
    print(json.dumps(spent[WARM_UP:]))


async def agent_process(tool: str, calls: int, command: Sequence[str], env: Mapping[str, str]) -> list[float]:
    role = (sys.executable, __file__, "--role", "agent", "--tool", tool, "--calls", str(calls), *command)
    process = await asyncio.create_subprocess_exec(
        *role, stdout=asyncio.subprocess.PIPE, env={**os.environ, **env}, limit=2**24
    )
    printed, _ = await process.communicate()
    return json.loads(printed)


async def direct(calls: int) -> list[float]:
    return await agent_process("echo", calls, ("--", *SERVER), {})


async def through_proxy(calls: int) -> list[float]:
    return await agent_process("echo", calls, ("--", sys.executable, __file__, "--role", "proxy"), {})


async def through_host(calls: int, directory: Path) -> tuple[list[float], list[float]]:
    """Calls through a host with a durable log, and commits of the same host."""
    measured: list[float] = []

    async def run(turn: Turn) -> None:
        [offer] = await turn.chat.mcp_servers()
        config = dict(offer.config)
        command = ("--", config["command"], *config["args"])
        measured.extend(await agent_process("bench_echo", calls, command, config["env"]))

    declared = {"name": "bench", "command": SERVER[0], "args": list(SERVER[1:])}
    work = directory / "work"
    work.mkdir()
    customizations = Customizations(CustomizationSettings(default_directory=work, servers=[declared]))
    host = Host(
        open_storage(directory, "full"),
        agents=[PythonAgent(run, name="bench")],
        features=[customizations, McpServers(customizations.servers)],
        config=HostConfig(default_directory=work),
    )
    async with host, serve_http(host.serve, auth=Authenticator(None)) as server:
        role = (sys.executable, __file__, "--role", "person", "--calls", str(calls), server.url, work.as_uri())
        process = await asyncio.create_subprocess_exec(*role, stdout=asyncio.subprocess.PIPE, limit=2**24)
        printed, _ = await process.communicate()
    return measured, json.loads(printed)


async def watch(calls: int, url: str, directory: str) -> None:
    """The client that watches: has the agent work, and prints the milliseconds of each commit."""
    async with connect(url) as client:
        await client.add_rule("allow", owner="mcp:bench")
        session = await client.create_session(working_directory=directory)
        chat = await session.chat()
        await chat.ask("go")
        print(json.dumps([await commit(session, number) for number in range(calls)]))


async def commit(session: Any, number: int) -> float:
    before = time.perf_counter()
    await session.rename(f"Title {number}").accepted()
    return (time.perf_counter() - before) * 1000


def report(calls: int, rounds: int) -> bool:
    direct_ms: list[float] = []
    proxy_ms: list[float] = []
    host_ms: list[float] = []
    commit_ms: list[float] = []
    for _ in range(rounds):
        direct_ms += asyncio.run(direct(calls))
        proxy_ms += asyncio.run(through_proxy(calls))
        with tempfile.TemporaryDirectory() as directory:
            through, commits = asyncio.run(through_host(calls, Path(directory)))
        host_ms, commit_ms = host_ms + through, commit_ms + commits
    medians = (statistics.median(values) for values in (direct_ms, proxy_ms, host_ms, commit_ms))
    one, passed_on, through, stored = medians
    allowed = 2 * one + stored
    print(f"{calls} calls, {rounds} rounds, medians")
    print(f"directly                 {one:7.2f} ms")
    print(f"through a bare proxy     {passed_on:7.2f} ms   {passed_on / one:5.2f} x direct")
    print(f"one durable action       {stored:7.2f} ms")
    print(f"through the host         {through:7.2f} ms   {through / one:5.2f} x direct")
    met = through <= allowed
    print(f"target: <= direct + one round trip + one commit = {allowed:.2f} ms: {'met' if met else 'MISSED'}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--role", choices=["server", "agent", "person", "proxy"])
    parser.add_argument("--tool", default="echo")
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    if given.role == "server":
        asyncio.run(serve())
    elif given.role == "proxy":
        asyncio.run(proxy())
    elif given.role == "agent":
        asyncio.run(call(given.tool, given.calls, given.command))
    elif given.role == "person":
        asyncio.run(watch(given.calls, *given.command))
    else:
        report(*((100, 2) if given.quick else (given.calls, given.rounds)))


if __name__ == "__main__":
    main()
