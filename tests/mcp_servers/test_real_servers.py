"""MCP servers that nobody here wrote, over every transport, called by an agent through the host."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from mcp_servers.http_server import serving
from support.agent_kinds import agent_of_kind
from support.raw_client import Json
from support.real_agents import EVERYTHING, FILES, NODE, WHERE, everything_over, needs_agents
from support.stage import Stage, staged

pytestmark = needs_agents


@asynccontextmanager
async def with_servers(directory: Path, servers: Mapping[str, Json]) -> AsyncGenerator[Stage]:
    async with agent_of_kind("python", directory) as agent, staged(agent, directory, servers=servers) as stage:
        for server in servers:
            await stage.server(server, "ready")
        yield stage


def from_pypi(name: str) -> str:
    program = WHERE / f"venv-{name}" / "bin" / name
    if not program.exists():
        pytest.skip(f"{program} is not installed")
    return str(program)


def from_npm(name: str) -> Json:
    program = WHERE / "node_modules/@modelcontextprotocol" / name / "dist/index.js"
    if not program.exists():
        pytest.skip(f"{program} is not installed")
    return {"command": NODE, "args": [str(program)]}


@pytest.mark.parametrize("transport", ["stdio", "streamableHttp", "sse"])
async def test_the_reference_server_can_be_used(transport: str, tmp_path: Path) -> None:
    if transport == "stdio":
        await _is_used(tmp_path, {"command": NODE, "args": [EVERYTHING]})
        return
    async with everything_over("sse" if transport == "sse" else "streamableHttp") as url:
        await _is_used(tmp_path, {"type": "sse" if transport == "sse" else "http", "url": url})


async def _is_used(directory: Path, declared: Json) -> None:
    async with with_servers(directory, {"everything": declared}) as stage:
        always = await stage.turn('CALL everything_echo {"message": "hi"}', decisions=["allow:server:session"])
        assert "Echo: hi" in always.text
        long = await stage.turn('CALL everything_trigger-long-running-operation {"duration": 0.2, "steps": 2}')
        assert "completed" in long.text
        structured = await stage.turn('CALL everything_get-structured-content {"location": "Chicago"}')
        assert "temperature" in structured.calls[0]["structuredContent"]
        image = await stage.turn("CALL everything_get-tiny-image {}")
        assert "image/png" in [part.get("contentType") for part in image.calls[0]["content"]]
        wrong = await stage.turn("CALL everything_echo {}")
        assert wrong.calls[0]["success"] is False
        asked = await stage.turn("CALL everything_trigger-elicitation-request {}", answer="Ann")
        assert asked.questions


async def test_the_server_for_files_stays_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    note = tmp_path / "work" / "note.txt"
    note.write_text("hello")
    declared = {"command": NODE, "args": [FILES, str(tmp_path / "work")]}
    async with with_servers(tmp_path, {"files": declared}) as stage:
        read = await stage.turn(f'CALL files_read_text_file {{"path": "{note}"}}', decisions=["allow-once"])
        assert "hello" in read.text
        outside = await stage.turn('CALL files_read_text_file {"path": "/etc/hostname"}', decisions=["allow-once"])
        assert outside.calls[0]["success"] is False


async def test_the_server_for_time_tells_it(tmp_path: Path) -> None:
    async with with_servers(tmp_path, {"time": {"command": from_pypi("mcp-server-time")}}) as stage:
        told = await stage.turn('CALL time_get_current_time {"timezone": "UTC"}', decisions=["allow-once"])
        assert "UTC" in told.text


async def test_the_server_for_git_reads_a_repository(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path / "work")], check=True)
    async with with_servers(tmp_path, {"git": {"command": from_pypi("mcp-server-git")}}) as stage:
        call = f'CALL git_git_status {{"repo_path": "{tmp_path}/work"}}'
        assert "branch" in (await stage.turn(call, decisions=["allow-once"])).text


async def test_the_server_for_memory_writes_its_file(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    declared = {**from_npm("server-memory"), "env": {"MEMORY_FILE_PATH": str(file)}}
    async with with_servers(tmp_path, {"memory": declared}) as stage:
        ann = '{"name": "Ann", "entityType": "person", "observations": ["likes tea"]}'
        await stage.turn(f'CALL memory_create_entities {{"entities": [{ann}]}}', decisions=["allow:server:session"])
        assert "likes tea" in (await stage.turn('CALL memory_search_nodes {"query": "Ann"}')).text
        assert "likes tea" in file.read_text()


async def test_the_server_for_thoughts_counts_them(tmp_path: Path) -> None:
    async with with_servers(tmp_path, {"think": from_npm("server-sequential-thinking")}) as stage:
        thought = '{"thought": "hm", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false}'
        told = await stage.turn(f"CALL think_sequentialthinking {thought}", decisions=["allow-once"])
        assert told.calls[0]["structuredContent"]["thoughtNumber"] == 1


async def test_a_page_of_the_web(tmp_path: Path) -> None:
    """With a tool, and with the prompt of the same name, which the host expands before the agent sees it."""
    declared = {"command": from_pypi("mcp-server-fetch"), "args": ["--ignore-robots-txt", "--allow-private-ips"]}
    page = Starlette(routes=[Route("/", PlainTextResponse("the kettle is on"))])
    async with serving(lambda origin: page) as origin, with_servers(tmp_path, {"web": declared}) as stage:
        read = await stage.turn(f'CALL web_fetch {{"url": "{origin}/", "raw": true}}', decisions=["allow-once"])
        assert "the kettle is on" in read.text
        assert "the kettle is on" in (await stage.turn(f"/web:fetch {origin}/")).text
