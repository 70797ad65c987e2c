"""`ahpkit serve` in which a thread hangs from the start, and the event loop on SIGUSR1. It must stop all the same.

python -m support.stuck_host serve …
"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

from ahpkit.cli import serve


def forever() -> None:
    while True:
        pass


run: Any = serve._run  # pyright: ignore[reportPrivateUsage]  # The fault is put in here.


async def stuck(*arguments: Any, **options: Any) -> None:
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, time.sleep, 1_000)
    loop.add_signal_handler(signal.SIGUSR1, forever)
    await run(*arguments, **options)


if __name__ == "__main__":
    from ahpkit.cli.main import main

    serve.STOP_DEADLINE = 1.0
    serve._run = stuck  # pyright: ignore[reportPrivateUsage]  # The fault is put in here.
    main()
