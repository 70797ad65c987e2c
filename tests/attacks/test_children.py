"""Everything that the host starts has limits of memory and processes, and so has what that starts."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

import pytest

from ahpkit.changes.git import run_git
from ahpkit.customizations.hook_process import run_command
from ahpkit.customizations.hooks import HookCommand
from ahpkit.platform.limits import ChildLimits, limit_children
from ahpkit.platform.pty import PtyProcess
from support.waiting import BOUND

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits other processes")

LIMITS = ChildLimits(memory=300 << 20, processes=5_000)
LINE = "read go; cat /proc/self/limits"
"""It waits for input first: by then it is limited, and what it starts after that inherits the limits."""
ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def limited() -> Generator[None]:
    limit_children(LIMITS)
    yield
    limit_children(ChildLimits())


async def in_a_terminal(folder: Path) -> str:
    process = await PtyProcess.start(["/bin/sh", "-c", LINE], env=ENV, cwd=folder)
    try:
        process.write(b"go\n")
        pieces: list[bytes] = []
        while data := await process.read():
            pieces.append(data)
        return b"".join(pieces).decode()
    finally:
        await process.aclose()


async def by_a_hook(folder: Path) -> str:
    _, output, _ = await run_command(HookCommand(("/bin/sh", "-c", LINE), str(folder), ENV, BOUND), b"go\n")
    return output


async def by_git(folder: Path) -> str:
    return (await run_git("/bin/sh", "-c", LINE, cwd=folder, env=ENV, stdin=b"go\n")).decode()


@pytest.mark.parametrize("start", [in_a_terminal, by_a_hook, by_git])
async def test_children_are_limited(tmp_path: Path, start: Callable[[Path], Awaitable[str]]) -> None:
    async with asyncio.timeout(BOUND):
        lines = [line.split() for line in (await start(tmp_path)).splitlines()]
    limits = {" ".join(line[1:-3]): line[-2] for line in lines if line[:1] == ["Max"]}
    assert limits["data size"] == str(LIMITS.memory)
    assert limits["processes"] == str(LIMITS.processes)
