"""`ahpkit` that is killed, as by `kill -9`, before it opens or renames a file of its log.

    python -m support.killed_host EVENT NAME serve …

EVENT is the name of an audit event of Python that has the file's path as its first argument, such as `os.rename`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any


def kill_before(event: str, name: str) -> None:
    """End this process, without a word, before it does that to the file of that name."""

    def heard(happening: str, arguments: tuple[Any, ...]) -> None:
        if happening == event and Path(str(arguments[0]).partition("?")[0]).name == name:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


if __name__ == "__main__":
    from ahpkit.cli.main import main

    kill_before(sys.argv.pop(1), sys.argv.pop(1))
    main()
