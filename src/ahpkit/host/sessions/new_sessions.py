"""Computes what a new session begins with: directories, configuration, what a fork takes over, progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from ahpkit.dialects.generations import FORK, SELECTION, selection_of, unmarked
from ahpkit.dialects.states_up import is_remote, local_directory
from ahpkit.host.agent import Agent
from ahpkit.host.limits import MAX_DIRECTORIES
from ahpkit.host.policy.config import all_values
from ahpkit.host.registration import SessionHooks, SettingsSource
from ahpkit.host.states import States
from ahpkit.host.turns.chat import path_of
from ahpkit.host.turns.new_state import turns_until
from ahpkit.platform.files import local_path
from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, NotFound, SessionNotFound
from ahpkit.protocol.json_schema import check_schema, find_problem
from ahpkit.protocol.session.commands import CreateSessionParams
from ahpkit.protocol.session.state import SessionConfigState, SessionState

_log = logging.getLogger(__name__)

_CONFIG_PATIENCE = 2.0
"""Seconds an agent may take to say how it can be configured; creating a session must not hang on it."""


async def resolve_config(
    agent: Agent, directory: Path, values: JsonObject, further: Iterable[SettingsSource] = ()
) -> SessionConfigState:
    """The settings of a session, and their values with defaults filled in. An agent that is slow has none.

    A setting of the agent's own comes before one of the host with the same name.
    """
    schema: Any = None
    try:
        async with asyncio.timeout(_CONFIG_PATIENCE):
            schema = await agent.session_config(directory, values)
    except TimeoutError:
        _log.warning("the agent %s did not say in time how it can be configured", agent.provider)
    if schema and (reason := check_schema(schema)) is not None:
        _log.warning("the configuration of the agent %s is not used: %s", agent.provider, reason)
        schema = None
    schema = schema or {"type": "object", "properties": {}}
    of_host = {name: one for settings in further for name, one in (await settings(directory)).items()}
    if of_host:
        schema = {**schema, "properties": {**of_host, **schema["properties"]}}
    defaults = {key: prop["default"] for key, prop in schema["properties"].items() if "default" in prop}
    return {"schema": schema, "values": {**defaults, **values}}


async def initial_config(
    agent: Agent, directory: Path, values: JsonObject, further: Iterable[SettingsSource] = ()
) -> SessionConfigState:
    """`SessionState.config` of a new session; raises when what was chosen does not fit the schema.

    Settings that are not in the schema are left out: clients send some that not every agent has.
    """
    config = await resolve_config(agent, directory, values, further)
    schema, values = config["schema"], config["values"]
    if unknown := values.keys() - schema["properties"].keys():
        _log.warning("settings that %s does not have are left out: %s", agent.provider, ", ".join(sorted(unknown)))
        values = {key: value for key, value in values.items() if key not in unknown}
    if schema["properties"] and (problem := find_problem(all_values(schema), values)) is not None:
        raise InvalidParams(f"config{problem}")
    return {"schema": schema, "values": values}


Source = tuple[SessionState, ChatState, list[Turn]]
"""What a fork continues: the states of a session and of its chat, and the turns that it shows."""


class Step(TypedDict):
    """How far the creation of a session is."""

    progress: int
    total: int
    message: str


Report = Callable[[Step], None]


class Fork(TypedDict):
    """The session and the turn that a new session continues."""

    session: str
    turnId: str


class Progress:
    """Reports the progress of creating a session: never less than before, and nothing after the end."""

    def __init__(self, report: Report | None, *, total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0

    def step(self, message: str) -> None:
        """Report that another step begins."""
        self._tell(self._done, message)
        self._done = min(self._done + 1, self._total - 1)

    def end(self, message: str) -> None:
        self._tell(self._total, message)
        self._report = None

    def _tell(self, done: int, message: str) -> None:
        if self._report is not None:
            self._report({"progress": done, "total": self._total, "message": message})


def fork_source(fork: Fork, states: States) -> Source:
    """The session, the chat and the turns that a new session continues; raises when they are not there."""
    session = states.session(fork["session"])
    if session is None:
        raise SessionNotFound(f"there is no session {fork['session']} to fork")
    for summary in session["chats"]:
        chat = states.chat(summary["resource"])
        turns = turns_until(chat, fork["turnId"]) if chat else None
        if chat is not None and turns is not None:
            return session, chat, turns
    raise NotFound(f"fork.turnId: the session has no finished turn {fork['turnId']!r}")


def directories_of_new(params: CreateSessionParams, agent: Agent) -> list[str]:
    """The directories of a new session; only the first of those given, if its agent can work in only one."""
    given = list(dict.fromkeys(params.get("workingDirectories") or ()))
    if len(given) > MAX_DIRECTORIES:
        raise InvalidParams(f"workingDirectories: a session may have {MAX_DIRECTORIES}, not {len(given)}")
    return given if agent.directories is not None else given[:1]


class NewDirectories:
    """Finds the working directories of new sessions. `default` is for sessions that name none."""

    def __init__(self, hooks: SessionHooks, default: Path) -> None:
        self._hooks = hooks
        self._default = default

    async def find(self, uri: str | None) -> Path:
        """The directory that a URI names, if sessions may have it; the default one for None."""
        here = None if uri is None else (await self.here([uri]))[0]
        if here is not None:
            for check in self._hooks.check_directory:
                await check(here)
        return path_of(here, self._default)

    async def here(self, directories: Sequence[str]) -> list[str]:
        """Directories as paths of this machine. A folder of VS Code's server that does not exist here, because that
        server runs on another machine, is replaced by the default directory.
        """
        found: list[str] = []
        for uri in directories:
            here = local_directory(uri)
            path = local_path(here) if is_remote(uri) else None
            if is_remote(uri) and (path is None or not await asyncio.to_thread(path.is_dir)):
                _log.warning("%.200r is not on this machine: the default directory is taken", uri)
                here = self._default.as_uri()
            found.append(here)
        return list(dict.fromkeys(found))

    async def choose(self, uri: str, path: Path, directories: list[str], settings: Mapping[str, Any]) -> list[str]:
        """The directories of a new session. The first may differ from the one that was asked for."""
        chosen = path
        for choose in self._hooks.choose_directory:
            chosen = await choose(uri, chosen, settings)
        return directories if chosen == path else [chosen.as_uri(), *directories[1:]]


def fork_of(params: CreateSessionParams) -> Fork | None:
    """The session and turn that a new session continues. Clients before 0.9 can ask for it."""
    meta = params.get("_meta") or {}
    return meta.get(FORK)


def taken_over(params: CreateSessionParams, source: SessionState, provider: str) -> CreateSessionParams:
    """What a fork is created with: the source's directories, and, with the same agent, its choices and settings.

    What the client says explicitly has priority.
    """
    given = params.copy()
    if directories := params.get("workingDirectories") or source.get("workingDirectories"):
        given["workingDirectories"] = directories
    if source["provider"] == provider:
        values = source["config"]["values"] if "config" in source else {}
        given["config"] = {**values, **(params.get("config") or {})}
        chosen = {**selection_of({"_meta": unmarked(source.get("_meta") or {})}), **selection_of(params)}
        given["_meta"] = {**(params.get("_meta") or {}), SELECTION: chosen}
    return given


__all__ = [
    "Fork",
    "NewDirectories",
    "Progress",
    "Report",
    "Source",
    "Step",
    "directories_of_new",
    "fork_of",
    "fork_source",
    "initial_config",
    "resolve_config",
    "taken_over",
]
