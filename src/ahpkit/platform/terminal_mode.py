"""Switches the mode of this process's terminal: key-by-key input, no echo. Also drops what was typed before."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from ahpkit.platform import Unsupported
from ahpkit.platform.signals import handling_signals


@contextmanager
def key_by_key(
    on_enter: Callable[[], object], on_leave: Callable[[], object], on_return: Callable[[], object]
) -> Generator[None]:
    """Inside the `with`, keys arrive one by one. `on_enter` is called now and after every return from the background.
    `on_return` is called first then, before anything else of this process runs.
    """
    descriptor = sys.stdin.fileno()
    try:
        import termios
        import tty
    except ImportError:
        raise Unsupported("a terminal that is read key by key") from None
    before = termios.tcgetattr(descriptor)

    def enter() -> None:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        mode = termios.tcgetattr(descriptor)
        mode[3] |= termios.NOFLSH  # Otherwise Ctrl-C throws away output and keys that are not delivered yet.
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
        on_enter()

    with handling_signals({"SIGCONT": enter}, at_once=on_return):  # After Ctrl-Z and fg.
        try:
            enter()
            yield
        finally:
            with suppress(OSError, termios.error):  # The terminal may be gone.
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
                on_leave()


@contextmanager
def keys_unseen() -> Generator[None]:
    """Inside the `with`, typed keys are not shown on the screen. They are kept for the next reader."""
    if not (can_read_keys() and _has_the_terminal()):
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    termios.tcsetattr(descriptor, termios.TCSANOW, [*before[:3], before[3] & ~termios.ECHO, *before[4:]])
    try:
        yield
    finally:
        with suppress(OSError, termios.error):  # The terminal may be gone.
            if _has_the_terminal():
                termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _has_the_terminal() -> bool:
    """Whether we may set the terminal of standard input. In the background the system would stop us, and a terminal of
    another session has no foreground for us."""
    try:
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def can_read_keys() -> bool:
    """Whether this system has what `key_by_key` needs."""
    return importlib.util.find_spec("termios") is not None


def has_typed() -> bool:
    """Whether something was typed that nobody has read yet."""
    import select

    return bool(select.select([sys.stdin.fileno()], [], [], 0)[0])


def forget_typed() -> None:
    """Drop what was typed and not read yet. Without a terminal nothing happens."""
    with suppress(ImportError, OSError, ValueError):
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


__all__ = ["can_read_keys", "forget_typed", "has_typed", "key_by_key", "keys_unseen"]
