"""The faults: each breaks something while everybody works, and leaves it whole again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping

from soak.checks import log_has_everything
from soak.stage import Stage

Fault = Callable[[Stage], Awaitable[None]]


async def kill_9(stage: Stage) -> None:
    await stage.kill()
    await asyncio.to_thread(log_has_everything, stage)
    await stage.work(0.1)  # Nobody is there: it is said when the host is back.
    await stage.restart()


async def stop_and_continue(stage: Stage) -> None:
    stage.signal(signal.SIGSTOP)
    try:
        await stage.work(stage.rng.uniform(0.2, 1.0))
    finally:
        stage.signal(signal.SIGCONT)


async def full_disk(stage: Stage) -> None:
    stage.fill_disk()
    try:
        await stage.work(stage.rng.uniform(0.2, 0.8))
    finally:
        stage.free_disk()


async def kill_on_a_full_disk(stage: Stage) -> None:
    stage.fill_disk()
    await stage.work(0.2)
    await kill_9(stage)


async def cut(stage: Stage) -> None:
    for _ in range(stage.rng.randrange(1, 4)):
        stage.proxy.cut()
        await stage.work(0.1)


async def slow_line(stage: Stage) -> None:
    stage.proxy.delay = stage.rng.uniform(0.01, 0.1)
    await stage.work(0.5)
    stage.proxy.flow()


async def silent_line(stage: Stage) -> None:
    stage.proxy.stall()
    await stage.work(0.3)
    stage.proxy.cut()
    stage.proxy.flow()


async def clock_jumps(stage: Stage) -> None:
    for seconds in (86_400.0, -3_600.0, 0.0):
        stage.set_clock(seconds)
        await stage.work(0.15)


async def agent_dies(stage: Stage) -> None:
    stage.kill_child("acp_agent")
    await stage.work(0.3)


async def extension_dies(stage: Stage) -> None:
    stage.kill_child("board_extension")
    await stage.work(0.3)


async def server_dies(stage: Stage) -> None:
    stage.kill_child("plain_server")
    await stage.work(0.3)


FAULTS: Mapping[str, Fault] = {
    "kill -9": kill_9,
    "SIGSTOP": stop_and_continue,
    "full disk": full_disk,
    "kill -9 on a full disk": kill_on_a_full_disk,
    "connections cut": cut,
    "slow line": slow_line,
    "silent line": silent_line,
    "clock jumps": clock_jumps,
    "agent dies": agent_dies,
    "extension dies": extension_dies,
    "MCP server dies": server_dies,
}

__all__ = ["FAULTS", "Fault"]
