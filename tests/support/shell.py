"""Shell lines with `ahpkit` in them, as people type them: pipes, files, redirections."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from support.process import environment
from support.waiting import BOUND


async def shell(script: str, home: Path, **extra: str) -> tuple[int, str, str]:
    """Run a line to its end: exit code, output, errors. Everything it started is ended with it."""
    here = environment(home)
    here["PATH"] = f"{Path(sys.executable).parent}:{here['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", script,
        cwd=home, env={**here, **extra},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(BOUND):
            output, errors = await process.communicate()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    return process.returncode or 0, output.decode(), errors.decode()


__all__ = ["shell"]
