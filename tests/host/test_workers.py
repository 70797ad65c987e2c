"""Workers: several at a time, none of them waited for without end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from ahpkit.host.workers import Stopped, Workers, progress
from ahpkit.protocol.errors import Conflict, NotFound
from support.waiting import BOUND


@pytest.fixture
def never() -> Generator[threading.Event]:
    """Work that waits for it hangs until the test is over."""
    event = threading.Event()
    yield event
    event.set()


async def test_results_and_errors_come_back() -> None:
    workers = Workers("test")

    def fail() -> None:
        raise NotFound("x")

    assert await workers.run(lambda: 1) == 1
    with pytest.raises(NotFound):
        await workers.run(fail)
    workers.close()


async def test_work_that_hangs_is_given_up_and_keeps_nobody_else_waiting(never: threading.Event) -> None:
    workers = Workers("test", count=1, deadline=0.1)
    with pytest.raises(Conflict, match=r"did not answer within 0\.1 s"):
        await workers.run(never.wait)
    assert await workers.run(lambda: "next") == "next"
    workers.close()


async def test_work_that_makes_progress_may_take_its_time() -> None:
    workers = Workers("test", deadline=0.3)
    pause = threading.Event()

    def long() -> str:
        for _ in range(8):
            pause.wait(0.1)
            progress()
        return "done"

    assert await workers.run(long) == "done"
    workers.close()


async def test_several_work_at_once() -> None:
    workers = Workers("test", count=2)
    meet = threading.Barrier(2, timeout=BOUND)
    await asyncio.gather(workers.run(meet.wait), workers.run(meet.wait))
    workers.close()


async def test_a_stop_waits_for_no_thread_and_ends_what_comes_to_its_next_step(never: threading.Event) -> None:
    workers = Workers("test")
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()
    began = threading.Event()

    def work() -> None:
        began.set()
        never.wait()
        try:
            progress()
        except Stopped:
            loop.call_soon_threadsafe(stopped.set_result, None)
            raise

    running = asyncio.create_task(workers.run(work))
    await asyncio.to_thread(began.wait, BOUND)
    workers.close()
    with pytest.raises(Conflict, match="stopping"):
        await running
    never.set()
    async with asyncio.timeout(BOUND):
        await stopped
    with pytest.raises(Conflict, match="stopping"):
        await workers.run(lambda: None)
