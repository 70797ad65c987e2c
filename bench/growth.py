"""What one more costs when there are many already: sessions, chats, turns, customizations, clients, subscriptions.

    python bench/growth.py [--quick] [--json FILE]

For each kind the host is filled to 10, 100, 1,000 and 10,000 (with --quick to 1,000), and one more is made a few times.
Shown is the CPU time of the host's process for one more, in milliseconds, and the ratio of the last to the first: flat
costs have a ratio near 1. The host runs in this process over memory, with SQLite on disk and all features of
`ahpkit serve`; the clients are as cheap as they can be, and their share is the same at every size.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.growth import KINDS, Kind, bed

TARGET = 1.5
REPEAT = 15

Json = dict[str, Any]


async def measure(kind: Kind, sizes: list[int]) -> dict[int, float]:
    """CPU milliseconds for one more at each size."""
    fill = kind.fill or kind.grow
    costs: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with bed(Path(folder)) as made:
            have = 1
            for size in sizes:
                while have < size:
                    await fill(made)
                    have += 1
                await made.host.services.durable()
                gc.collect()
                gc.freeze()
                taken: list[float] = []
                for _ in range(REPEAT):
                    began = time.process_time()
                    await kind.grow(made)
                    taken.append(time.process_time() - began)
                    have += 1
                costs[size] = statistics.median(taken) * 1000
    return costs


def sizes_of(most: int, quick: bool) -> list[int]:
    """The sizes up to what there may be; a limit just below one of them stands for it."""
    return sorted({min(size, most) for size in (10, 100, 1_000, 10_000) if not (quick and size > 1_000)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 1,000 only")
    parser.add_argument("--only", help="one kind")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    options = parser.parse_args()
    results: dict[str, Json] = {}
    print(f"{'one more of':26}" + "".join(f"{size:>10,}" for size in (10, 100, 1_000, 10_000)) + "     ratio")
    for name, kind in KINDS.items():
        if options.only not in (None, name):
            continue
        costs = asyncio.run(measure(kind, sizes_of(kind.most, options.quick)))
        ratio = list(costs.values())[-1] / costs[10]
        shown = "".join(f"{cost:>10.2f}" for cost in costs.values()).ljust(40)
        print(f"{name:26}{shown}{ratio:>10.2f}  {'ok' if ratio <= TARGET else f'over {TARGET}'}", flush=True)
        results[name] = {"cpu_ms": costs, "ratio": ratio}
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
