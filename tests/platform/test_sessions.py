"""Ending all processes of a session."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from ahpkit.platform.processes import end_session, signal_session
from support.waiting import BOUND, gone, is_alive


@asynccontextmanager
async def session(script: str) -> AsyncGenerator[tuple[asyncio.subprocess.Process, list[int]]]:
    """A shell that leads a session, and the processes whose ids it printed before it said "ready"."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", script, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(BOUND):
            said = await process.stdout.readuntil(b"ready\n")
            yield process, [int(word) for word in said.split()[:-1]]
    finally:
        signal_session(process.pid, signal.SIGKILL)
        await process.wait()
        await process.stdout.read()


async def test_every_group_of_the_session_is_ended() -> None:
    async with session("set -m; sleep 300 & echo $!; sleep 300 & echo $!; echo ready; wait") as (process, pids):
        await end_session(process.pid)
        assert not any(map(is_alive, [process.pid, *pids]))
        assert await process.wait() == -signal.SIGHUP


async def test_what_does_not_listen_is_killed() -> None:
    async with session("trap '' HUP; (trap '' HUP; exec sleep 300) & echo $!; echo ready; wait") as (process, pids):
        await end_session(process.pid, grace=0.1)
        assert not any(map(is_alive, [process.pid, *pids]))
        assert await process.wait() == -signal.SIGKILL


async def test_what_listens_has_time_to_tidy_up(tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    script = f"trap 'sleep 0.1; touch {tidied}; exit 4' HUP; echo ready; while :; do sleep 0.02; done"
    async with session(script) as (process, _):
        await end_session(process.pid, grace=BOUND)
        assert await process.wait() == 4
        assert tidied.exists()


async def test_members_are_found_after_their_leader_is_gone() -> None:
    async with session("sleep 300 >/dev/null & echo $!; echo ready") as (process, pids):
        await process.wait()
        assert all(map(is_alive, pids))
        await end_session(process.pid)
        assert not any(map(is_alive, pids))


async def test_a_session_without_processes_is_left_alone() -> None:
    async with session("echo ready") as (process, _):
        await process.wait()
        assert not signal_session(process.pid, 0)
        await end_session(process.pid)


async def test_without_proc_the_group_of_the_leader_is_signalled(tmp_path: Path) -> None:
    async with session("sleep 300 & echo $!; echo ready; wait") as (process, pids):
        assert signal_session(process.pid, signal.SIGKILL, proc=tmp_path / "none")
        await gone(pids[0])
