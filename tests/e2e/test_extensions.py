"""Extensions between a real agent process and the SDK, over a real host: asked, refused, and after a crash."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from ahpkit.client import Backoff, Client, connect
from support import requirement
from support.process import start_host
from support.scripted_acp import scripted_command

NAME = "example.com/editor"
ASK: dict[str, Any] = {"request": f"_{NAME}/buffers", "params": {"language": "rust"}, "say": True}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def agent(directory: Path, turns: int) -> str:
    command = scripted_command(directory / "script.json", turns=[[ASK]] * turns, store=str(directory / "store"))
    return f"scripted={' '.join(command)}"


async def said(client: Client, uri: str) -> Any:
    """What the agent was answered in one turn."""
    session = await client.session(uri)
    chat = await session.chat()
    async with asyncio.timeout(20):
        return json.loads(await chat.ask("go"))


@requirement("extensibility:practice:fails-gracefully", "extensibility:methods:answered-under-same-id")
async def test_whatever_the_sdks_handler_does_the_agent_gets_an_answer(tmp_path: Path) -> None:
    host = await start_host(tmp_path, "--agent", agent(tmp_path, 4))
    try:
        async with connect(host.url, token=host.token, extensions={NAME: True}) as client:
            uri = (await client.create_session(provider="scripted")).uri
            assert (await said(client, uri))["code"] == -32601  # Announced, but nobody serves it.

            handled: list[Any] = []

            def buffers(params: dict[str, Any]) -> Any:
                handled.append(params)
                if len(handled) == 1:
                    raise ValueError("a bug")
                return object() if len(handled) == 2 else {"buffers": [{"id": 0}]}

            client.on_extension(f"_{NAME}/buffers", buffers)
            assert (await said(client, uri))["code"] == -32603
            assert (await said(client, uri))["code"] == -32603
            assert await said(client, uri) == {"buffers": [{"id": 0}]}
            assert handled[-1]["language"] == "rust"
            assert handled[-1]["channel"].startswith("ahp-chat:/")
    finally:
        host.kill()
        await host.ended()


@requirement("extensibility:capabilities:advertised")
@pytest.mark.parametrize("killed", [True, False])
async def test_a_client_that_comes_back_after_the_hosts_end_is_asked_as_before(tmp_path: Path, killed: bool) -> None:
    options = ("--port", str(free_port()), "--agent", agent(tmp_path, 2))
    host = await start_host(tmp_path, *options)
    try:
        backoff = Backoff(first=0.05, longest=0.2)
        async with connect(host.url, token=host.token, extensions={NAME: True}, backoff=backoff) as client:
            client.on_extension(f"_{NAME}/buffers", lambda params: {"buffers": []})
            uri = (await client.create_session(provider="scripted")).uri
            assert await said(client, uri) == {"buffers": []}
            if killed:
                host.kill()
                await host.ended()
            else:
                await host.stop()
            host = await start_host(tmp_path, *options)
            async with asyncio.timeout(20):
                await client.wait_connected()
            assert await said(client, uri) == {"buffers": []}
    finally:
        host.kill()
        await host.ended()
