from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from ahpkit.platform.signals import handling_signals
from support.waiting import BOUND


async def test_a_signal_calls_its_handler_until_the_block_is_left() -> None:
    came = asyncio.Event()
    with handling_signals({"SIGUSR1": came.set, "SIGNOTHERE": came.set}):
        os.kill(os.getpid(), signal.SIGUSR1)
        async with asyncio.timeout(BOUND):
            await came.wait()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


async def test_a_loop_that_cannot_handle_signals_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio.get_running_loop(), "add_signal_handler", cannot)
    before, came = signal.getsignal(signal.SIGUSR1), asyncio.Event()
    with handling_signals({"SIGUSR1": came.set}):
        os.kill(os.getpid(), signal.SIGUSR1)
        async with asyncio.timeout(BOUND):
            await came.wait()
    assert signal.getsignal(signal.SIGUSR1) is before


def test_a_signal_that_we_were_told_to_ignore_is_not_ignored_by_our_children() -> None:
    child = "import signal; print(signal.getsignal(signal.SIGHUP).name)"
    parent = (
        "import os, signal, subprocess, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "from ahpkit.platform.signals import keep_ignored_signals_from_children as keep; keep();"
        "os.kill(os.getpid(), signal.SIGHUP);"
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    done = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "SIG_DFL"
