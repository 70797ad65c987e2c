"""Extensions as real processes, started and restarted, and on a real socket."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.canvas import Canvases, ExtensionProcess, ExtensionSocket
from ahpkit.canvas.author import Extension, connect_socket
from ahpkit.canvas.extension_protocol import ExtensionRefused
from ahpkit.canvas.provider import ProviderSource
from ahpkit.host.agent import CanvasRuntime
from support import board_extension
from support.bench import Bench
from support.canvases import EXTENSION, failure, runtime
from support.raw_client import RawClient
from support.waiting import BOUND, is_alive, until

PROGRAM = [sys.executable, "-W", "error", str(Path(board_extension.__file__))]


@asynccontextmanager
async def host(directory: Path, *sources: ProviderSource) -> AsyncGenerator[tuple[Bench, RawClient, CanvasRuntime]]:
    bench = Bench(directory)
    bench.features = [Canvases(sources=sources)]
    await bench.start()
    try:
        client = await bench.client()
        session, chat = await bench.session(client)
        await client.ask("subscribe", session)
        yield bench, client, await runtime(bench, client, chat)
    finally:
        await bench.stop()


def process(*command: str, env: Mapping[str, str] | None = None) -> ExtensionProcess:
    return ExtensionProcess(command or PROGRAM, longest_pause=0.05, env=env)


async def declared(agent: CanvasRuntime) -> None:
    await until(agent.list)


async def test_a_process_serves_and_ends_with_everything_it_started(tmp_path: Path) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        assert agent.list()[0]["extensionId"] == EXTENSION
        opened = await agent.open("board", "b1", input={"title": "A"})
        assert opened["url"] == "https://board.example/b1"
        assert await agent.invoke("b1", "add", {"card": "x"}) == {"cards": ["x"]}
        await client.action(lambda envelope: envelope["action"].get("changes") == {"status": "has x"})
        assert (await failure(agent.invoke("b1", "fail"))).code == "locked"
        assert "secret" not in (await failure(agent.invoke("b1", "crash"))).message
        await agent.invoke("b1", "grow")
        await until(lambda: "grown1" in str(agent.list()))
        pids: list[int] = await agent.invoke("b1", "pid")
        assert all(map(is_alive, pids))
    await until(lambda: not any(map(is_alive, pids)))


async def test_a_process_that_dies_is_started_again_and_its_instances_come_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        await agent.open("board", "b1", input={"title": "kept"})
        assert (await failure(agent.invoke("b1", "die"))).code == "canvas_provider_unavailable"
        cancelled = await client.action("session/canvasRequestCancelled")
        assert cancelled["action"]["reason"] == "providerDisconnected"
        await client.action(lambda envelope: envelope["action"].get("changes") == {"availability": "stale"})
        await client.action(lambda envelope: envelope["action"].get("instance", {}).get("status") == "again")
        told: Any = await agent.invoke("b1", "told")
        assert (told["reopen"], told["input"]) == (True, {"title": "kept"})
    assert "out of cards" in caplog.text


async def test_a_process_that_dies_while_opening_leaves_no_request(tmp_path: Path) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        error = await failure(agent.open("board", "b1", input={"die": True}))
        assert error.code == "canvas_provider_unavailable"
        assert agent.list_open() == []
        cancelled = await client.action("session/canvasRequestCancelled")
        assert cancelled["action"]["reason"] == "providerDisconnected"
        await declared(agent)
        await agent.open("board", "b1")


async def test_fifty_megabytes_of_a_process_are_no_answer(tmp_path: Path) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        await agent.open("board", "b1")
        async with asyncio.timeout(BOUND):
            error = await failure(agent.invoke("b1", "huge", 50_000_000))
        assert error.code == "canvas_provider_error"
        assert "at most" in error.message
        assert await agent.invoke("b1", "add", {"card": 1}) == {"cards": [1]}
        assert sum(len(str(message)) for message in client.received) < 100_000


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "cannot be started: No such file"),
        ([sys.executable, "-c", "import sys; sys.exit('no cards left')"], "no cards left"),
        ([sys.executable, "-c", 'print(\'{"jsonrpc": "2.0", "id": 1, "result": 7}\'); input()'], "not an object"),
    ],
)
async def test_a_process_that_is_no_extension_is_tried_again_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, command: list[str], why: str
) -> None:
    async with host(tmp_path, process(*command)) as (_, _, agent):
        await until(lambda: caplog.text.count("starting again") >= 2)
        assert agent.list() == []
    assert why in caplog.text


async def test_of_two_processes_with_one_id_one_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with host(tmp_path, process(), process()) as (_, _, agent):
        await declared(agent)
        await until(lambda: "there is a canvas provider 'example.boards' already" in caplog.text)
        assert len(agent.list()) == 1
        await agent.open("board", "b1")


def test_a_command_is_split_like_in_a_shell_and_gives_a_lasting_id() -> None:
    one = ExtensionProcess("'/opt/my canvas/run' --flag 'a b'")
    assert one.command == ["/opt/my canvas/run", "--flag", "a b"]
    assert one.default_id == ExtensionProcess("'/opt/my canvas/run' --flag 'a b'").default_id
    assert one.default_id.startswith("run-")
    assert one.default_id != ExtensionProcess("run --flag").default_id
    with pytest.raises(ValueError, match="needs a command"):
        ExtensionProcess("  ")


async def test_a_process_over_the_socket_serves_until_it_goes_and_again_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    async with host(tmp_path, ExtensionSocket(path)) as (_, client, agent):
        await until(path.exists)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for round in (1, 2):
            program = await asyncio.create_subprocess_exec(*PROGRAM, str(path))
            try:
                await declared(agent)
                await agent.open("board", f"b{round}")
            finally:
                program.kill()
                await program.wait()
            await until(lambda: not agent.list())
        assert [one["availability"] for one in agent.list_open()] == ["stale", "stale"]
        await client.action(lambda envelope: envelope["action"].get("instance", {}).get("status") == "again")
    assert not path.exists()


async def test_two_extensions_on_the_socket_with_one_id(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
        await until(path.exists)
        async with connect_socket(path) as first, connect_socket(path) as second:
            serving = asyncio.create_task(Extension("same", [board_extension.Board]).serve(first))
            await declared(agent)
            with pytest.raises(ExtensionRefused, match="'same' already"):
                await Extension("same", []).serve(second)
            assert not serving.done()
        await serving


async def test_too_many_connections_are_turned_away(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    async with host(tmp_path, ExtensionSocket(path, max_connections=1)):
        await until(path.exists)
        async with connect_socket(path) as first, connect_socket(path) as second:
            await first.receive()
            async with asyncio.timeout(BOUND):
                await Extension("late", []).serve(second)


async def test_a_socket_that_cannot_be_is_no_reason_not_to_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with host(tmp_path, ExtensionSocket(tmp_path / "nowhere" / "extensions.sock")) as (_, _, agent):
        await until(lambda: "canvas extensions cannot connect" in caplog.text)
        assert agent.list() == []


async def test_a_data_directory_with_a_long_name_has_a_socket_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / ("x" * 120) / "extensions.sock"
    path.parent.mkdir()
    async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
        await until(path.exists)
        async with connect_socket(path) as transport:
            serving = asyncio.create_task(Extension("far", [board_extension.Board]).serve(transport))
            await declared(agent)
        await serving
    assert "cannot connect" not in caplog.text


async def test_an_extension_waits_for_its_host_to_come_back(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    program = await asyncio.create_subprocess_exec(*PROGRAM, str(path), env=dict(os.environ))
    try:
        async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
            await declared(agent)
        async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
            await declared(agent)
    finally:
        program.kill()
        await program.wait()
