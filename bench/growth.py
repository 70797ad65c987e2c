"""What one more costs when there are many already: sessions, chats, turns, customizations, clients, subscriptions.

    python bench/growth.py [--quick] [--only KIND] [--json FILE]

For each kind the script fills the host to 10, 100, 1,000 and 10,000 (with --quick to 1,000), and makes one more a few
times. It shows the median CPU time of the host's process for one more, in milliseconds, and divides the last number by
that of a second host with ten, measured in turns with it. A ratio near 1 means that the cost does not grow. The hosts
run in this process over memory, with SQLite on disk and customizations; the clients are as cheap as they can be, and
their share is the same at every size. `tests/support/growth.py` defines what one more of each kind is.

Then it measures the memory of a session at rest, beyond its text, and a restart with as many sessions, in a separate
process, beside a start without any.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import os
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from caller import Start, measure_start

from ahpkit.log.sqlite import SqliteStorage
from ahpkit.wire.codec import encode
from support.growth import KINDS, Bed, Kind, bed

TARGET = 1.5
ROUNDS, OF_A_ROUND = 9, 4
MAX_KIB = 16
"""Memory of a session at rest, beyond its text."""
MAX_RESTART = 2.0
"""Seconds for a restart with ten thousand sessions."""

Json = dict[str, Any]


class Curve(NamedTuple):
    """CPU milliseconds for one more."""

    costs: dict[int, float]
    """The costs at each size."""
    beside: float
    """The cost in a second host that has few, measured at the same time as the last of `costs`."""

    @property
    def ratio(self) -> float:
        return list(self.costs.values())[-1] / self.beside


async def measure(kind: Kind, sizes: list[int]) -> Curve:
    """Measures two hosts in turns, because the machine may be busier at the end than at the beginning."""
    costs: dict[int, float] = {}
    beside = 0.0
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        async with bed(Path(one)) as few, bed(Path(other)) as many:
            await fill(few, kind, sizes[0])
            for before, size in pairwise([0, *sizes]):
                await fill(many, kind, size - before)
                gc.collect()
                gc.freeze()
                rounds = [(await cost(few, kind), await cost(many, kind)) for _ in range(ROUNDS)]
                beside, costs[size] = (median(found) for found in zip(*rounds, strict=True))
    return Curve(costs, beside)


async def fill(made: Bed, kind: Kind, count: int) -> None:
    for _ in range(count):
        await (kind.fill or kind.grow)(made)
    await made.host.services.durable()


async def cost(made: Bed, kind: Kind) -> float:
    """CPU milliseconds of this process for one more, the mean of a few."""
    began = time.process_time()
    for _ in range(OF_A_ROUND):
        await kind.grow(made)
    return (time.process_time() - began) / OF_A_ROUND * 1000


async def measure_memory(count: int) -> Json:
    """Bytes of this process for each session at rest, and the bytes of its text."""
    with tempfile.TemporaryDirectory() as folder:
        async with bed(Path(folder)) as made:
            await make_sessions(made, 200)
            before = resident(), text_of(made)
            await make_sessions(made, count)
            after = resident(), text_of(made)
    all, text = ((then - now) / count for then, now in zip(after, before, strict=True))
    return {"memory_kib": all / 1024, "text_kib": text / 1024, "beyond_kib": (all - text) / 1024}


async def make_sessions(made: Bed, count: int) -> None:
    for _ in range(count):
        await made.new_session()
    made.client.received.clear()
    await made.host.services.durable()


def resident() -> int:
    """Bytes of memory that this process holds, not counting free memory that it could give back."""
    gc.unfreeze()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def text_of(made: Bed) -> int:
    store = made.host.spine.store
    return sum(len(encode(store.committed(uri))) for uri in store.channels())


async def measure_restart(sessions: int, rounds: int) -> Json:
    """Seconds from the start of `ahpkit serve` until it answers `initialize`, with that many sessions and with none."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        data = home / "data"
        data.mkdir(mode=0o700)
        async with bed(home, SqliteStorage(data / "log.db", durability="normal")) as made:
            await make_sessions(made, sessions)
        await measure_start(home / "first")
        starts: dict[str, list[Start]] = {"empty": [], "full": []}
        for number in range(rounds):
            starts["empty"].append(await measure_start(home / f"empty-{number}"))
            starts["full"].append(await measure_start(data))
    return {name: middle(found) for name, found in starts.items()}


def middle(starts: list[Start]) -> Json:
    """The median of each number."""
    return {field: median(getattr(one, field) for one in starts) for field in Start._fields}


def show_memory(found: Json) -> None:
    met = "ok" if found["beyond_kib"] <= MAX_KIB else f"over {MAX_KIB}"
    print(
        f"\na session at rest: {found['memory_kib']:.1f} KiB, {found['text_kib']:.1f} of it text; "
        f"beyond its text {found['beyond_kib']:.1f} KiB  {met}"
    )


def show_restart(sessions: int, found: Json) -> None:
    full, empty = found["full"], found["empty"]
    print(f"\n{'to an answered initialize':32}{'wall s':>8}{'CPU s':>8}   then listSessions, s")
    print(f"{'a start without sessions':32}{empty['wall']:>8.2f}{empty['cpu']:>8.2f}{empty['listed']:>10.2f}")
    met = "ok" if full["wall"] <= MAX_RESTART else f"over {MAX_RESTART} s"
    label = f"a restart with {sessions:,}"
    print(f"{label:32}{full['wall']:>8.2f}{full['cpu']:>8.2f}{full['listed']:>10.2f}  {met}", flush=True)


def sizes_of(most: int, quick: bool) -> list[int]:
    """The sizes up to the limit; a limit just below one of the sizes takes its place."""
    return sorted({min(size, most) for size in (10, 100, 1_000, 10_000) if not (quick and size > 1_000)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 1,000 only")
    parser.add_argument("--only", help="one kind, `memory` or `restart`")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    options = parser.parse_args()
    results: dict[str, Json] = {}
    if options.only not in ("memory", "restart"):
        print(
            f"{'one more of':26}" + "".join(f"{size:>10,}" for size in (10, 100, 1_000, 10_000)) + "  10 again   ratio"
        )
    for name, kind in KINDS.items():
        if options.only not in (None, name):
            continue
        found = asyncio.run(measure(kind, sizes_of(kind.most, options.quick)))
        shown = "".join(f"{cost:>10.2f}" for cost in found.costs.values()).ljust(40)
        met = "ok" if found.ratio <= TARGET else f"over {TARGET}"
        print(f"{name:26}{shown}{found.beside:>10.2f}{found.ratio:>8.2f}  {met}", flush=True)
        results[name] = {"cpu_ms": found.costs, "beside_ms": found.beside, "ratio": found.ratio}
    if options.only in (None, "memory"):
        results["memory"] = asyncio.run(measure_memory(500 if options.quick else 3_000))
        show_memory(results["memory"])
    if options.only in (None, "restart"):
        sessions = 1_000 if options.quick else 10_000
        results["restart"] = asyncio.run(measure_restart(sessions, 3 if options.quick else 5))
        show_restart(sessions, results["restart"])
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
