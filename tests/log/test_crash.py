"""kill -9 at any point: everything that was reported as durable is there, and numbers go on."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from ahpkit.log.datadir import open_storage
from ahpkit.log.entry import Recovery
from support import appender, requirement
from support.records import seqs

ROUNDS = 8


def acknowledged_until_killed(directory: Path, after: int) -> list[int]:
    """Run the appender, kill it once it reported `after` entries; all the numbers it reported."""
    command = [sys.executable, "-P", appender.__file__, str(directory)]  # Beside it there is an `http.py`.
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline() for _ in range(after)]
        finally:
            process.kill()
        lines += process.stdout.readlines()  # Not `communicate`: it skips what `readline` has read ahead.
    # A line that the kill cut in two was not reported.
    return [int(line) for line in lines if line.endswith(b"\n")]


def checked(directory: Path) -> Recovery:
    """Open the log as the next host would, and check that it is whole."""
    storage = open_storage(directory, "full")
    recovery = storage.load()
    found = storage.read(recovery.oldest_seq - 1)
    storage.close()
    assert recovery.problems == []
    assert seqs(found) == list(range(recovery.oldest_seq, recovery.head_seq + 1))
    assert all(each.payload == b"%d" % each.seq for each in found)
    assert all(snapshot.state == b"%d" % snapshot.seq for snapshot in recovery.snapshots.values())
    assert recovery.tail == [each for each in found if each.seq > recovery.snapshots[each.channel].seq]
    return recovery


@requirement("core:hardening:server-seq-survives-restart")
def test_nothing_reported_is_lost_however_often_the_process_is_killed(tmp_path: Path) -> None:
    moments = random.Random(7)
    head, oldest = 0, 1
    for _ in range(ROUNDS):
        acknowledged = acknowledged_until_killed(tmp_path, after=moments.randrange(0, 800))
        recovery = checked(tmp_path)

        if acknowledged:
            assert acknowledged == list(range(head + 1, acknowledged[-1] + 1))
            assert recovery.head_seq >= acknowledged[-1]
        assert recovery.head_seq >= head
        assert recovery.oldest_seq >= oldest
        head, oldest = recovery.head_seq, recovery.oldest_seq
    assert head > oldest > 1000
