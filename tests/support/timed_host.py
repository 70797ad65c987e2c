"""`ahpkit` with a stop watch: writes down every step of its event loop that took long, in CPU time of that thread.

    python -m support.timed_host FILE serve …

A step is what runs between two moments in which others can be served. Waiting, other threads and a busy machine do not
count. Nor does Python's search for garbage: it happens in whatever step is next, and depends on how much is alive.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from pathlib import Path
from typing import Any

SLOW = 0.01
"""Steps that take at least this many seconds of CPU are written down."""


class Searching:
    """How long the main thread, which has the event loop, searched for garbage: in seconds of CPU."""

    def __init__(self) -> None:
        self.took = 0.0
        self._began = 0.0

    def __call__(self, phase: str, _: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.took += time.thread_time() - self._began


def watch(file: Path) -> None:
    """Measure every callback of every event loop of this process from now on."""
    handle: Any = asyncio.Handle
    run = handle._run
    searching = Searching()
    gc.callbacks.append(searching)

    def timed(self: Any) -> None:
        searched, began = searching.took, time.thread_time()
        run(self)
        if (took := time.thread_time() - began - (searching.took - searched)) > SLOW:
            with file.open("a") as notes:
                notes.write(f"{took:.4f} {self!r}\n")

    handle._run = timed


if __name__ == "__main__":
    from ahpkit.cli.main import main

    watch(Path(sys.argv.pop(1)))
    main()
