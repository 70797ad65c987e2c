"""Switches this process's terminal to key-by-key input (no echo, no line editing), and drops what was typed before."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from ahpkit.platform import Unsupported
from ahpkit.platform.signals import handling_signals


@contextmanager
def key_by_key(on_enter: Callable[[], object], on_leave: Callable[[], object]) -> Generator[None]:
    """Inside, keys arrive one by one. `on_enter` is called now and after every return from the background."""
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
        mode[3] |= termios.NOFLSH  # Otherwise Ctrl-C throws away what is written or typed and not delivered yet.
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
        on_enter()

    with handling_signals({"SIGCONT": enter}):  # After Ctrl-Z and fg.
        try:
            enter()
            yield
        finally:
            with suppress(OSError, termios.error):  # The terminal may be gone.
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
                on_leave()


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


__all__ = ["can_read_keys", "forget_typed", "has_typed", "key_by_key"]
