"""Limits of a process: lines of its log. Those of children are tested where they are started."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

import pytest

from ahpkit.platform.limits import Collections, FreedMemory, LogLimit


class Lines(logging.Handler):
    """What a log shows."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.shown: list[str] = []
        self.addFilter(LogLimit(str, monotonic=lambda: self.now))

    def emit(self, record: logging.LogRecord) -> None:
        self.shown.append(record.getMessage())


@pytest.fixture
def log() -> tuple[logging.Logger, Lines]:
    lines = Lines()
    logger = logging.Logger("test", logging.INFO)
    logger.addHandler(lines)
    return logger, lines


def test_the_first_of_many_lines_alike_are_shown_each_minute(log: tuple[logging.Logger, Lines]) -> None:
    logger, lines = log
    for lines.now in (0.0, 30.0, 60.0):
        for number in range(50):
            logger.warning("the same %d", number)
        logger.warning("another")
    assert len(lines.shown) == 20 + 1 + 1 + 20 + 1
    assert lines.shown[19] == "the same 19; more lines like this are left out for a minute"


def test_long_lines_are_cut_and_further_lines_are_indented(log: tuple[logging.Logger, Lines]) -> None:
    logger, lines = log
    logger.warning("%s", "x" * 10_000)
    logger.warning("100 %% of %s", "one\nERROR two\rthree")
    assert lines.shown[0].endswith("x… (10000 characters)")
    assert len(lines.shown[0]) < 4_100
    assert lines.shown[1] == "100 % of one\n    ERROR two\n    three"


@pytest.mark.parametrize(
    ("spent", "waiting", "collects"),
    [(0.01, 10, True), (0.01, 9, False), (0.06, 10, False), (0.06, 49, False)],
)
def test_garbage_is_searched_for_when_the_process_rests(spent: float, waiting: int, collects: bool) -> None:
    clock, searches = [100.0], list[int]()

    def collect() -> None:
        clock[0] += 5.0
        searches.append(waiting)

    collections = Collections(cpu=lambda: clock[0], waiting=lambda: waiting, collect=collect)
    for _ in range(2):  # What the search itself takes is no work.
        clock[0] += spent
        collections.look()
    assert searches == [waiting, waiting] * collects


_WORK_AND_REST = """
import asyncio, gc
from ahpkit.platform.limits import Collections

kept = [[] for _ in range(50_000)]
searches = []
gc.callbacks.append(lambda phase, info: searches.append(phase) if info["generation"] == 2 else None)

async def main():
    with Collections():
        kept.extend([] for _ in range(7_700 * 20))
        print("work", len(searches), flush=True)
        while not searches:
            await asyncio.sleep(0.01)
        print("rest", flush=True)
        kept.extend([] for _ in range(7_700 * 100))
        print("more work", len(searches) > 2, flush=True)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="its search is in small steps")
def test_work_is_not_interrupted_by_a_search_of_all_objects_unless_it_goes_on_for_long() -> None:
    said = subprocess.run([sys.executable, "-c", _WORK_AND_REST], capture_output=True, check=True, timeout=60)
    assert said.stdout.decode().splitlines() == ["work 0", "rest", "more work True"]


async def test_memory_is_not_searched_for_any_more_when_the_process_ends() -> None:
    """By then the loop has no threads: what was to happen in a moment failed, with a traceback in the log."""
    failed: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failed.append(context))
    looked = asyncio.Event()
    with FreedMemory(pause=0, free=lambda: loop.call_soon_threadsafe(looked.set) and 0, search=failed.append):
        await looked.wait()
    await loop.shutdown_default_executor()
    later = asyncio.Event()
    loop.call_later(0, later.set)
    await later.wait()
    assert failed == []


def test_memory_is_searched_for_when_much_was_freed_since_the_last_search() -> None:
    searches: list[int] = []
    free, found = 0, 12 * 2**20
    freed = FreedMemory(free=lambda: free, search=searches.append)
    for now, searched in ((found, 0), (2 * found, 1), (3 * found, 1), (found, 1), (2 * found, 1), (3 * found, 2)):
        free = now
        freed.look()
        assert len(searches) == searched, now
