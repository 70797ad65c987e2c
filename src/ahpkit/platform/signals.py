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
    """Inside the `with`, a signal (such as `"SIGINT"`) calls its handler on the running loop. Signals that this system
    lacks are ignored.

    `at_once` is called for each signal as well, in the main thread, even if something blocks the loop.
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
    """Set one handler. Returns the function that removes it."""
    try:
        loop.add_signal_handler(signum, handler)
    except NotImplementedError:  # This loop cannot handle signals. Python's own handler wakes it.

        def wake(number: int, frame: object) -> None:
            at_once()
            loop.call_soon_threadsafe(handler)

        before = signal.signal(signum, wake)
        return lambda: signal.signal(signum, before)
    signal.signal(signum, lambda number, frame: at_once())  # The loop still gets the signal, through a pipe.
    return lambda: loop.remove_signal_handler(signum)


def keep_ignored_signals_from_children() -> None:
    """Ignore the signals that `nohup` or a shell script made us ignore, but by a handler, because children do not
    inherit a handler.

    A child that inherits "ignore SIGHUP" does not end when its terminal is closed.
    """
    for name in ("SIGHUP", "SIGINT", "SIGQUIT"):
        signum = getattr(signal, name, None)
        if signum is not None and signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, lambda number, frame: None)


__all__ = ["handling_signals", "keep_ignored_signals_from_children"]
