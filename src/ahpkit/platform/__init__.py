"""Everything that differs between operating systems: files, locks, processes, signals, terminals, `file:` URIs.

Everything here can be imported on every system. Functions that need POSIX raise `Unsupported` when they are used, not
when they are imported: a client runs without any of them. A port to another system changes these modules and no others.
"""

from __future__ import annotations

import errno


class Unsupported(OSError):
    """This system lacks a function that was used. The text names it."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.ENOSYS, f"{what}: not available on this system")


__all__ = ["Unsupported"]
