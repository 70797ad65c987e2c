"""Ends the processes of a host that is killed: a small process waits for the end of the host.

    with ended_with_us(pid):        # the process leads its own session
        ...

Programs that read their input to the end leave by themselves when the host is gone; the cleaner is for the others. The
cleaner is this file, run as a program. From a pipe it reads the list of the processes that run. Only the host holds the
other end, so the pipe ends with the host, however the host ends. Then the cleaner ends every process on the list with
its whole session and with all processes that carry the host's mark, where there is /proc; elsewhere, with its process
group. A number that means another process by then is left alone: the list says when each process began.

The cleaner starts with the first process. Without a cleaner, the next host to start ends the processes that are left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Generator

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder from which `ahpkit` is imported."""


class Cleaner:
    """The list of the running processes, and the cleaner process, which has a copy of it."""

    def __init__(self) -> None:
        self._leaders: dict[int, str] = {}
        """The numbers of the processes, and when each one began."""
        self._pipe: int | None = None
        self._owner = os.getpid()
        self.pid: int | None = None
        """The process id of the cleaner; None before the first process."""

    @contextlib.contextmanager
    def ended_with_us(self, leader: int) -> Generator[None]:
        """End this process and its session if we are killed while this is entered."""
        from ahpkit.platform.processes import start_of

        if self._owner != os.getpid():
            self._forget()
        self._leaders[leader] = start_of(leader)
        self._tell(_line("+", leader, self._leaders[leader]))
        try:
            yield
        finally:
            started = self._leaders.pop(leader, "")
            self._tell(_line("-", leader, started))

    def _forget(self) -> None:
        """Forget the list and the cleaner after a fork, because they belong to the parent process."""
        if self._pipe is not None:
            os.close(self._pipe)
        self._leaders, self._pipe, self._owner, self.pid = {}, None, os.getpid(), None

    def _tell(self, line: str) -> None:
        try:
            if self._pipe is not None:
                os.write(self._pipe, line.encode())
                return
        except BlockingIOError:  # The cleaner was stopped, and would act on an old list later: replace it.
            assert self.pid is not None
            os.kill(self.pid, signal.SIGKILL)  # Before its list ends.
            self._collect()
        except BrokenPipeError:  # It was killed.
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
            os.waitpid(self.pid, 0)

    def _start(self) -> None:
        """Start a cleaner and send it the list of processes. On systems without `posix_spawn` there is no cleaner."""
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
            self._pipe = writing
            with contextlib.suppress(BrokenPipeError):  # The next line finds out.
                os.write(writing, "".join(_line("+", *leader) for leader in self._leaders.items()).encode())
            os.set_blocking(writing, False)
        finally:
            os.close(reading)


def _line(change: str, leader: int, started: str) -> str:
    return f"{change} {leader} {started}\n"


_ours = Cleaner()
ended_with_us = _ours.ended_with_us


def _wait_and_clean(owner: str) -> None:
    """The main program of the cleaner."""
    os.chdir("/")
    left: dict[int, str] = {}
    for line in sys.stdin:
        change, leader, started = line.rstrip("\n").split(" ")
        if change == "+":
            left[int(leader)] = started
        else:
            left.pop(int(leader), None)
    if left:
        sys.path.insert(0, _PACKAGES)  # It runs without site packages, so it is there at once and is small.
        _end(left, owner)


def _end(leaders: dict[int, str], owner: str) -> None:
    """End sessions politely first, then kill all processes that are left and all that carry the owner's marks."""
    from ahpkit.platform.processes import GRACE, KILL_ROUNDS, POLL, end_marked_by, signal_session, start_of

    ours = {leader for leader, started in leaders.items() if start_of(leader) in ("", started)}
    left = {leader for leader in ours if signal_session(leader, signal.SIGTERM)}
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
