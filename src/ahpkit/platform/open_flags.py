"""Flags for `os.open` that not every system has.

A system without `NO_FOLLOW` and `DIRECTORY` also cannot open files below an open directory (`dir_fd`). All uses of
these two flags do that, so on such a system they fail, and never follow a link.
"""

from __future__ import annotations

import os
from typing import Final

CLOSE_ON_EXEC: Final[int] = getattr(os, "O_CLOEXEC", 0)
DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)
NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
NON_BLOCKING: Final[int] = getattr(os, "O_NONBLOCK", 0)
PATH_ONLY: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
"""Only the place, which need not be readable. macOS has no such flag."""

__all__ = ["CLOSE_ON_EXEC", "DIRECTORY", "NON_BLOCKING", "NO_FOLLOW", "PATH_ONLY"]
