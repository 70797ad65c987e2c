"""Flags for `os.open` that not every system has.

A flag that is missing is 0. That is safe for `NO_FOLLOW`: a system without it cannot open files below an open directory
(`dir_fd`) either. Every use of `NO_FOLLOW` does that, so it fails there, and never follows a link.
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
