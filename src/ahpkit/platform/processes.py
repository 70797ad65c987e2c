"""Finds all processes that belong to one that we started, and ends them.

They are found by mark, by descent, by pipes and by the Unix session, where there is /proc; elsewhere by the process
group. A mark names the process it was made for and the process that made it. So when a host was killed, the next one to
start can end what it left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path

MARK = "AHPKIT_PROCESS"
"""Variable that names the process its descendants belong to."""

GRACE = 2.0
"""Seconds between hanging up on a session and killing it: enough to save what an editor has open."""

_log = logging.getLogger(__name__)

_POLL = 0.02
"""Seconds between two looks at a session that is ending."""

_KILL_ROUNDS = 50
"""Looks for survivors of SIGKILL: what forks faster than it is killed, or hangs in the kernel, is given up."""

PROC = Path("/proc")
"""Where Linux describes processes. Other systems do not have it."""

_CHUNK = 64 * 1024

_START_TIME = 19
"""Place of the start time in `stat` after the name, see proc(5): with it a number names one process for good."""


def new_mark() -> str:
    """A value of `MARK`: who starts the process, and a name for it."""
    return f"{_owner(os.getpid())}:{uuid.uuid4().hex}"


def kill(pids: Iterable[int], signum: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def family(leaders: Iterable[int], mark: str, *, proc: Path = PROC) -> set[int]:
    """Processes that carry the mark, and all that descend from one or from a leader. Only where /proc tells; elsewhere
    only the group can be used. Zombies do not count."""
    entry = f"{MARK}={mark}".encode()
    children: dict[int, list[int]] = {}
    found: set[int] = set()
    for directory in _processes(proc):
        with contextlib.suppress(OSError):
            pid = int(directory.rpartition("/")[2])
            if entry in _environ(directory):
                found.add(pid)
            state, parent = _stat(directory)[:2]
            if state != b"Z":
                children.setdefault(int(parent), []).append(pid)
    below = [*found, *leaders]
    while below:
        below = [child for pid in below for child in children.get(pid, ()) if child not in found]
        found.update(below)
    return found


def holders(pipes: Collection[str]) -> list[int]:
    """Other processes that hold one of these pipes."""
    found: list[int] = []
    for directory in _processes():
        with contextlib.suppress(OSError):
            links = {os.readlink(f"{directory}/fd/{number}") for number in os.listdir(f"{directory}/fd")}
            pid = int(directory.rpartition("/")[2])
            if pid != os.getpid() and not links.isdisjoint(pipes):
                found.append(pid)
    return found


def is_alive(pid: int) -> bool:
    """Whether there is a process with that number that has not ended; True where that cannot be found out."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # Somebody else's process: alive.
    return not _waits_for_its_parent(pid)


def _waits_for_its_parent(pid: int) -> bool:
    """Whether a process is a zombie: it has ended, but its parent has not collected it, as happens in containers."""
    try:
        return _stat(f"{PROC}/{pid}")[0] == b"Z"
    except (OSError, IndexError):
        return False


def kill_group(leader: int, signum: signal.Signals) -> None:
    """Send a signal to every process of the group; nothing when there is none."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signum)


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


def signal_session(leader: int, signum: int, *, proc: Path = PROC) -> bool:
    """Send a signal (0: none) to every living process of the session; False when there is none."""
    if not proc.is_dir():  # Only /proc tells who belongs to it; elsewhere the leader's group is used.
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
    pids = (int(name) for name in os.listdir(PROC) if name.isdigit())
    return [pid for pid in pids if _session_of(pid) == leader and not _is_zombie(pid)]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def is_orphan_starting(*, proc: Path = PROC) -> bool:
    """Whether a program whose parent is gone is being replaced by another right now. The new one has no environment and
    no arguments yet, so nobody can tell whose it is.

    One whose parent lives is found by descent. Orphans are adopted by a process above us, or by the first of all.
    """
    above = _ancestors(proc)
    for directory in _processes(proc):
        with contextlib.suppress(OSError):  # It is gone, not ours, or a thread of the kernel, which has no `exe`.
            if _read(f"{directory}/environ") or _read(f"{directory}/cmdline"):
                continue
            os.readlink(f"{directory}/exe")
            if int(_stat(directory)[1]) in above:
                return True
    return False


def _ancestors(proc: Path) -> set[int]:
    """The processes above this one, and the first of all."""
    found, pid = {1}, os.getpid()
    with contextlib.suppress(OSError, IndexError):
        while (pid := int(_stat(f"{proc}/{pid}")[1])) > 1:
            found.add(pid)
    return found


def end_orphans() -> int:
    """End what was started by a process of ours that is gone, and return how many that were."""
    found: list[int] = []
    for directory in _processes():
        with contextlib.suppress(OSError):
            if _is_orphan(_environ(directory)):
                found.append(int(directory.rpartition("/")[2]))
    kill(found, signal.SIGKILL)
    return len(found)


def _is_zombie(pid: int) -> bool:
    try:
        return _stat(f"{PROC}/{pid}")[0] in (b"Z", b"X")
    except OSError:
        return True


def _is_orphan(environ: list[bytes]) -> bool:
    """Whether the process that made its mark is gone. A process that cannot be seen from here (in a container, for
    example) counts as alive, and a mark that we carry ourselves is ignored."""
    variable = f"{MARK}=".encode()
    marks = [entry.removeprefix(variable).decode("utf-8", "replace") for entry in environ if entry.startswith(variable)]
    mark = marks[0] if marks else ""
    owner = mark.partition(":")[0]
    space, _, rest = owner.partition(".")
    pid = rest.partition(".")[0]
    alive = space != _space() or not pid.isdecimal() or owner == _owner(int(pid))
    return not alive and mark != os.environ.get(MARK)


def _owner(pid: int) -> str:
    """A process by the space its number is from, its number and its start."""
    started = ""
    with contextlib.suppress(OSError, IndexError):
        started = _stat(f"{PROC}/{pid}")[_START_TIME].decode()
    return f"{_space()}.{pid}.{started}"


def _space() -> str:
    with contextlib.suppress(OSError):
        return (PROC / "self/ns/pid").readlink().name.removeprefix("pid:").strip("[]")
    return ""


def _environ(directory: str) -> list[bytes]:
    return _read(f"{directory}/environ").split(b"\0")


def _stat(directory: str) -> list[bytes]:
    """proc(5): state, parent and so on. They follow the name, which is in parentheses and may hold anything."""
    return _read(f"{directory}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    """A file of /proc. All processes are looked at whenever one ends, so this takes no detour."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(number, _CHUNK)]
        while len(parts[-1]) > 0:
            parts.append(os.read(number, _CHUNK))
        return b"".join(parts)
    finally:
        os.close(number)


def _processes(proc: Path = PROC) -> list[str]:
    """The directories of all processes."""
    try:
        return [f"{proc}/{name}" for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []


__all__ = [
    "GRACE",
    "MARK",
    "PROC",
    "end_orphans",
    "end_session",
    "family",
    "holders",
    "is_alive",
    "is_orphan_starting",
    "kill",
    "kill_group",
    "new_mark",
    "signal_session",
]
