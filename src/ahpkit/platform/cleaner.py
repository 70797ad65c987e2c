"""Ends the processes that we started when we are killed: a small process of ours waits for that.

    with ended_with_us(pid):        # it leads a session of its own
        ...

What reads its input to the end leaves by itself when we are gone; this is for what does not. The cleaner, which is this
file run as a program, reads from a pipe who is running. Nobody else holds the other end, so the pipe ends with us,
however we end. Whoever was not taken off the list by then is ended with its whole session, and with all that carries
our mark, where there is /proc. Elsewhere it is ended with its process group.

The cleaner starts with the first process. Without it, the next host to start ends what was left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Generator

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""Where `ahpkit` is imported from."""


class Cleaner:
    """The list of who is running, and the process that has a copy of it."""

    def __init__(self) -> None:
        self._leaders: set[int] = set()
        self._pipe: int | None = None
        self._owner = os.getpid()
        self.pid: int | None = None
        """Of the cleaner; None before the first process."""

    @contextlib.contextmanager
    def ended_with_us(self, leader: int) -> Generator[None]:
        """End this process and its session if we are killed while this is entered."""
        if self._owner != os.getpid():
            self._forget()
        self._leaders.add(leader)
        self._tell(f"+{leader}\n")
        try:
            yield
        finally:
            self._leaders.discard(leader)
            self._tell(f"-{leader}\n")

    def _forget(self) -> None:
        """We are a copy of the process that has this list and this cleaner."""
        if self._pipe is not None:
            os.close(self._pipe)
        self._leaders, self._pipe, self._owner, self.pid = set(), None, os.getpid(), None

    def _tell(self, line: str) -> None:
        try:
            if self._pipe is not None:
                os.write(self._pipe, line.encode())
                return
        except BlockingIOError:  # It has been stopped. The next host cleans up.
            return
        except BrokenPipeError:  # It was killed: another one takes its place.
            self._collect()
        if self._leaders:
            self._start()

    def _collect(self) -> None:
        """Let the system forget a cleaner that has ended."""
        assert self._pipe is not None
        assert self.pid is not None
        os.close(self._pipe)
        self._pipe = None
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)

    def _start(self) -> None:
        """Start a cleaner, and tell it who is running. Where that is not possible, there is none."""
        from ahpkit.platform.processes import MARK, own_name

        if not hasattr(os, "posix_spawn"):
            return
        reading, writing = os.pipe()
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", __file__, own_name()],
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0), *quiet],
                setsid=True,
            )
        except (OSError, NotImplementedError):
            os.close(writing)
        else:
            os.set_blocking(writing, False)
            self._pipe = writing
            os.write(writing, "".join(f"+{leader}\n" for leader in self._leaders).encode())
        finally:
            os.close(reading)


_ours = Cleaner()
ended_with_us = _ours.ended_with_us


def _wait_and_clean(owner: str) -> None:
    """What the cleaner does."""
    os.chdir("/")
    left: set[int] = set()
    for line in sys.stdin:
        leader = int(line[1:])
        (left.add if line[0] == "+" else left.discard)(leader)
    if left:
        sys.path.insert(0, _PACKAGES)  # It runs without site packages, so it is there at once and is small.
        _end(left, owner)


def _end(leaders: set[int], owner: str) -> None:
    """End sessions politely first, then all that is left and all that carries the owner's marks."""
    from ahpkit.platform.processes import GRACE, KILL_ROUNDS, POLL, end_marked_by, signal_session

    left = {leader for leader in leaders if signal_session(leader, signal.SIGTERM)}
    for _ in range(round(GRACE / POLL)):
        left = {leader for leader in left if signal_session(leader, 0)}
        if not left:
            break
        time.sleep(POLL)
    for _ in range(KILL_ROUNDS):
        left = {leader for leader in left if signal_session(leader, signal.SIGKILL)}
        if not end_marked_by(owner) and not left:
            break
        time.sleep(POLL)


__all__ = ["Cleaner", "ended_with_us"]

if __name__ == "__main__":
    _wait_and_clean(sys.argv[1])
