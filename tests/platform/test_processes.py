"""Whose processes are whose: marks, and what is left of somebody who is gone. Ending and descent: `test_process`."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ahpkit.platform.processes import MARK, end_orphans, look, look_together, new_mark
from support.waiting import gone, is_alive

OWNER = """
import subprocess, sys
from ahpkit.platform.processes import MARK, new_mark
print(subprocess.Popen(["sleep", "600"], env={MARK: new_mark()}, start_new_session=True, stdout=-3, stderr=-3).pid)
"""
"""Leaves a marked process behind."""


@contextmanager
def sleeping(mark: str) -> Generator[int]:
    with subprocess.Popen(["sleep", "600"], env={MARK: mark}) as process:
        try:
            while not Path(f"/proc/{process.pid}/environ").read_bytes():  # It is being replaced by `sleep`.
                pass
            yield process.pid
        finally:
            process.kill()


def left_behind() -> int:
    """A marked process whose owner is gone."""
    return int(subprocess.run([sys.executable, "-c", OWNER], capture_output=True, check=True).stdout)


async def test_what_somebody_left_who_is_gone_is_ended() -> None:
    pid = left_behind()
    assert is_alive(pid)

    assert end_orphans() >= 1

    await gone(pid)


def test_what_belongs_to_somebody_who_is_there_is_left_alone() -> None:
    with sleeping(new_mark()) as pid:
        end_orphans()
        assert is_alive(pid)


@pytest.mark.parametrize("mark", ["4026531836000.1.5:x", "", "x", "1.2", f"{'9' * 400}.x.:y"])
def test_a_mark_from_elsewhere_or_none_of_ours_is_left_alone(mark: str) -> None:
    with sleeping(mark) as pid:
        end_orphans()
        assert is_alive(pid)


def test_a_mark_that_we_carry_ourselves_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    space = new_mark().partition(".")[0]
    mark = f"{space}.{2**22 + 1}.5:x"  # There is no such process: numbers end before.
    monkeypatch.setitem(os.environ, MARK, mark)
    with sleeping(mark) as pid:
        end_orphans()
        assert is_alive(pid)


def test_marks_differ_and_name_their_processes() -> None:
    one, other = new_mark(), new_mark()
    with sleeping(one) as pid:
        assert one != other
        assert pid in look().family((), one)
        assert pid not in look().family((), other)


async def test_those_who_ask_at_the_same_time_share_one_look_that_begins_afterwards() -> None:
    """Many processes may end together, and each look reads all of /proc."""
    mark = new_mark()
    before = await look_together()
    with sleeping(mark) as pid:
        looks = await asyncio.gather(*(look_together() for _ in range(20)))
        assert len({id(one) for one in looks}) == 1
        assert looks[0] is not before
        assert looks[0].family((), mark) == {pid}
