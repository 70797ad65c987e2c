"""A process that appends to a log as fast as it can and prints each number once it is durable; for the crash tests."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from ahpkit.log.datadir import data_directory, open_storage
from ahpkit.log.entry import ChannelSnapshot, Entry
from ahpkit.log.errors import OutOfOrder
from ahpkit.log.log import Log
from ahpkit.log.retention import Retention
from ahpkit.testing.storage import divided

CHANNELS = ("a", "b", "c")
IN_FLIGHT = 50


async def run(directory: Path) -> None:
    retention = Retention(max_entries=500)
    progress = asyncio.Event()

    def on_commit(entries: list[Entry]) -> None:
        os.write(1, b"".join(b"%d\n" % entry.seq for entry in entries))
        progress.set()

    async with Log(open_storage(directory, "full"), on_commit=on_commit, on_error=print, retention=retention) as log:
        for channel in CHANNELS:
            log.snapshot(ChannelSnapshot(channel, log.head_seq, b"%d" % log.head_seq))
        while True:
            while log.pending < IN_FLIGHT:
                seq = log.head_seq + 1
                channel = CHANNELS[seq % len(CHANNELS)]
                log.append(Entry(seq, channel, b"%d" % seq, f"client-{channel}", seq, seq))
                if seq % 100 == 0:
                    log.snapshot(ChannelSnapshot(channel, seq, b"%d" % seq))
            await progress.wait()
            progress.clear()
            await store_in_parts(log, CHANNELS[log.head_seq % len(CHANNELS)])


async def store_in_parts(log: Log, channel: str) -> None:
    """Store a large state as the host does: each part is durable before the next one is written."""
    seq, text = log.head_seq, b"%d" % log.head_seq
    parts, snapshot = divided(channel, seq, *(text[place : place + 1] for place in range(len(text))))
    for part in parts:
        try:
            log.part(part)
        except OutOfOrder:  # Its state was stored a moment ago.
            return
        await log.flush()
    log.snapshot(snapshot)


if __name__ == "__main__":
    with data_directory(Path(sys.argv[1])) as directory:
        asyncio.run(run(directory))
