from __future__ import annotations

import asyncio
import os
import signal
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
