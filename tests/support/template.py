"""A process that has imported everything, and a copy of it for each command that a test starts.

A fresh `python -m ahpkit` spends most of its first second on imports. A copy has already done them. It is a separate
process in its own session, with its own files, environment and directory, and runs the whole command. A host that a
copy starts in the background is a copy too. Shells and the tests of the installation start commands as a person does;
so do the walks of the documentation where a command talks to a person at a terminal.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import io
import marshal
import os
import pkgutil
import re
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from support import copied

_TESTS = str(Path(__file__).parents[1])
_LARGEST = 1 << 20
"""The most bytes of a job, with its environment."""
_IMPORT_IN_A_BLOCK = re.compile(r"^ +(?:import|from(?= [\w.]+ import)) ([\w.]+)", re.MULTILINE)


class Job(NamedTuple):
    """What a copy is to run. Its standard files, and the pipe that tells its end, travel beside it."""

    module: str
    arguments: list[str]
    directory: str
    environment: dict[str, str]
    terminal: bool
    """Whether the command's standard input is its controlling terminal."""


class Started:
    """A running command: what `asyncio.subprocess.Process` offers, of a process that is another one's child."""

    stdin: asyncio.StreamWriter | None = None
    stdout: asyncio.StreamReader | None = None
    stderr: asyncio.StreamReader | None = None

    def __init__(self, pid: int, told: asyncio.StreamReader, ends: Sequence[asyncio.BaseTransport]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ends = ends
        self._watching = asyncio.create_task(self._watch(told), name=f"end of process {pid}")

    async def _watch(self, told: asyncio.StreamReader) -> int:
        self.returncode = int(await told.readline())
        for end in self._ends:
            end.close()
        return self.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._watching)

    def send_signal(self, signum: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # It has ended, and we have not read that yet.
                os.kill(self.pid, signum)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    async def communicate(self, input: bytes | None = None) -> tuple[bytes, bytes]:
        """Write all of the input, read all that comes, wait for the end."""
        output, errors, _ = await asyncio.gather(_all(self.stdout), _all(self.stderr), _give(self.stdin, input))
        await self.wait()
        return output, errors


async def _all(reader: asyncio.StreamReader | None) -> bytes:
    return await reader.read() if reader is not None else b""


async def _give(writer: asyncio.StreamWriter | None, input: bytes | None) -> None:
    if writer is None:
        return
    try:
        writer.write(input or b"")
        await writer.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass
    writer.close()


async def start(
    module: str,
    arguments: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    terminal: int | None = None,
    limit: int = 65536,
) -> Started:
    """Run `python -m MODULE` in a copy: with pipes, or with a terminal for all three files."""
    job = Job(module, list(arguments), str(directory), dict(environment), terminal is not None)
    if terminal is not None:
        return await _running(job, (terminal, terminal, terminal), ())
    (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = os.pipe(), os.pipe(), os.pipe()
    try:
        output, _ = await _reader(ours_out, limit)
        errors, _ = await _reader(ours_err, limit)
        input, in_end = await _writer(ours_in)
        started = await _running(job, (theirs_in, theirs_out, theirs_err), (in_end,))
    finally:
        for end in (theirs_in, theirs_out, theirs_err):
            os.close(end)
    started.stdin, started.stdout, started.stderr = input, output, errors
    return started


async def _running(job: Job, files: tuple[int, int, int], ends: Sequence[asyncio.BaseTransport]) -> Started:
    ours, theirs = os.pipe()
    told, told_end = await _reader(ours, 1024)
    try:
        socket.send_fds(_template(), [_packed(job)], [*files, theirs])
    finally:
        os.close(theirs)
    return Started(int(await told.readline()), told, (*ends, told_end))


def _packed(job: Job) -> bytes:
    return marshal.dumps((job.module, job.arguments, job.directory, job.environment, job.terminal))


async def _reader(end: int, limit: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader(limit=limit)
    protocol = asyncio.StreamReaderProtocol(reader)
    file = os.fdopen(end, "rb", 0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, file)
    return reader, transport


async def _writer(end: int) -> tuple[asyncio.StreamWriter, asyncio.BaseTransport]:
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(end, "wb", 0))
    return asyncio.StreamWriter(transport, protocol, None, loop), transport


def command(module: str) -> list[str]:
    """A command line that runs `python -m MODULE` in a copy, for whoever starts processes by themselves.

    It starts without our imports; `support.copied` hands its files over and stays until the copy has ended.
    """
    _template()
    return _asking(module)


def programs() -> Path:
    """A directory for the PATH of a shell, before all others: its `ahpkit` is a copy for most commands.

    A copy has a session of its own, so Ctrl-C at the shell's terminal would not reach it; and it does not know by which
    name it was called, which `up` repeats.
    """
    _template()
    return Path(_programs().name)


@cache
def _programs() -> tempfile.TemporaryDirectory[str]:
    """Small programs that ask for copies; they are removed with the template."""
    here = tempfile.TemporaryDirectory(prefix="ahpkit-programs-")
    python, without_us = shlex.quote(sys.executable), f'PATH="${{PATH#{here.name}:}}"'
    copy = f"exec {shlex.join(_asking('ahpkit'))}"
    for name, text in {
        "ahpkit": f'case "$1" in chat|serve|up) {without_us}; exec ahpkit "$@";; esac\n{copy} "$@"\n',
        "python": f'if [ "$1 $2" = "-m ahpkit" ]; then shift 2; {copy} "$@"; fi\nexec {python} "$@"\n',
    }.items():
        program = Path(here.name) / name
        program.write_text(f"#!/bin/sh\n{text}")
        program.chmod(0o755)
    return here


def _asking(module: str) -> list[str]:
    return [sys.executable, "-I", "-S", copied.__file__, _door(), module]


@cache
def _door() -> str:
    """The socket at which other processes ask this run's template for copies. Its name is in no directory."""
    return f"ahpkit-template-{os.getpid()}"


@cache
def _template() -> socket.socket:
    """The one template of this run. It ends when our end of the socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    known = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": _TESTS}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(f"\0{_door()}")
        door.listen()
        ends = [theirs.fileno(), door.fileno()]
        process = subprocess.Popen(
            [sys.executable, "-m", "support.template", f"{_programs().name}/python", *map(str, ends)],
            env=known, stdin=subprocess.DEVNULL, pass_fds=ends, start_new_session=True,
        )  # fmt: skip
    theirs.close()
    atexit.register(lambda: (ours.close(), process.wait(), _programs().cleanup()))
    return ours


def _serve(requests: socket.socket, door: socket.socket, python: str) -> Job | None:
    """Make copies until nobody asks for one. In a copy, it returns the job to do."""
    ready = selectors.DefaultSelector()
    ready.register(requests, selectors.EVENT_READ)
    ready.register(door, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if ready.get_map().get(key.fd) is not key:
                continue  # Its copy was found to have ended a moment ago.
            if key.data is None:
                text, files = _asked(door) if key.fileobj is door else _job(requests)
                if not text:
                    return None
                *standard, told = files
                if (pid := os.fork()) == 0:
                    ready.close()
                    requests.close()
                    door.close()
                    return _become(Job(*marshal.loads(text)), standard, python)
                for file in standard:
                    os.close(file)
                _tell(told, pid)
                ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, told))
                if key.fileobj is door:
                    ready.register(told, selectors.EVENT_READ, (pid, told))  # To notice when the reader is gone.
            elif key.fd == key.data[1]:
                ready.unregister(key.fd)
                os.kill(key.data[0], signal.SIGKILL)
            else:
                if key.data[1] in ready.get_map():
                    ready.unregister(key.data[1])
                _tell_the_end(*key.data)
                ready.unregister(key.fd)
                os.close(key.fd)


def _job(requests: socket.socket) -> tuple[bytes, list[int]]:
    text, files, *_ = socket.recv_fds(requests, _LARGEST, 4)
    return text, files


def _asked(door: socket.socket) -> tuple[bytes, list[int]]:
    asking, _ = door.accept()
    with asking:
        return _job(asking)


def _tell_the_end(pid: int, told: int) -> None:
    _, status = os.waitpid(pid, 0)
    _tell(told, os.waitstatus_to_exitcode(status))
    os.close(told)


def _tell(told: int, number: int) -> None:
    with suppress(BrokenPipeError):  # Whoever asked for the copy has ended before it.
        os.write(told, b"%d\n" % number)


def _become(job: Job, standard: Sequence[int], python: str) -> Job:
    """Turn this copy into the command: of the template it keeps only the imports."""
    if "serve" not in job.arguments:
        sys.executable = python  # A host that this command starts is a copy too.
    os.setsid()
    for number, file in enumerate(standard):
        os.dup2(file, number)
    os.closerange(3, 65536)
    if job.terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(job.directory)
    os.environ.clear()
    os.environ.update(job.environment)
    sys.path[:0] = filter(None, job.environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.stdin, sys.stdout, sys.stderr = _text(0, "r"), _text(1, "w"), _text(2, "w")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    return job


def _text(number: int, mode: str) -> io.TextIOWrapper:
    """A standard file as Python opens it at its start."""
    raw = io.FileIO(number, mode, closefd=False)
    raw.name = ("<stdin>", "<stdout>", "<stderr>")[number]
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    errors = "backslashreplace" if number == 2 else "surrogateescape"
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=number == 2 or raw.isatty())


def _import_everything() -> None:
    """The whole package but for the single tools for tests, and what its functions import only when they are called."""
    import ahpkit

    for found in pkgutil.walk_packages(ahpkit.__path__, "ahpkit."):
        if not found.name.startswith("ahpkit.testing.") and not found.name.endswith("__main__"):
            source = import_module(found.name).__file__ or ""
            for later in _IMPORT_IN_A_BLOCK.findall(Path(source).read_text()):
                with suppress(ImportError):  # It need not be there on this machine.
                    import_module(later)


def _check_everything() -> None:
    """Make the checks of all messages: a host and a client make each one when it is first needed, and keep it."""
    from ahpkit.dialects.generations import Generation
    from ahpkit.dialects.validation import check_action, check_params
    from ahpkit.protocol.errors import InvalidParams
    from ahpkit.protocol.registry import ACTIONS, COMMANDS, NOTIFICATIONS
    from ahpkit.protocol.validation import make_whole

    for method in (*COMMANDS, *NOTIFICATIONS):
        make_whole(method, {}, result={})
    for generation in Generation:
        for method in COMMANDS:
            with suppress(InvalidParams):
                check_params(method, {}, by=generation)
        for type in ACTIONS:
            with suppress(InvalidParams):
                check_action({"type": type}, by=generation)


def main() -> None:
    gc.disable()  # Nothing that was imported is ever garbage.
    python, *ends = sys.argv[1:]
    requests, door = (socket.socket(fileno=int(number)) for number in ends)
    _import_everything()
    _check_everything()
    gc.collect()
    gc.freeze()
    gc.enable()
    job = _serve(requests, door, python)
    if job is None:
        return
    sys.argv = [job.module, *job.arguments]
    codes: list[int] = []
    atexit.register(_leave, codes)
    try:
        runpy.run_module(job.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            codes.append(end.code or 0)
        raise
    codes.append(0)


def _leave(codes: Sequence[int]) -> None:
    """End before Python takes everything apart: that would first copy all memory that the template shares with us.

    The command's threads have ended by now, and what it registered for its end has run.
    """
    if codes:
        with suppress(OSError, ValueError):  # Python's own exit reports failed writes better.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(codes[0])


if __name__ == "__main__":
    main()

__all__ = ["Started", "command", "programs", "start"]
