"""A system that is not POSIX, as far as that can be played here: modules, functions and signals that it lacks."""

from __future__ import annotations

import subprocess
import sys

from support.waiting import BOUND

LACKING = """
import sys

for name in ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource"):
    sys.modules[name] = None
"""

LACKING_MORE = """
import asyncio, os, signal

for owner, names in {
    os: "killpg getsid getuid geteuid getpgid setsid openpty ttyname O_NOFOLLOW O_DIRECTORY O_NONBLOCK O_CLOEXEC fork",
    signal: "SIGHUP SIGCONT SIGKILL SIGSTOP SIGTSTP SIGCHLD SIGUSR1",
}.items():
    for name in names.split():
        if hasattr(owner, name):
            delattr(owner, name)
"""

EVERYTHING = """
import importlib, pkgutil, ahpkit
for module in pkgutil.walk_packages(ahpkit.__path__, "ahpkit."):
    if not module.name.endswith("__main__") and ".mcp" not in module.name:  # The SDK of MCP asks for the platform.
        importlib.import_module(module.name)
"""

CLIENT = """
import importlib, pkgutil
import ahpkit, ahpkit.client, ahpkit.transports.connect
from ahpkit.cli.main import cli
for package in (ahpkit.client,):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
from ahpkit.client import find_endpoints

assert cli.main(["--version"], standalone_mode=False) in (None, 0)
"""

RUNNING = """
from ahpkit.client import Client
from ahpkit.testing.fake_host import FakeHost

async def main():
    async with FakeHost() as host, Client(host.dial) as client:
        assert client.status == "connected"

asyncio.run(main())
"""


def run(*programs: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "".join(programs)], capture_output=True, text=True, timeout=3 * BOUND, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_can_be_imported_without_what_posix_has() -> None:
    run(LACKING, LACKING_MORE, EVERYTHING)


def test_the_client_can_be_imported_and_run_without_what_posix_has() -> None:
    run(LACKING, LACKING_MORE, CLIENT, RUNNING)


def test_what_is_missing_is_named_when_it_is_used() -> None:
    program = """
import os
from ahpkit.platform.files import try_lock
try:
    try_lock(0)
except OSError as error:
    print(error.strerror)
"""
    assert run(LACKING, program) == "locking a file: not available on this system\n"
