"""Canvases of `ahpkit serve`: built in, from extensions, over the socket; through ends and crashes of the host."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import stat
import sys
from pathlib import Path
from typing import Any

from ahpkit.canvas.author import Extension, connect_socket
from ahpkit.client import Client, Session, connect
from support import board_extension
from support.pages import as_user, shown
from support.process import finish_cli, host_process
from support.waiting import is_alive, until

BOARD = shlex.join([sys.executable, board_extension.__file__])


def registry(session: Session) -> set[str]:
    return {one["extensionId"] for one in session.confirmed.get("canvasRegistry", [])}


def instances(session: Session) -> dict[str, Any]:
    return {one["instanceId"]: one for one in session.confirmed.get("openCanvases", [])}


async def demo(client: Client) -> tuple[Session, Any]:
    """A session of the demo agent, with somebody who can show canvases."""
    session = await client.create_session(provider="demo")
    await session.claim(can_render=True).accepted()
    return session, await session.chat()


def numbers(answer: str) -> list[int]:
    return [int(word) for word in answer.replace(",", " ").split() if word.isdigit()]


async def test_an_extension_ends_with_the_host_and_all_it_started(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--extension", BOARD) as host:
        async with connect(host.url, token=host.token) as client:
            session, chat = await demo(client)
            await until(lambda: registry(session) == {"ahpkit", "example.boards"})
            await chat.ask("/canvas open board b1")
            answer = await chat.ask("/canvas invoke b1 pid")
            pids = numbers(answer)
            assert len(pids) == 2
            assert all(map(is_alive, pids))
        assert await host.stop() == 0
        await until(lambda: not any(map(is_alive, pids)))


async def test_an_extension_ends_when_the_host_is_killed(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--extension", BOARD) as host:
        async with connect(host.url, token=host.token) as client:
            session, chat = await demo(client)
            await until(lambda: "example.boards" in registry(session))
            await chat.ask("/canvas open board b1")
            answer = await chat.ask("/canvas invoke b1 pid")
            pid, child = numbers(answer)
        host.kill()
        await until(lambda: not is_alive(pid))
        os.kill(child, signal.SIGKILL)  # What an extension started is its own to end when nobody ends it in order.


async def test_an_extension_may_come_by_itself(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host, connect(host.url, token=host.token) as client:
        path = Path(host.announced["dataDir"]) / "extensions.sock"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        session, _ = await demo(client)
        async with connect_socket(path) as transport:
            serving = asyncio.create_task(Extension("example.visitor", [board_extension.Board]).serve(transport))
            await until(lambda: "example.visitor" in registry(session))
        await serving
        await until(lambda: registry(session) == {"ahpkit"})


async def test_a_board_survives_a_crash_at_a_new_address(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        async with connect(host.url, token=host.token) as client:
            session, chat = await demo(client)
            await chat.ask('/canvas open checklist l {"items": ["pack", "pay"]}')
            before = instances(session)["l"]["url"]
            await as_user(before, "moveItem", id="2", column="Done")
            await until(lambda: instances(session)["l"]["status"] == "1 of 2 done")
            uri = session.uri
        host.kill()
        await host.process.wait()
    async with host_process(tmp_path) as host, connect(host.url, token=host.token) as client:
        session = await client.session(uri)
        await until(lambda: instances(session)["l"]["availability"] == "ready")
        after = instances(session)["l"]["url"]
        assert after != before
        assert [item["column"] for item in (await shown(after))["items"]] == ["To do", "Done"]


async def test_an_empty_command_is_refused_with_a_reason(tmp_path: Path) -> None:
    code, _, errors = await finish_cli(["serve", "--port", "0", "--data-dir", "data", "--extension", " "], tmp_path)
    assert code == 1
    assert "--extension: an extension needs a command" in errors
