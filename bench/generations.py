"""What clients of each generation cost a host, compared with the newest generation in the same run.

    python bench/generations.py [--quick]

A hundred subscribers follow the same session. Two kinds of actions: streamed text, which is the same in all versions,
and remarks, which are translated for every version before 0.9. Nearly all actions of a session are of the first kind,
so the target is for that one; the second is the worst case. Look at the CPU per delivery: elapsed time depends on what
else the machine does. The host and the subscribers are the processes of `host_roles.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from caller import Child, running_host
from host_roles import REMARKS, RUN

Result = dict[str, Any]

SUBSCRIBERS = 100
NEWEST = "1.0.0"
MIXES = {
    "1.0.0": [NEWEST],
    "0.9.0": ["0.9.0"],
    "0.7.0": ["0.7.0"],
    "0.4.0": ["0.4.0"],
    "1.0.0, 0.4.0": [NEWEST, "0.4.0"],
    "1.0.0, 0.7.0, 0.4.0": [NEWEST, "0.7.0", "0.4.0"],
    "all nine": [NEWEST, "0.9.0", "0.8.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1", "0.5.0", "0.4.0"],
}
STREAMED = "streamed"
TARGET = 1.3
"""The most that a delivery may cost in a mix, as a multiple of one to the newest generation."""


async def measure(directory: Path, versions: list[str], prompt: str, actions: int) -> Result:
    """Returns the host's CPU for one delivery, and deliveries a second."""
    async with (
        running_host(directory) as (host, url, caller, chat),
        Child.start(
            "sink", url=url, count=SUBSCRIBERS, channel=f"{chat},{REMARKS}", versions=",".join(versions)
        ) as sink,
    ):
        await sink.said()
        before, begun = await host.ask(), time.perf_counter()
        caller.start_turn(chat, prompt)
        counted = await sink.said()
        wall, after = time.perf_counter() - begun, await host.ask()
    assert counted["deltas"] == actions, counted
    deliveries = SUBSCRIBERS * actions
    return {"us": (after["cpu"] - before["cpu"]) / deliveries * 1e6, "rate": deliveries / wall}


async def measure_all(directory: Path, actions: int, rounds: int) -> dict[str, dict[str, Result]]:
    """Kind of action → who is connected → medians. All take turns, so that a busy machine slows all of them alike."""
    kinds = {STREAMED: str(actions), "rewritten": f"#{actions}"}
    found: dict[str, dict[str, list[Result]]] = {kind: {mix: [] for mix in MIXES} for kind in kinds}
    for number in range(rounds):
        for kind, prompt in kinds.items():
            for place, (mix, versions) in enumerate(MIXES.items()):
                one = await measure(directory / f"{kind}-{number}-{place}", versions, prompt, actions)
                found[kind][mix].append(one)
    return {kind: {mix: _medians(each) for mix, each in mixes.items()} for kind, mixes in found.items()}


def _medians(results: list[Result]) -> Result:
    return {key: statistics.median(result[key] for result in results) for key in results[0]}


def show(found: dict[str, dict[str, Result]]) -> bool:
    met = True
    for kind, mixes in found.items():
        print(f"\n{kind:22} µs of CPU per delivery   × 1.0.0    deliveries/s")
        for mix, one in mixes.items():
            ratio = one["us"] / mixes[NEWEST]["us"]
            missed = kind == STREAMED and ratio > TARGET
            met = met and not missed
            said = f"   MISSED (≤ {TARGET})" if missed else ""
            print(f"  {mix:20} {one['us']:>22.2f}   {ratio:>7.2f}   {one['rate']:>13,.0f}{said}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer actions, one round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        actions = 4 * RUN if options.quick else 16 * RUN
        found = asyncio.run(measure_all(Path(place), actions, 1 if options.quick else 3))
    return 0 if show(found) else 1


if __name__ == "__main__":
    sys.exit(main())
