"""What a killed process of ours leaves running is ended at once, also what ignores signals and the end of its input."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import ahpkit.platform.cleaner as cleaner_module
from ahpkit.platform.cleaner import Cleaner
from ahpkit.platform.processes import start_of
from support.waiting import gone, is_alive, until

STUBBORN = """
import os, signal, sys, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
kind, told = sys.argv[1:]
if kind == "moved" and os.fork():
    os.waitpid(-1, 0)
if kind == "moved":
    os.setsid()
with open(told, "a") as tell:
    tell.write(f"{kind} {os.getpid()}\\n")
while True: time.sleep(600)
"""
"""Ignores everything and tells its number. `moved`: a child of it that has a session of its own."""

OWNER = """
import asyncio, os, sys
from pathlib import Path
from ahpkit.customizations.hook_process import run_command
from ahpkit.customizations.hooks import HookCommand
from ahpkit.platform.pty import PtyProcess
from ahpkit.transports.process import ChildProcess

def command(kind):
    return [sys.executable, "-c", sys.argv[1], kind, sys.argv[2]]

async def main():
    env, cwd = dict(os.environ), Path("/")
    async with ChildProcess(command("child"), env=env, cwd=cwd), ChildProcess(command("moved"), env=env, cwd=cwd):
        terminal = await PtyProcess.start(command("terminal"), env=env, cwd=cwd)
        await run_command(HookCommand(tuple(command("hook")), "/", env, 600), b"")

asyncio.run(main())
"""


def numbers(told: Path) -> dict[str, int]:
    """What has been told so far: kinds and process numbers."""
    lines = told.read_text().splitlines() if told.exists() else []
    return {kind: int(pid) for kind, pid in map(str.split, lines)}


@asynccontextmanager
async def owned(told: Path) -> AsyncGenerator[tuple[asyncio.subprocess.Process, dict[str, int]]]:
    """A process that runs stubborn ones in every way there is, and their numbers."""
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, STUBBORN, str(told))
    try:
        await until(lambda: len(numbers(told)) == 4)
        yield owner, numbers(told)
    finally:
        with suppress(ProcessLookupError):
            owner.kill()
        await owner.wait()


async def test_what_ignores_everything_ends_with_the_killed_process_that_started_it(tmp_path: Path) -> None:
    async with owned(tmp_path / "told") as (owner, started):
        assert started.keys() == {"child", "moved", "terminal", "hook"}
        assert all(map(is_alive, started.values()))

        owner.send_signal(signal.SIGKILL)

        for pid in started.values():
            await gone(pid)


async def test_a_cleaner_that_was_killed_gets_a_successor() -> None:
    cleaner = Cleaner()
    with cleaner.ended_with_us(2**22 + 1):  # There are no such processes: numbers end before.
        first = cleaner.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await gone(first)
        with cleaner.ended_with_us(2**22 + 2):
            assert cleaner.pid not in (None, first)


async def test_a_cleaner_that_was_stopped_gets_a_successor_and_never_acts_on_its_old_list() -> None:
    cleaner = Cleaner()
    with cleaner.ended_with_us(2**22 + 1):
        first = cleaner.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        while cleaner.pid == first:  # Until its pipe is full.
            with cleaner.ended_with_us(2**22 + 2):
                pass
        assert not is_alive(first)


async def test_a_number_that_means_another_process_by_then_is_left_alone() -> None:
    stranger = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    try:
        program = [sys.executable, "-I", "-S", Path(cleaner_module.__file__).as_posix(), "1.2.3"]
        cleaner = await asyncio.create_subprocess_exec(*program, stdin=asyncio.subprocess.PIPE)
        await cleaner.communicate(f"+ {stranger.pid} {int(start_of(stranger.pid)) - 1}\n".encode())
        assert is_alive(stranger.pid)

        cleaner = await asyncio.create_subprocess_exec(*program, stdin=asyncio.subprocess.PIPE)
        await cleaner.communicate(f"+ {stranger.pid} {start_of(stranger.pid)}\n".encode())
        await gone(stranger.pid)
    finally:
        with suppress(ProcessLookupError):
            stranger.kill()
        await stranger.wait()
