"""Sets limits of this process and its children: open files, memory, processes, lines of a log.

Memory of children is limited by `RLIMIT_DATA`: what a process can write to. `RLIMIT_AS` would count addresses that are
only reserved, and Node.js and Java reserve far more than they use.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Numbers of `mallopt` (malloc.h)."""

_LARGE = 256 * 1024
"""A block of at least this many bytes goes back to the system as soon as it is freed."""

_LINE = 4_000
"""Characters of one line of a log. Many lines quote what somebody else sent, which may be long."""

_LINES = 20
"""Lines of a log that one place in the code may write in a minute."""

_MINUTE = 60.0

_WORTH_A_SEARCH = 16 * 1024 * 1024
"""If at least this many bytes were freed since the last search for free memory, another search is worth it."""

_LOOK = 2.0
"""Seconds between two checks whether the process rests, or much memory was freed."""

_NEXT_TO_NOTHING = 0.05
"""Seconds of CPU in that time that count as rest: as much as timers and pings take."""

_WORTH_A_COLLECTION, _LATEST_COLLECTION = 10, 50
"""Portions of about 7,000 new objects after which all objects are searched: when the process rests, and in any case.
Python's own number is the first."""

_HEAPS = 2
"""Heaps of the C library, for all threads together."""


def allow_open_files(wanted: int) -> None:
    """Raise the limit of open files, as far as the system lets us. Each connection, watch and database needs some.

    Does nothing where there is no such limit.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class LogLimit(logging.Filter):
    """Keeps what others send from filling a log: long lines are cut, and of very many alike the first ones are shown.

    All lines of a message except the first are indented, so that a message cannot imitate a log record. `printable`
    makes the characters of a line visible that could control a terminal.
    """

    def __init__(self, printable: Callable[[str], str], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._printable = printable
        self._monotonic = monotonic
        self._began = monotonic()
        self._counts: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown; shortens it."""
        now = self._monotonic()
        if now - self._began >= _MINUTE:
            self._began, self._counts = now, {}
        place = (record.pathname, record.lineno)
        count = self._counts[place] = self._counts.get(place, 0) + 1
        if count > _LINES:
            return False
        text = record.getMessage()
        shown = text if len(text) <= _LINE else f"{text[:_LINE]}… ({len(text)} characters)"
        last = "; more lines like this are left out for a minute" if count == _LINES else ""
        record.msg, record.args = "\n    ".join(map(self._printable, shown.splitlines())) + last, ()
        return True


class ChildLimits(NamedTuple):
    """Limits for each process that the host starts, and for its descendants. None: the host sets no limit."""

    memory: int | None = None
    """Bytes."""
    processes: int | None = None
    """Processes and threads of this user together, as the system counts them; it does not count for root."""


_for_children = ChildLimits()


def limit_children(limits: ChildLimits) -> None:
    """Set the limits that `limit_child` uses from now on. They are for the whole process, like its limit of open
    files."""
    global _for_children
    _for_children = limits


def limit_child(pid: int) -> None:
    """Limit a child that has just been started. Does nothing where the system has no such limits."""
    with suppress(ImportError, AttributeError):
        import resource

        wanted = {resource.RLIMIT_DATA: _for_children.memory, resource.RLIMIT_NPROC: _for_children.processes}
        for kind, most in wanted.items():
            if most is not None:
                with suppress(OSError, ValueError):
                    _, hard = resource.prlimit(pid, kind)
                    lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
                    resource.prlimit(pid, kind, (lower, lower))


def memory_of_this_machine() -> int | None:
    """Bytes of memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


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


class FreedMemory:
    """Gives free memory between used blocks back to the system, inside its `with`. Does nothing without glibc.

    `give_freed_memory_back` is about large blocks. Many small ones leave holes that only a search finds. Its time grows
    with the number of holes. So it runs in a thread, and only if much was freed since the last search: by a client that
    left, or a session that was disposed of or rests.
    """

    def __init__(
        self,
        *,
        pause: float = _LOOK,
        free: Callable[[], int] | None = None,
        search: Callable[[int], object] | None = None,
    ) -> None:
        """`free` returns the number of free bytes between used blocks."""
        self._pause = pause
        self._free = free or _free_bytes()
        self._search = search or _glibc("malloc_trim")
        self._timer: asyncio.TimerHandle | None = None
        self._known = 0
        """Bytes that were free after the last search, as far as they still are: their pages went back."""

    def __enter__(self) -> Self:
        if self._free is not None and self._search is not None:
            self._look_later()
        return self

    def __exit__(self, *exc: object) -> None:
        """The process ends: there is nothing to give back, and no thread any more that could."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause, self._look_again)

    def _look_again(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self.look)
        self._look_later()

    def look(self) -> None:
        """Search, if enough memory was freed."""
        if self._free is None or self._search is None:
            return
        if (free := self._free()) - self._known > _WORTH_A_SEARCH:
            self._search(0)
            self._known = self._free()
        else:
            self._known = min(self._known, free)


class Collections:
    """Searches all objects for garbage (cycles that nobody uses) while the process rests, inside its `with`.

    Enter it when everything has started: objects that exist then are kept and not searched. A search holds up the
    event loop, with hundreds of sessions awake for a tenth of a second. Left alone, Python begins it in the middle of
    work. Here it does so only when the process has not rested for long.
    """

    def __init__(
        self,
        *,
        cpu: Callable[[], float] = time.process_time,
        waiting: Callable[[], int] = lambda: gc.get_count()[2],
        collect: Callable[[], object] = gc.collect,
    ) -> None:
        """`waiting` returns the number of portions of objects that were made since the last full search."""
        self._cpu = cpu
        self._waiting = waiting
        self._collect = collect
        self._spent = cpu()

    def __enter__(self) -> Self:
        gc.freeze()
        gc.set_threshold(*gc.get_threshold()[:2], _LATEST_COLLECTION)
        gc.enable()
        self._look_later()
        return self

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look_again)

    def _look_again(self) -> None:
        self.look()
        self._look_later()

    def look(self) -> None:
        """Search if the process has done next to nothing since the last look, and there may be something to find."""
        rested = self._cpu() - self._spent < _NEXT_TO_NOTHING
        if rested and self._waiting() >= _WORTH_A_COLLECTION:
            self._collect()
        self._spent = self._cpu()


def collect_nothing_yet() -> None:
    """Called before anything has started. The objects that a start makes stay, so a search for garbage among them would
    find nothing.

    This way a large log takes a fifth less time. `Collections` ends it.
    """
    gc.disable()


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` (malloc.h)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks")
    ] + [("keepcost", ctypes.c_size_t)]


def _free_bytes() -> Callable[[], int] | None:
    """How many bytes the C library keeps free between used blocks; None where it does not say."""
    info = _glibc("mallinfo2")
    if info is None:
        return None
    info.restype = _MallocInfo
    return lambda: info().fordblks


def _glibc(name: str) -> Any:
    """A function of the C library; None if it has no function of that name."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except OSError:
        return None


__all__ = [
    "ChildLimits",
    "Collections",
    "FreedMemory",
    "LogLimit",
    "allow_open_files",
    "collect_nothing_yet",
    "give_freed_memory_back",
    "limit_child",
    "limit_children",
    "memory_of_this_machine",
]
