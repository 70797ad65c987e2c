"""`ahpkit` with a clock that can be set: `python -m support.jumpy_host FILE serve …`.

The file holds by how many seconds the clock is wrong. It is read again at each SIGUSR2. At SIGUSR1 it says where each
of its tasks is.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import Any


def set_by(file: Path) -> None:
    """Let the wall clock of this process be wrong by what the file says."""
    real, offset = time.time_ns, 0

    def read(*_: object) -> None:
        nonlocal offset
        offset = int(float(file.read_text()) * 1_000_000_000)

    read()
    signal.signal(signal.SIGUSR2, read)
    time.time_ns = lambda: real() + offset
    time.time = lambda: (real() + offset) / 1_000_000_000


def say_tasks(*_: object) -> None:
    for task in asyncio.all_tasks(asyncio.get_running_loop()):
        places: list[str] = []
        waits: Any = task.get_coro()
        while (frame := getattr(waits, "cr_frame", None)) is not None:
            places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
            waits = waits.cr_await
        sys.stderr.write(f"task {task.get_name()}: {' > '.join(places)}\n")


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, say_tasks)
    set_by(Path(sys.argv.pop(1)))
    from ahpkit.cli.main import main

    main()
