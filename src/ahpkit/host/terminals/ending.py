"""Ends all processes of one terminal: those of the Unix session its command leads. Knows no pty and no AHP.

An interactive shell gives each job a group of its own, so the group of the command is not enough. What moved into a
session of its own (`setsid`, a daemon, tmux) left on purpose and stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from pathlib import Path

_log = logging.getLogger(__name__)

GRACE = 2.0
"""Seconds between hanging up and killing: enough to save what an editor has open."""

_POLL = 0.02
"""Seconds between two looks."""

_KILL_ROUNDS = 50
"""Looks for survivors of SIGKILL: what forks faster than it is killed, or hangs in the kernel, is given up."""

_PROC = Path("/proc")


async def end_session(leader: int, *, grace: float = GRACE) -> None:
    """Hang up on every process of the session, as a terminal that closes does, and kill what is left after `grace`."""
    if not signal_session(leader, signal.SIGHUP):
        return
    signal_session(leader, signal.SIGCONT)  # A stopped job hears nothing else.
    for _ in range(round(grace / _POLL)):
        await asyncio.sleep(_POLL)
        if not signal_session(leader, 0):
            return
    for _ in range(_KILL_ROUNDS):
        if not signal_session(leader, signal.SIGKILL):
            return
        await asyncio.sleep(_POLL)
    _log.warning("processes of session %d cannot be ended", leader)


def signal_session(leader: int, signum: int) -> bool:
    """Send a signal (0: none) to every living process of the session; False when there is none."""
    if not _PROC.is_dir():  # Only /proc tells who belongs to it; elsewhere the leader's group has to do.
        with contextlib.suppress(OSError):
            os.killpg(leader, signum)
            return True
        return False
    found = _living(leader)
    for pid in found:
        with contextlib.suppress(OSError):
            os.kill(pid, signum)
    return bool(found)


def _living(leader: int) -> list[int]:
    pids = (int(name) for name in os.listdir(_PROC) if name.isdigit())
    return [pid for pid in pids if _session_of(pid) == leader and not _is_zombie(pid)]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _is_zombie(pid: int) -> bool:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return True
    # proc(5): the state follows the name, which is in parentheses and may hold anything.
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


__all__ = ["GRACE", "end_session", "signal_session"]
