"""`make soak ARGS="--minutes 60"`: break real hosts for that long, then look for properties that do not hold.

Each run prints its seed. What the clients do follows from it; what the machine makes of it does not, so a fault
that was found may need several runs with its seed.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys

from soak.explore import explore
from soak.run import Report, run


def bar(report: Report, name: str, seconds: float) -> str:
    share = min(1.0, report.seconds / seconds) if seconds else 1.0
    filled = int(share * 30)
    return f"[{'#' * filled}{'.' * (30 - filled)}] {share:4.0%}  {report.rounds.total():4} faults  now: {name}"


def show(line: str) -> None:
    """One line that the next one replaces; nothing where nobody watches."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="make soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long hosts are broken (10)")
    parser.add_argument("--explore", type=float, help="seconds for properties (a fifth of the time)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="what an earlier run printed")
    options = parser.parse_args()
    seconds: float = options.minutes * 60
    exploring: float = seconds / 5 if options.explore is None else options.explore
    print(f"seed {options.seed}", flush=True)
    report = asyncio.run(
        run(
            options.seed,
            lambda report: report.seconds < seconds,
            lambda report, name: show(bar(report, name, seconds)),
        )
    )
    show("")
    print(report.text(), flush=True)
    found = explore(options.seed, exploring, lambda file: show(f"looking for new examples: {file}"))
    show("")
    print(found or f"{exploring:.0f} s of new examples for the properties: all hold")
    sys.exit(report.broken is not None or found is not None)


if __name__ == "__main__":
    main()
