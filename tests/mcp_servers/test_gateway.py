"""The host as an MCP server, over the real command that agents start: tools, changes, cancellation, the secret."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from opentelemetry import trace

from ahpkit.mcp.gateway import Gateway
from ahpkit.mcp.gateway_http import GatewayHttp, HttpAccess
from ahpkit.mcp.gateway_socket import GatewaySocket, SocketAccess
from ahpkit.mcp.handover import SECRET, TAKEN, named
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import MAX_LISTED, Owner, Tool
from support import requirement
from support.waiting import until

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
HELLO = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    '"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
CALL_WAIT = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{}}}\n'
ERAS = pytest.mark.parametrize("era", ["legacy", "auto", "legacy+http", "auto+http"])


def tool(name: str) -> Tool:
    definition = {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}}
    return Tool(name, Owner("mcp", "s", "s"), name, cast("ToolDefinition", definition))


class Session:
    """A session with tools that echo, wait or are gone."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()

    def tools(self) -> Sequence[Tool]:
        return [tool(name) for name in self.names]

    def has_tool(self, name: str) -> bool:
        return any(tool.name == name for tool in self.tools())

    async def settled(self) -> None:
        """Nothing is on its way."""

    async def call(self, name: str, arguments: JsonObject, on_progress: Callable[[str], None]) -> JsonObject:
        if name == "wait":
            self.waiting.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if name == "ask":
            on_progress("a person decides")
            await asyncio.sleep(arguments.get("seconds", 0))
        return {"content": [{"type": "text", "text": f"{name} {arguments}"}], "structuredContent": {"n": 1}}

    async def read(self, uri: str) -> JsonObject:
        return {"contents": [{"uri": uri, "text": {"skill://a": "Be kind."}[uri]}]}

    def resources(self) -> Sequence[JsonObject]:
        return [{"name": "a", "uri": "skill://a"}]


def starts(way: SocketAccess) -> StdioServerParameters:
    return StdioServerParameters(command=way.command, args=list(way.args), env=way.env)


@asynccontextmanager
async def connected(session: Session, era: str, **options: Any) -> AsyncGenerator[tuple[Client, Gateway]]:
    """An agent of one era; `legacy+http` reaches the gateway by its URL."""
    gateway = Gateway(session, beat=0.05)
    era, _, by_http = era.partition("+")
    if by_http:
        async with GatewayHttp() as web, by_url(await web.admit(gateway), era, **options) as client:
            yield client, gateway
        return
    async with GatewaySocket() as server:
        with server.admit(gateway) as way:
            async with Client(starts(way), mode=era, cache=None, **options) as client:
                yield client, gateway


@asynccontextmanager
async def by_url(way: HttpAccess, era: str, **options: Any) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=way.headers, timeout=30) as http,
        Client(streamable_http_client(way.url, http_client=http), mode=era, cache=None, **options) as client,
    ):
        yield client


async def test_only_an_agent_with_the_secret_comes_in_by_http() -> None:
    gateway = Gateway(Session("add"))
    async with GatewayHttp() as server, httpx2.AsyncClient() as http:
        way = await server.admit(gateway)
        assert way.headers["Authorization"].removeprefix("Bearer ") not in repr(way)
        hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for headers, path, status in (
            ({}, "", 401),
            ({"Authorization": "Bearer wrong"}, "", 401),
            ({**way.headers, "Origin": "http://evil.example"}, "", 403),
            ({**way.headers, "Host": "evil.example"}, "", 403),
            (way.headers, "/elsewhere", 404),
        ):
            answer = await http.post(f"{way.url}{path}", json=hello, headers=headers)
            assert (answer.status_code, answer.content) == (status, b"")
        async with by_url(way, "legacy") as client:
            assert (await client.list_tools()).tools
        way.close()
        await until(lambda: not server._managers)  # pyright: ignore[reportPrivateUsage]  # Who is served is not public.
        assert (await http.post(way.url, json=hello, headers=way.headers)).status_code == 401


