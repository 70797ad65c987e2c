"""`ahpkit` with a stop watch: writes down every step of its event loop that took long, in CPU time of that thread.

    python -m support.timed_host FILE serve …

A step is what runs between two moments in which others can be served. Waiting, other threads and a busy machine do not
count.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

SLOW = 0.01
"""Seconds of CPU from which on a step is written down."""


def watch(file: Path) -> None:
    """Measure every callback of every event loop of this process from now on."""
    handle: Any = asyncio.Handle
    run = handle._run

    def timed(self: Any) -> None:
        began = time.thread_time()
        run(self)
        if (took := time.thread_time() - began) > SLOW:
            with file.open("a") as notes:
                notes.write(f"{took:.4f} {self!r}\n")

    handle._run = timed


if __name__ == "__main__":
    from ahpkit.cli.main import main

    watch(Path(sys.argv.pop(1)))
    main()
