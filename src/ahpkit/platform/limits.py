"""What the system lets this process have: open files, and memory that goes back when it is freed."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from typing import Any, Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Numbers of `mallopt` (malloc.h)."""

_LARGE = 256 * 1024
"""Bytes of a block that goes back to the system as soon as it is freed."""

_HEAPS = 2
"""Heaps of the C library, for all threads together."""


def allow_open_files(wanted: int) -> None:
    """Raise the limit of open files, as far as the system lets us. Connections, watches and databases need some each.

    Does nothing where there is no such limit.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def give_freed_memory_back() -> None:
    """From now on large blocks go back to the system when they are freed. Does nothing without glibc.

    Left alone, glibc keeps freed blocks of up to 32 MiB, and a heap for each thread: after a burst of large messages a
    process stays as large as it was at its worst.
    """
    set_option = _glibc("mallopt")
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, _LARGE)
        set_option(_TRIM_THRESHOLD, _LARGE)
        set_option(_ARENA_MAX, _HEAPS)


def keep_collections_short() -> None:
    """Called when everything has started: what is there now is for good, and is not searched for garbage any more.

    Otherwise each full search for unreachable objects would stop the event loop for a tenth of a second.
    """
    gc.freeze()


def _glibc(name: str) -> Any:
    """A function of the C library; None where there is none of that name."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except OSError:
        return None


__all__ = ["allow_open_files", "give_freed_memory_back", "keep_collections_short"]
