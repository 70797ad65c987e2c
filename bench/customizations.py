"""Measures how customizations are read: many files, a second look after one change, memory. Prints a table and JSON.

    python bench/customizations.py [--files 10000] [--json FILE]

The times are elapsed times on the machine at hand. The project promises 10,000 files in under 3 s on 2 cores; `limit`
in the output says whether that held.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ahpkit.customizations.discovery import Library, discover, locate
from ahpkit.customizations.watch import Watched, Watcher

LIMIT_SECONDS = 3.0
PROSE = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor. "

Rows = dict[str, float]


def make_workspace(root: Path, files: int) -> None:
    """Skills, commands and rules in equal parts; commands and rules with headers that strict YAML refuses."""
    (root / ".git").mkdir()
    for number in range(files):
        kind = number % 3
        if kind == 0:
            path = root / f".github/skills/skill-{number}/SKILL.md"
            header = (
                f"name: skill-{number}\ndescription: Does thing {number}. Use it when asked.\nallowed-tools: Read, Grep"
            )
        elif kind == 1:
            path = root / f".claude/commands/command-{number}.md"
            header = f"description: Command {number}\nargument-hint: [file] [mode]"
        else:
            path = root / f".cursor/rules/rule-{number}.mdc"
            header = f"description: Rule {number}\nglobs: **/*.{{ts,tsx}},src/**\nalwaysApply: false"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\n{header}\n---\n\n{PROSE * 20}\n")


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(root: Path, files: int) -> Rows:
    library = Library()
    before = _megabytes()
    rows: Rows = {"files": float(files)}
    rows["parse all (s)"] = seconds(lambda: discover(root, home=None, library=library))
    rows["parse per file (µs)"] = rows["parse all (s)"] / files * 1e6
    rows["memory (MB)"] = _megabytes() - before
    (root / ".claude/commands/command-1.md").write_text("---\ndescription: Changed\n---\n")
    [commands] = [location for location in locate(root, home=None) if location.name == ".claude/commands"]
    rows["one container after one change (s)"] = seconds(lambda: library.read(commands))
    rows["everything again (s)"] = seconds(lambda: discover(root, home=None, library=library))
    rows["noticed after (s)"] = asyncio.run(_latency(root))
    rows["limit"] = LIMIT_SECONDS
    return rows


async def _latency(root: Path) -> float:
    """From a file's change to its container being reported."""
    async with Watcher() as watcher:
        await watcher.watch([Watched("commands", root / ".claude/commands")])
        changes = aiter(watcher)
        start = time.perf_counter()
        (root / ".claude/commands/command-1.md").write_text("changed again")
        await asyncio.wait_for(anext(changes), 10)
        return time.perf_counter() - start


def _megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure reading customizations.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="1,000 files")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.quick:
        options.files = 1_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_workspace(root, options.files)
        rows = measure(root, options.files)
    for name, value in rows.items():
        print(f"{name:<36} {value:>12.3f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
