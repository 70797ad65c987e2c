"""What differs between operating systems, in one place: files, locks, processes, signals, terminals, `file:` URIs.

Everything here can be imported everywhere. What needs a POSIX system says so when it is used (`Unsupported`), not when
it is imported: a client runs without any of it. A port to another system changes these modules and no others.
"""

from __future__ import annotations

import errno


class Unsupported(OSError):
    """This system lacks what was asked for; the text names it."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.ENOSYS, f"{what}: not available on this system")


__all__ = ["Unsupported"]