@ERAS
async def test_an_agent_lists_and_calls_tools(era: str) -> None:
    async with connected(Session("add", "show"), era) as (client, _):
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == ["add", "show", "find_tool", "call_tool"]
        result = await client.call_tool("add", {"a": 1})
        assert result.content[0].text == "add {'a': 1}"  # type: ignore[union-attr]  # It is text.
        assert result.structured_content == {"n": 1}
        read = await client.read_resource("skill://a")
        assert read.contents[0].text == "Be kind."  # type: ignore[union-attr]  # It is text.


@ERAS
async def test_changes_are_told(era: str) -> None:
    session, news = Session("add"), asyncio.Event()

    async def heard(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            news.set()

    async with connected(session, era, message_handler=heard) as (client, gateway):
        await client.list_tools()

        async def change() -> None:
            session.names.append("more")
            await gateway.changed()
            async with asyncio.timeout(20):
                await news.wait()

        if era.startswith("legacy"):
            await change()
        else:
            async with client.listen(tools_list_changed=True):
                await change()
        assert "more" in [tool.name for tool in (await client.list_tools()).tools]


@ERAS
async def test_giving_up_a_call_ends_it(era: str) -> None:
    session = Session("wait")
    async with connected(session, era) as (client, _):
        call = asyncio.create_task(client.call_tool("wait", {}))
        async with asyncio.timeout(20):
            await session.waiting.wait()
            call.cancel()
            await session.cancelled.wait()
        await asyncio.gather(call, return_exceptions=True)


async def test_an_agent_that_goes_away_ends_its_calls() -> None:
    session = Session("wait")
    async with connected(session, "auto") as (client, _):
        call = asyncio.create_task(client.call_tool("wait", {}))
        async with asyncio.timeout(20):
            await session.waiting.wait()
    async with asyncio.timeout(20):
        await session.cancelled.wait()
    await asyncio.gather(call, return_exceptions=True)


@ERAS
async def test_signs_of_life_keep_a_time_limit_away(era: str) -> None:
    heard: list[str | None] = []
    enough = asyncio.Event()

    async def waits(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)
        if len(heard) > 2:
            enough.set()

    async with connected(Session("ask"), era) as (client, _):
        call = asyncio.create_task(client.call_tool("ask", {"seconds": 60}, progress_callback=waits))
        async with asyncio.timeout(20):
            await enough.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    assert set(heard) == {"a person decides"}


async def test_a_tool_that_has_just_gone_is_an_error_with_advice() -> None:
    session = Session("add")
    async with connected(session, "auto") as (client, _):
        session.names.clear()
        result = await client.call_tool("add", {})
        assert result.is_error
        assert "find_tool" in result.content[0].text  # type: ignore[union-attr]  # It is text.


async def test_very_many_tools_are_found_not_listed() -> None:
    session = Session(*(f"tool_{number}" for number in range(MAX_LISTED + 1)))
    async with connected(session, "auto") as (client, _):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["find_tool", "call_tool"]
        found = await client.call_tool("find_tool", {"query": "tool_77"})
        assert "tool_77" in found.content[0].text  # type: ignore[union-attr]  # It is text.
        called = await client.call_tool("call_tool", {"name": "tool_77", "arguments": {"x": 1}})
        assert called.content[0].text == "tool_77 {'x': 1}"  # type: ignore[union-attr]  # It is text.
        written = await client.call_tool("call_tool", {"name": "tool_77", "arguments": '{"x": 2}'})
        assert "tool_77 {'x': 2}" in str(written.content)
        for wrong in ("[1]", "nonsense", [1], 7):
            refused = await client.call_tool("call_tool", {"name": "tool_77", "arguments": wrong})
            assert refused.is_error
            assert "nothing was called" in str(refused.content)
        missing = await client.call_tool("call_tool", {"name": "nothing"})
        assert missing.is_error


async def test_the_secret_is_not_on_the_command_line_and_is_needed() -> None:
    refusal = b"the host does not take this connection: its session has ended, or has too many of them\n"
    async with GatewaySocket() as server:
        with server.admit(Gateway(Session("add"))) as way:
            secret = next(iter(way.env.values()))
            assert secret not in " ".join(way.args)
            assert secret not in repr(way)
            assert await _ending(way, "wrong") == (b"", 1, refusal)
            answer, *ending = await _ending(way, secret)
            assert (b'"result"' in answer, ending) == (True, [0, b""])
        assert await _ending(way, secret) == (b"", 1, refusal)
    answer, code, said = await _ending(way, secret)
    assert (answer, code, said.startswith(b"the host cannot be reached")) == (b"", 1, True)


async def _ending(way: SocketAccess, secret: str) -> tuple[bytes, int | None, bytes]:
    """The command's first answer, and how it ends when the agent closes its input."""
    async with command({**way.env, SECRET: secret}, way.command, *way.args) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(PING)
        answer = await process.stdout.readline()
        process.stdin.close()
        _, said = await process.communicate()
        return answer, process.returncode, said


@asynccontextmanager
async def command(
    env: Mapping[str, str], *line: str, stdin: Any = PIPE, stdout: Any = PIPE
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The command as an agent starts it."""
    process = await asyncio.create_subprocess_exec(
        *line, env={**os.environ, **env}, stdin=stdin, stdout=stdout, stderr=PIPE
    )
    try:
        async with asyncio.timeout(20):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def handing_over(way: SocketAccess, first: bytes, *ends: int) -> AsyncGenerator[socket.socket]:
    """A connection of somebody who sends these bytes and file descriptors."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, named(way.args[-1]))
        if first:
            socket.send_fds(connection, [first], ends)
        yield connection


@pytest.mark.parametrize("first", ["{secret}\n", "{secret}", "{part}\n", "\n", "x" * 1000])
async def test_whoever_brings_no_pipes_or_a_part_of_the_secret_is_not_served(
    first: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with GatewaySocket() as server:
        with server.admit(Gateway(Session("add"))) as way:
            whole = first == "{secret}\n"
            sent = first.format(secret=way.env[SECRET], part=way.env[SECRET][:-1]).encode()
            ours, theirs = socket.socketpair()
            folder, null = os.open("/", os.O_RDONLY), os.open(os.devnull, os.O_RDWR)
            with ours:
                with theirs:
                    pair = [theirs.fileno()] * 2
                    odd: list[list[int]] = [[], [folder] * 2, [null] * 2, pair[:1], [theirs.fileno(), folder]]
                    for ends in [*odd, *([] if whole else [pair])]:
                        async with handing_over(way, sent, *ends) as connection:
                            assert await _until_closed(connection) == b""
                assert await _until_closed(ours) == b""  # The host has closed all that it got.
            os.close(folder)
            os.close(null)
    assert not caplog.records


async def test_many_who_send_no_secret_keep_no_agent_out() -> None:
    """Other users of the machine can connect too. The oldest is ended when there are too many."""
    async with GatewaySocket() as server, AsyncExitStack() as stack:
        with server.admit(Gateway(Session("add"))) as way:
            silent = [await stack.enter_async_context(handing_over(way, b"")) for _ in range(55)]
            answer, *_ = await _ending(way, way.env[SECRET])
            assert b'"result"' in answer
            assert await _until_closed(silent[0]) == b""
            with pytest.raises(BlockingIOError):
                silent[-1].recv(1)


async def test_an_agent_has_twenty_connections_at_a_time() -> None:
    async with GatewaySocket() as server, AsyncExitStack() as stack:
        with server.admit(Gateway(Session("add"))) as way:
            pairs = [socket.socketpair() for _ in range(21)]
            for ours, theirs in pairs:
                stack.enter_context(ours)
                stack.enter_context(theirs)
            first = f"{way.env[SECRET]}\n".encode()
            answers: list[bytes] = []
            for _, theirs in pairs:
                connection = await stack.enter_async_context(handing_over(way, first, *[theirs.fileno()] * 2))
                answers.append(await _until_closed(connection))
            assert answers == [TAKEN] * 20 + [b""]


async def _until_closed(connection: socket.socket) -> bytes:
    connection.setblocking(False)
    try:
        async with asyncio.timeout(20):
            return await asyncio.get_running_loop().sock_recv(connection, 10)
    except ConnectionResetError:  # It was closed with bytes that nobody had read.
        return b""


async def test_an_agent_that_ends_the_command_ends_its_calls() -> None:
    """It keeps its ends of the pipes, so only the command's own connection tells the host."""
    session = Session("wait")
    async with GatewaySocket() as server:
        with server.admit(Gateway(session)) as way:
            async with command(way.env, way.command, *way.args) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write((HELLO + CALL_WAIT).encode())
                await session.waiting.wait()
                process.kill()
                await session.cancelled.wait()
                assert await process.stdout.read() != b""  # It ends: the host has closed its end as well.


async def test_an_agent_may_use_one_socket_for_both_directions() -> None:
    async with GatewaySocket() as server:
        with server.admit(Gateway(Session("add"))) as way:
            ours, theirs = socket.socketpair()
            async with command(way.env, way.command, *way.args, stdin=theirs, stdout=theirs):
                theirs.close()
                reader, writer = await asyncio.open_connection(sock=ours)
                for _ in range(2):
                    writer.write(PING)
                    assert b'"result"' in await reader.readline()
                writer.close()


@pytest.mark.parametrize("device", [None, os.devnull])
async def test_the_command_refuses_what_is_no_pipe_with_a_reason(tmp_path: Path, device: str | None) -> None:
    """The host could not wait for it."""
    (tmp_path / "input").write_bytes(PING)
    async with GatewaySocket() as server:
        with server.admit(Gateway(Session("add"))) as way:
            with Path(device or tmp_path / "input").open() as file:  # noqa: ASYNC230  # A small local file.
                async with command(way.env, way.command, *way.args, stdin=file) as process:
                    _, said = await process.communicate()
    assert (process.returncode, said) == (
        1,
        b"an agent has to start this, with pipes for its input and output\n",
    )


async def test_the_command_loads_no_sdk_and_ends_with_the_host() -> None:
    async with GatewaySocket() as server:
        with server.admit(Gateway(Session())) as way:
            args = ["-X", "importtime", *way.args]
            process = await asyncio.create_subprocess_exec(
                way.command, *args, env={**os.environ, **way.env}, stdin=PIPE, stdout=PIPE, stderr=PIPE
            )
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(PING)
            assert await process.stdout.readline() != b""
    async with asyncio.timeout(20):
        _, imported = await process.communicate()
    modules = imported.decode()
    assert "mcp" not in modules.replace("ahpkit/mcp", "")
    assert "pydantic" not in modules
    assert sys.executable == way.command


async def test_two_calls_with_one_id_disturb_nobody() -> None:
    async with GatewaySocket() as server:
        with server.admit(Gateway(Session("add"))) as way:
            call = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{}}}\n'
            last = '{"jsonrpc":"2.0","id":8,"method":"tools/list"}\n'
            answers: list[bytes] = []
            async with command(way.env, way.command, *way.args) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write((HELLO + call + call + last).encode())
                while not any(b'"id":8' in line for line in answers):
                    answers.append(await process.stdout.readline())
    assert any(b'"id":7' in line for line in answers)


ENVELOPE: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def talk(session: Session, *lines: JsonObject | bytes) -> dict[int, JsonObject]:
    """What an agent gets that writes these lines at once: the answers by their ids."""
    written = [line if isinstance(line, bytes) else json.dumps({"jsonrpc": "2.0", **line}).encode() for line in lines]
    ids = {line["id"] for line in lines if not isinstance(line, bytes) and "id" in line}
    answers: dict[int, JsonObject] = {}
    async with GatewaySocket() as server:
        with server.admit(Gateway(session)) as way:
            async with command(way.env, way.command, *way.args) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(b"\n".join(written) + b"\n")
                while answers.keys() < ids:
                    answer = json.loads(await process.stdout.readline())
                    answers[answer.get("id")] = answer
    return answers


def request(id: int, method: str, *, meta: JsonObject = ENVELOPE, **params: Any) -> JsonObject:
    return {"id": id, "method": method, "params": {**params, "_meta": meta}}


async def test_an_agent_of_the_newer_era_is_told_what_is_wrong_and_served_on() -> None:
    class Failing(Session):
        async def call(self, name: str, arguments: JsonObject, on_progress: Callable[[str], None]) -> JsonObject:
            if arguments:
                raise OSError("/the/private/path")
            return await super().call(name, arguments, on_progress)

    old: JsonObject = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "1999-01-01"}
    answers = await talk(
        Failing("add"),
        request(1, "tools/list"),
        {"id": 2, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        request(3, "tools/list", meta=old),
        request(4, "tools/list", meta={}),
        request(5, "tools/call", name="add", arguments={"n": 1}),
        request(6, "tools/nothing"),
        request(7, "tools/call", name="add", arguments={}),
    )
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["add", "find_tool", "call_tool"]
    assert [answers[id]["error"]["code"] for id in (2, 3, 4, 5, 6)] == [-32022, -32022, -32602, -32603, -32601]
    assert answers[2]["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2025-06-18"}
    assert "private" not in json.dumps(answers[5])
    assert answers[7]["result"]["content"] == [{"type": "text", "text": "add {}"}]


async def test_what_an_agent_writes_before_its_first_request_is_no_reason_to_stop() -> None:
    early: list[JsonObject] = [{"method": "notifications/cancelled", "params": {"requestId": n}} for n in range(20)]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    begin: list[JsonObject] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    answers = await talk(Session("add"), b"{garbage", *early, *begin)
    assert answers[1]["result"]["serverInfo"]["name"] == "ahp"
    assert answers[2]["result"]["tools"][0]["name"] == "add"


@ERAS
async def test_a_call_belongs_to_the_trace_that_the_agent_names(era: str) -> None:
    seen: list[int] = []

    class Traced(Session):
        async def call(self, name: str, arguments: JsonObject, on_progress: Callable[[str], None]) -> JsonObject:
            seen.append(trace.get_current_span().get_span_context().trace_id)
            return await super().call(name, arguments, on_progress)

    async with connected(Traced("add"), era) as (client, _):
        await client.call_tool("add", {})
        await client.call_tool("add", {}, meta={"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"})
    assert seen == [0, int("ab" * 16, 16)]


class FullSession(Session):
    """A session with one tool that has every field, a client's for instance."""

    definition: JsonObject

    def tools(self) -> Sequence[Tool]:
        return [Tool("full", Owner("client", "c"), "full", cast("ToolDefinition", self.definition))]


@requirement("session:tool:mcp-mirror")
@ERAS
async def test_a_tool_reaches_an_agent_with_every_field_it_has(era: str) -> None:
    session = FullSession()
    session.definition = {
        "name": "full",
        "title": "Full",
        "description": "Has everything.",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "outputSchema": {"type": "object", "properties": {"m": {"type": "integer"}}},
        "annotations": {"title": "A title", "readOnlyHint": True, "openWorldHint": False},
        "_meta": {"example.com/cost": {"cents": 3}},
    }
    async with connected(session, era) as (client, _):
        listed = (await client.list_tools()).tools
        shown = {tool.name: tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed}
        assert shown["full"] == session.definition


@ERAS
@pytest.mark.parametrize(
    ("odd", "left"),
    [
        ({"outputSchema": {"type": "array"}}, {}),
        ({"outputSchema": {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object"}}}}, {}),
        ({"annotations": {"readOnlyHint": {}}}, {}),
        ({"description": 5}, None),
    ],
    ids=["list as output", "reference as output", "bad hint", "bad description"],
)
async def test_an_odd_tool_takes_no_other_tool_from_an_agent(
    era: str, odd: JsonObject, left: JsonObject | None
) -> None:
    """MCP 2026-07-28 allows any output schema. For one such tool an agent of the older era got no tool at all."""
    session = FullSession()
    session.definition = {"name": "full", "inputSchema": {"type": "object"}, **odd}
    async with connected(session, era) as (client, _):
        listed = (await client.list_tools()).tools
        shown = {tool.name: tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed}
        wanted = None if left is None else {"name": "full", "inputSchema": {"type": "object"}, **left}
        assert shown.get("full") == wanted
        assert {"find_tool", "call_tool"} <= shown.keys()
