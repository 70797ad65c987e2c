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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

MARK = "AHPKIT_PROCESS"
"""Variable that names the process its descendants belong to."""

GRACE = 2.0
"""Seconds between the hangup of a session and its kill: enough for an editor to save its files."""

_log = logging.getLogger(__name__)

POLL = 0.02
"""Seconds between two looks at a session that is ending."""

KILL_ROUNDS = 50
"""How many times survivors of SIGKILL are searched. Processes that fork faster than they are killed, or hang in the
kernel, are given up."""

PROC = Path("/proc")
"""Where Linux describes processes. Other systems do not have it."""

_CHUNK = 64 * 1024

_START_TIME = 19
"""Place of the start time in `stat` after the name, see proc(5): with it a number names one process for good."""


def new_mark() -> str:
    """A value of `MARK`: who starts the process, and a name for it."""
    return f"{own_name()}:{uuid.uuid4().hex}"


def own_name() -> str:
    """This process in the marks that it makes: no other process of this machine ever has the same."""
    return _owner(os.getpid())


def kill(pids: Iterable[int], signum: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The processes of this machine, as one look through /proc found them. Elsewhere there are none, and only groups
    can be used."""

    marked: Mapping[str, Sequence[int]]
    """The processes that carry a mark."""
    children: Mapping[int, Sequence[int]]
    """The children of each process, without zombies."""
    is_orphan_starting: bool
    """Whether a program whose parent is gone is being replaced by another right now. The new one has no environment and
    no arguments yet, so nobody can tell whose it is. A process whose parent lives is found by descent."""

    def family(self, leaders: Iterable[int], mark: str) -> set[int]:
        """The processes that carry the mark, and all descendants of these and of the leaders."""
        found = set(self.marked.get(mark, ()))
        below = [*found, *leaders]
        while below:
            below = [child for pid in below for child in self.children.get(pid, ()) if child not in found]
            found.update(below)
        return found


def look(proc: Path = PROC) -> Snapshot:
    """Look through all processes."""
    marked: dict[str, list[int]] = {}
    children: dict[int, list[int]] = {}
    unknown: list[tuple[str, int]] = []
    for directory in _processes(proc):
        with contextlib.suppress(OSError):
            pid, environ = int(directory.rpartition("/")[2]), _read(f"{directory}/environ")
            if (mark := _mark_in(environ)) is not None:
                marked.setdefault(mark, []).append(pid)
            state, parent = _stat(directory)[:2]
            if state != b"Z":
                children.setdefault(int(parent), []).append(pid)
                if not environ:
                    unknown.append((directory, int(parent)))
    return Snapshot(marked, children, _is_orphan_starting(unknown, proc))


def _is_orphan_starting(unknown: Sequence[tuple[str, int]], proc: Path) -> bool:
    """Whether one of these processes without an environment is an orphan that begins. Orphans are adopted by a process
    above us, or by the first of all."""
    above = _ancestors(proc) if unknown else set[int]()
    for directory, parent in unknown:
        with contextlib.suppress(OSError):  # The process is gone, not ours, or a thread of the kernel without `exe`.
            if parent in above and not _read(f"{directory}/cmdline") and os.readlink(f"{directory}/exe"):
                return True
    return False


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, Snapshot]] = WeakKeyDictionary()
"""The last look of each event loop."""


async def look_together(proc: Path = PROC) -> Snapshot:
    """A snapshot made after this call. Callers at the same time share one, because many processes may end at once."""
    last = _looks.setdefault(asyncio.get_running_loop(), {})
    before = last.get(proc)
    await asyncio.sleep(0)
    if last.get(proc) is before:
        last[proc] = look(proc)
    return last[proc]


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
    """Whether a process with this number exists and has not ended; True if that cannot be found out."""
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
    """Send a signal to every process of the group, if it has any."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signum)


async def end_session(leader: int, *, grace: float = GRACE) -> None:
    """Send a hangup to every process of the session, as a closing terminal does, and kill those that are left after
    `grace` seconds."""
    if not signal_session(leader, signal.SIGHUP):
        return
    signal_session(leader, signal.SIGCONT)  # A stopped job handles no other signal.
    for _ in range(round(grace / POLL)):
        await asyncio.sleep(POLL)
        if not signal_session(leader, 0):
            return
    for _ in range(KILL_ROUNDS):
        if not signal_session(leader, signal.SIGKILL):
            return
        await asyncio.sleep(POLL)
    _log.warning("processes of session %d cannot be ended", leader)


def signal_session(leader: int, signum: int, *, proc: Path = PROC) -> bool:
    """Send a signal (0: none) to every living process of the session. Returns False if there is no process."""
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


def _ancestors(proc: Path) -> set[int]:
    """The ancestors of this process, and the first process of the system."""
    found, pid = {1}, os.getpid()
    with contextlib.suppress(OSError, IndexError):
        while (pid := int(_stat(f"{proc}/{pid}")[1])) > 1:
            found.add(pid)
    return found


def end_orphans() -> int:
    """End processes whose host is gone, and return how many they were."""
    return _end_marked(_is_orphan)


def end_marked_by(name: str) -> int:
    """End the processes that carry a mark of one process, given by its `own_name`. Returns how many there were."""
    return _end_marked(lambda mark: mark.startswith(f"{name}:"))


def _end_marked(meant: Callable[[str], bool]) -> int:
    found: list[int] = []
    for directory in _processes():
        with contextlib.suppress(OSError):
            if meant(_mark_in(_read(f"{directory}/environ")) or ""):
                found.append(int(directory.rpartition("/")[2]))
    kill(found, signal.SIGKILL)
    return len(found)


def _is_zombie(pid: int) -> bool:
    try:
        return _stat(f"{PROC}/{pid}")[0] in (b"Z", b"X")
    except OSError:
        return True


def _is_orphan(mark: str) -> bool:
    """Whether the process that made this mark is gone. A process that cannot be seen from here (in a container, for
    example) counts as alive, and a mark that we carry ourselves is ignored."""
    owner = mark.partition(":")[0]
    space, _, rest = owner.partition(".")
    pid = rest.partition(".")[0]
    alive = space != _space() or not pid.isdecimal() or (owner == _owner(int(pid)) and not _is_zombie(int(pid)))
    return not alive and mark != os.environ.get(MARK)


def _owner(pid: int) -> str:
    """The process in a mark: the namespace of its number, its number, and its start."""
    return f"{_space()}.{pid}.{start_of(pid)}"


def start_of(pid: int) -> str:
    """When a process began, which distinguishes it from a later one with the same number. Empty if there is no such
    process, or no /proc."""
    with contextlib.suppress(OSError, IndexError):
        return _stat(f"{PROC}/{pid}")[_START_TIME].decode()
    return ""


def _space() -> str:
    with contextlib.suppress(OSError):
        return (PROC / "self/ns/pid").readlink().name.removeprefix("pid:").strip("[]")
    return ""


def _mark_in(environ: bytes) -> str | None:
    """The mark in an environment; None: there is none."""
    variable = f"{MARK}=".encode()
    if variable not in environ:
        return None
    marks = [entry.removeprefix(variable) for entry in environ.split(b"\0") if entry.startswith(variable)]
    return marks[0].decode("utf-8", "replace") if marks else None


def _stat(directory: str) -> list[bytes]:
    """proc(5): state, parent and so on. They follow the name, which is in parentheses and may hold anything."""
    return _read(f"{directory}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    """Read a file of /proc. This is called for all processes whenever one ends, so it is written for speed."""
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
    "KILL_ROUNDS",
    "MARK",
    "POLL",
    "PROC",
    "Snapshot",
    "end_marked_by",
    "end_orphans",
    "end_session",
    "holders",
    "is_alive",
    "kill",
    "kill_group",
    "look",
    "look_together",
    "new_mark",
    "own_name",
    "signal_session",
    "start_of",
]
