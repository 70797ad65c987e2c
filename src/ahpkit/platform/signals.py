"""Handles signals on the event loop, and keeps ignoring those that a parent process made us ignore."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager


@contextmanager
def handling_signals(
    handlers: Mapping[str, Callable[[], object]], *, at_once: Callable[[], object] = lambda: None
) -> Generator[None]:
    """Inside, a signal (`"SIGINT"`) calls its handler on the running loop. A signal this system lacks never comes.

    `at_once` is called for each of them as well, in the main thread, also when something holds the loop.
    """
    loop = asyncio.get_running_loop()
    known = {signal.Signals[name]: handler for name, handler in handlers.items() if hasattr(signal, name)}
    restore: list[Callable[[], object]] = []
    try:
        for signum, handler in known.items():
            restore.append(_handle(loop, signum, handler, at_once))
        yield
    finally:
        for back in restore:
            back()


def _handle(
    loop: asyncio.AbstractEventLoop,
    signum: signal.Signals,
    handler: Callable[[], object],
    at_once: Callable[[], object],
) -> Callable[[], object]:
    """Set one handler; returns what takes it away."""
    try:
        loop.add_signal_handler(signum, handler)
    except NotImplementedError:  # A loop that cannot: Python's own handler wakes it.

        def wake(number: int, frame: object) -> None:
            at_once()
            loop.call_soon_threadsafe(handler)

        before = signal.signal(signum, wake)
        return lambda: signal.signal(signum, before)
    signal.signal(signum, lambda number, frame: at_once())  # The loop still gets the signal, through a pipe.
    return lambda: loop.remove_signal_handler(signum)


def keep_ignored_signals_from_children() -> None:
    """Ignore what `nohup` or a shell script made us ignore, but by a handler: children do not inherit a handler.

    A child that inherits "ignore SIGHUP" does not end when its terminal is closed.
    """
    for name in ("SIGHUP", "SIGINT", "SIGQUIT"):
        signum = getattr(signal, name, None)
        if signum is not None and signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, lambda number, frame: None)


__all__ = ["handling_signals", "keep_ignored_signals_from_children"]
