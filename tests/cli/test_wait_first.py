"""The first to end wins, and nothing is left behind."""

import asyncio

import pytest

from ahpkit.cli.wait_first import wait_first


async def fail() -> None:
    raise LookupError("lost")


async def test_the_first_to_end_wins_and_the_others_are_cancelled() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")

    assert await wait_first(slow=slow(), quick=asyncio.sleep(0, "done")) == ("quick", "done")
    assert ended == ["slow"]


async def test_of_several_the_first_named_counts() -> None:
    assert await wait_first(a=asyncio.sleep(0, 1), b=asyncio.sleep(0, 2)) == ("a", 1)


async def test_a_failure_is_passed_on() -> None:
    with pytest.raises(LookupError, match="lost"):
        await wait_first(bad=fail(), slow=asyncio.sleep(60))


async def test_being_cancelled_cancels_them_all() -> None:
    started = asyncio.Event()
    ended = asyncio.Event()

    async def slow() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    running = asyncio.create_task(wait_first(slow=slow()))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
