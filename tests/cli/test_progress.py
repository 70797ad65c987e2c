"""Long work: shown to people, silent elsewhere."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from ahpkit.cli import progress as module
from ahpkit.cli.progress import Tell, patiently, progress
from support.waiting import BOUND


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Working") as tell:
        tell("half of it")
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person would have been shown."""
    seen: list[str] = []

    @contextmanager
    def show(doing: str) -> Generator[None]:
        seen.append(doing)
        yield

    monkeypatch.setattr(module, "progress", show)
    return seen


async def test_quick_work_is_not_talked_about(shown: list[str]) -> None:
    assert await patiently(asyncio.sleep(0, "done"), "Working") == "done"
    assert shown == []


async def test_slow_work_is(shown: list[str]) -> None:
    assert await patiently(asyncio.sleep(0.01, "done"), "Working", patience=0) == "done"
    assert shown == ["Working"]


async def test_failures_are_passed_on(shown: list[str]) -> None:
    async def fail() -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await patiently(fail(), "Working")


async def test_being_cancelled_cancels_the_work(shown: list[str]) -> None:
    ended = asyncio.Event()
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    waiting = asyncio.create_task(patiently(work(), "Working"))
    await started.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(BOUND):
        await ended.wait()


async def test_long_work_is_explained_in_a_log_too(shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told = asyncio.Event()

    async def explain(tell: Tell) -> None:
        tell("waiting for an answer")
        told.set()
        await asyncio.Future[None]()

    assert await patiently(told.wait(), "Working", explain=explain, patience=0, long=0)
    assert capsys.readouterr().err == "Working … waiting for an answer\n"
