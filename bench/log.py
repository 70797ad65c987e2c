"""Measures the durable log against a plain SQLite loop on the same disk in the same run. Prints a table and JSON.

    python bench/log.py [--entries 20000] [--restart-entries 1000000] [--json FILE]

Look at the ratios: a disk's sync rate changes by a factor of ten with what else uses the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ahpkit.log.datadir import Durability, open_storage
from ahpkit.log.entry import ChannelSnapshot, Entry
from ahpkit.log.log import Log
from ahpkit.log.storage import Storage

PAYLOAD = b'{"channel":"ahp-chat:/0","serverSeq":0,"action":' + b"x" * 252
CHANNELS = [f"ahp-chat:/{number:032x}" for number in range(10)]
IN_FLIGHT = (1, 10, 100, 1000)
ROUNDS = 3

T = TypeVar("T")
Result = dict[str, float | int | str]


def entries(first: int, count: int) -> Iterator[Entry]:
    """300-byte actions, round-robin over ten chats, every second one dispatched by a client."""
    for seq in range(first, first + count):
        client = ("client-0123456789abcdef", seq) if seq % 2 else (None, None)
        yield Entry(seq, CHANNELS[seq % len(CHANNELS)], PAYLOAD, *client, 1_700_000_000_000 + seq)


async def appends_per_second(storage: Storage, *, in_flight: int, count: int) -> float:
    """Keep `in_flight` entries waiting: each committed entry lets in a new one. Entries count once they are durable."""
    finished = asyncio.Event()
    source = entries(1, count)
    durable = 0

    def committed(batch: list[Entry]) -> None:
        nonlocal durable
        durable += len(batch)
        for _ in batch:
            if entry := next(source, None):
                log.append(entry)
        if durable == count:
            finished.set()

    async with Log(storage, on_commit=committed, on_error=print) as log:
        for channel in CHANNELS:
            log.snapshot(ChannelSnapshot(channel, 0, b"{}"))
        await log.flush()
        started = time.perf_counter()
        for _ in range(min(in_flight, count)):
            log.append(next(source))
        await finished.wait()
        return count / (time.perf_counter() - started)


def raw_inserts_per_second(path: Path, *, batch: int, count: int, durability: str) -> float:
    """What SQLite achieves in a loop that has all rows ready: one table, no index, no checksum, no event loop."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = {durability}; PRAGMA wal_autocheckpoint = 4000;")
    db.execute(
        "CREATE TABLE entries (seq INTEGER PRIMARY KEY, channel TEXT, payload BLOB, client_id TEXT, client_seq, at)"
    )
    batches = [[entry[:6] for entry in entries(first, batch)] for first in range(1, count, batch)]
    started = time.perf_counter()
    for rows in batches:
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.execute("COMMIT")
    seconds = time.perf_counter() - started
    db.close()
    return count / seconds


def compare(directory: Path, *, durability: Durability, in_flight: int, count: int) -> Result:
    """The median of a few rounds, alternating so that both see the same disk."""
    count = min(count, in_flight * 2000) if in_flight < 100 else count
    ours: list[float] = []
    raw: list[float] = []
    for number in range(ROUNDS):
        place = directory / f"{durability}-{in_flight}-{number}"
        place.mkdir()
        raw.append(raw_inserts_per_second(place / "raw.db", batch=in_flight, count=count, durability=durability))
        storage = open_storage(place, durability)
        ours.append(asyncio.run(appends_per_second(storage, in_flight=in_flight, count=count)))
    ratio = statistics.median(a / b for a, b in zip(ours, raw, strict=True))
    return {
        "durability": durability,
        "in_flight": in_flight,
        "appends_per_s": round(statistics.median(ours)),
        "raw_per_s": round(statistics.median(raw)),
        "ratio": round(ratio, 2),
    }


def memory(count: int) -> Result:
    rate = asyncio.run(appends_per_second(open_storage(Path(), "memory"), in_flight=1000, count=count))
    return {"durability": "memory", "in_flight": 1000, "appends_per_s": round(rate)}


def restart(directory: Path, *, count: int) -> Result:
    """Open a log of many entries whose channels were snapshotted a thousand entries ago; read and trim it."""
    storage = open_storage(directory, "normal")
    storage.load()
    storage.commit([ChannelSnapshot(channel, 0, b"{}") for channel in CHANNELS])
    for first in range(1, count, 10_000):
        storage.commit([*entries(first, 10_000)])
    storage.commit([ChannelSnapshot(channel, count - 1000, b"x" * 100_000) for channel in CHANNELS])
    storage.close()
    storage = open_storage(directory, "full")
    recovery, load = timed(storage.load)
    _, replay = timed(lambda: storage.read(count - 100_000, channels=CHANNELS[:1]))
    _, seen = timed(lambda: storage.seen("client-0123456789abcdef", count // 2 + 1))
    _, trim = timed(lambda: storage.trim(10_001))
    disk_bytes = storage.statistics().disk_bytes
    storage.close()
    return {
        "entries": count,
        "tail": len(recovery.tail),
        "load_ms": load,
        "replay_10k_of_100k_ms": replay,
        "seen_ms": seen,
        "trim_10k_ms": trim,
        "disk_mib": disk_bytes >> 20,
    }


def timed(call: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    result = call()
    return result, round((time.perf_counter() - started) * 1000, 2)


def table(rows: list[Result]) -> str:
    columns = list(rows[0])
    lines = [columns, *([str(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=20_000, help="per round")
    parser.add_argument("--restart-entries", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--json", type=Path, help="also write the results here")
    options = parser.parse_args()
    if options.quick:
        options.entries, options.restart_entries = options.entries // 10, options.restart_entries // 10
    with tempfile.TemporaryDirectory(prefix="ahpkit-bench-") as name:
        directory = Path(name)
        durabilities: tuple[Durability, ...] = ("full", "normal")
        appends = [
            compare(directory, durability=durability, in_flight=in_flight, count=options.entries)
            for durability in durabilities
            for in_flight in IN_FLIGHT
        ]
        appends.append(memory(options.entries))
        restarted = restart(directory, count=options.restart_entries)
    print(table(appends), table([restarted]), sep="\n\n")
    text = json.dumps({"appends": appends, "restart": restarted})
    print(f"\n{text}")
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
