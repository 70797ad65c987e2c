"""How long a host takes to notice a change in a large repository, beside git's own commands in the same run.

Elapsed time depends on what else the machine does; CPU time, git's included, hardly does.

python bench/changesets.py [--files 50000] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from ahpkit.changes.git import find
from ahpkit.changes.session import SessionChanges
from ahpkit.changes.work_tree import WorkTree


def make_repository(root: Path, files: int) -> None:
    """Many small files in folders of a hundred, committed."""
    for number in range(files):
        path = root / f"d{number // 100}" / f"f{number}.txt"
        if number % 100 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"file {number}\n")
    identity = ("-c", "gc.auto=0", "-c", "user.name=bench", "-c", "user.email=bench@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "all")):
        subprocess.run(["git", *command], cwd=root, check=True)


class Cost(NamedTuple):
    """What one piece of work cost: the best of a few runs."""

    seconds: float
    cpu: float
    """Seconds of CPU, ours and git's."""

    def __str__(self) -> str:
        return f"{self.seconds:8.3f} s   CPU {self.cpu:6.3f} s"


async def timed(work: Callable[[], Awaitable[object]], times: int = 5) -> Cost:
    costs: list[Cost] = []
    for _ in range(times):
        start, cpu = time.perf_counter(), used_cpu()
        await work()
        costs.append(Cost(time.perf_counter() - start, used_cpu() - cpu))
    return Cost(min(cost.seconds for cost in costs), min(cost.cpu for cost in costs))


def used_cpu() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


async def measure(root: Path, ours: Path) -> None:
    git = await find(root, objects=ours)
    assert git is not None
    changes = SessionChanges(WorkTree(git))
    await changes.begin("t")
    edited = root / "d1" / "f100.txt"
    count = 0

    async def one_edit() -> None:
        nonlocal count
        count += 1
        edited.write_text(f"edit {count}\n")
        await changes.refresh("t", ["d1/f100.txt"])
        assert [change.path for change in await changes.session(["t"])] == ["d1/f100.txt"]

    async def whole_look() -> None:
        await changes.refresh("t")

    async def git_status() -> None:
        process = await asyncio.create_subprocess_exec(
            "git", "status", "--porcelain", cwd=root, stdout=subprocess.DEVNULL
        )
        await process.wait()

    print(f"one known edit, shown        {await timed(one_edit)}   target 0.3 s")
    print(f"a look at the whole tree     {await timed(whole_look)}")
    print(f"baseline: git status         {await timed(git_status)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--quick", action="store_true", help="2,000 files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "repo"
        make_repository(root, 2_000 if options.quick else options.files)
        asyncio.run(measure(root, Path(place) / "ours"))


if __name__ == "__main__":
    main()
