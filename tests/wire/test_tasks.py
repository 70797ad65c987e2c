"""Tasks end with their owner, and their failures are logged, not lost."""

from __future__ import annotations

import asyncio

import pytest

from ahpkit.wire.tasks import Tasks, running, unless, wait_first


async def test_leaving_ends_what_still_runs():
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Tasks() as tasks:
        tasks.spawn(work(), name="work")
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_a_task_that_spawns_another_while_it_ends_leaves_none_behind():
    second_ended = asyncio.Event()

    async def second() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            second_ended.set()

    async with Tasks() as tasks:

        async def first() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                tasks.spawn(second(), name="second")
                await asyncio.sleep(0)

        tasks.spawn(first(), name="first")
        await asyncio.sleep(0)
    assert second_ended.is_set()


async def test_a_failure_is_logged_and_disturbs_nobody(caplog: pytest.LogCaptureFixture):
    async def fail() -> None:
        raise RuntimeError("broken")

    async with Tasks() as tasks:
        other = tasks.spawn(asyncio.sleep(0.01), name="other")
        tasks.spawn(fail(), name="failing")
        await other

    assert "the task 'failing' failed" in caplog.text
    assert "broken" in caplog.text


async def test_callbacks_may_be_plain_async_or_broken(caplog: pytest.LogCaptureFixture):
    heard: list[object] = []

    async def later(value: object) -> None:
        heard.append(value)

    def broken(value: object) -> None:
        raise RuntimeError("callback broke")

    async with Tasks() as tasks:
        tasks.call(heard.append, 1)
        tasks.call(later, 2)
        tasks.call(broken, 3)
        await asyncio.sleep(0)

    assert heard == [1, 2]
    assert "callback broke" in caplog.text


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


async def test_work_runs_while_the_block_lasts() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Future()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async with running(work()) as task:
        await asyncio.sleep(0)
        assert not task.done()

    assert task.cancelled()
    assert ended.is_set()


async def test_the_block_gets_the_result_and_the_failure() -> None:
    async def answer() -> int:
        return 42

    async with running(answer()) as task:
        assert await task == 42

    async with running(fail()) as task:
        with pytest.raises(LookupError, match="lost"):
            await task


async def test_an_error_in_the_block_ends_the_work() -> None:
    work = asyncio.ensure_future(asyncio.Event().wait())
    with pytest.raises(ValueError, match="mine"):
        async with running(work):
            raise ValueError("mine")
    assert work.cancelled()


class TestUnless:
    async def test_work_that_is_done_first_gives_its_result(self):
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            await asyncio.sleep(0)
            return "done"

        assert await unless(over, work()) == "done"
        over.set_result(None)  # Nobody listens any more.
        await asyncio.sleep(0)

    async def test_work_is_ended_in_its_own_task_when_something_else_is_done_first(self):
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cleaned: list[object] = []

        async def work() -> str:
            asyncio.get_running_loop().call_soon(over.set_result, None)
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append(asyncio.current_task())
            raise AssertionError

        assert await unless(over, work()) is None
        task = asyncio.current_task()
        assert cleaned == [task]
        assert task is not None
        assert task.cancelling() == 0

    async def test_what_is_over_already_ends_the_work_at_its_first_pause(self):
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        over.set_result(None)
        assert await unless(over, asyncio.Event().wait()) is None

    async def test_a_failure_and_a_cancellation_of_the_caller_are_passed_on(self):
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def late() -> None:
            raise TimeoutError("its own")

        with pytest.raises(TimeoutError, match="its own"):
            await unless(over, late())
        outer = asyncio.create_task(unless(over, asyncio.Event().wait()))
        await asyncio.sleep(0)
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
