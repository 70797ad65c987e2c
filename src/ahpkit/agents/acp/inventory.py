"""Finds out which known agents are installed, in which version, and whether they answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Literal

from ahpkit.agents.acp.config import parse_agent_option
from ahpkit.agents.acp.connection import AcpConnection
from ahpkit.agents.acp.installing import places, program_of
from ahpkit.agents.acp.registry import KNOWN_AGENTS, KnownAgent
from ahpkit.agents.untrusted_json import obj, text
from ahpkit.host.agent import AgentError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import MethodNotFound

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


__all__ = ["FoundAgent", "State", "check", "check_all", "look"]
