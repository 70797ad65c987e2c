"""Computes the configuration of a new session, and makes the session ready, in the background.

Features prepare it and the agent opens its chats. Then it is `ready`, or `failed` with a reason.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypedDict, cast

from ahpkit.dialects.generations import selection_of
from ahpkit.host.agent import Agent, AgentError, LoginNeeded
from ahpkit.host.agents import Agents
from ahpkit.host.policy import check_agent, check_model
from ahpkit.host.policy.config import all_values
from ahpkit.host.registration import SessionHooks, SettingsSource
from ahpkit.host.sessions.agent_conversations import AgentConversations, RecalledHistory
from ahpkit.host.sessions.live_sessions import LiveSession, LiveSessions
from ahpkit.host.sessions.session_chats import SessionChats
from ahpkit.host.states import NO_SESSION, States
from ahpkit.host.turns.chat import path_of
from ahpkit.host.turns.new_state import new_chat
from ahpkit.host.turns.turns import Turns
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject, ModelSelection
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.json_schema import check_schema, find_problem
from ahpkit.protocol.session.actions import session_creation_failed, session_default_chat_changed, session_ready
from ahpkit.protocol.session.state import SessionConfigSchema, SessionConfigState

_log = logging.getLogger(__name__)

_CONFIG_PATIENCE = 2.0
"""Seconds for an agent to report its settings. The creation of a session must not hang."""


async def resolve_config(
    agent: Agent, directory: Path, values: JsonObject, further: Iterable[SettingsSource] = ()
) -> SessionConfigState:
    """The settings of a session, and their values with defaults filled in.

    If the agent does not answer in time, the session has none of its settings. A setting of the agent replaces one of
    the host with the same name.
    """
    schema: SessionConfigSchema | None = None
    try:
        async with asyncio.timeout(_CONFIG_PATIENCE):
            schema = await agent.session_config(directory, values)
    except TimeoutError:
        _log.warning("the agent %s did not say in time how it can be configured", agent.provider)
    if schema and (reason := _why_not(schema)) is not None:
        _log.warning("the configuration of the agent %s is not used: %s", agent.provider, reason)
        schema = None
    schema = schema or {"type": "object", "properties": {}}
    of_host = {name: one for settings in further for name, one in (await settings(directory)).items()}
    if of_host:
        schema = {**schema, "properties": {**of_host, **schema["properties"]}}
    defaults = {key: prop["default"] for key, prop in schema["properties"].items() if "default" in prop}
    return {"schema": schema, "values": {**defaults, **values}}


def _why_not(schema: object) -> str | None:
    """Why an agent's settings cannot be used. An agent may be foreign code, so they can have any shape."""
    properties: object = cast("JsonObject", schema).get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not all(
        isinstance(one, dict) for one in cast("JsonObject", properties).values()
    ):
        return "its `properties` are missing, or are not all schemas"
    try:
        return check_schema(schema)
    except (TypeError, ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"


async def initial_config(
    agent: Agent, directory: Path, values: JsonObject, further: Iterable[SettingsSource] = ()
) -> SessionConfigState:
    """`SessionState.config` of a new session; raises if a chosen value does not fit the schema.

    Settings that are not in the schema are left out, because clients send settings that only some agents have.
    """
    config = await resolve_config(agent, directory, values, further)
    schema, values = config["schema"], config["values"]
    if unknown := values.keys() - schema["properties"].keys():
        _log.warning("settings that %s does not have are left out: %s", agent.provider, ", ".join(sorted(unknown)))
        values = {key: value for key, value in values.items() if key not in unknown}
    if schema["properties"] and (problem := find_problem(all_values(schema), values)) is not None:
        raise InvalidParams(f"config{problem}")
    return {"schema": schema, "values": values}


class Step(TypedDict):
    """The steps of creating a session."""

    progress: int
    total: int
    message: str


Report = Callable[[Step], None]


class Progress:
    """Reports the progress of creating a session. The number never decreases, and nothing is reported after the end."""

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


class SessionCreation:
    """Finishes the creation of sessions: of new ones, and of those that a restart interrupted."""

    def __init__(
        self,
        *,
        live: LiveSessions,
        chats: SessionChats,
        states: States,
        dispatch: Callable[[str, StateAction], None],
        agents: Agents,
        turns: Turns,
        conversations: AgentConversations,
        hooks: SessionHooks,
        new_id: Callable[[], str],
        now: Callable[[], int],
    ) -> None:
        self._live = live
        self._chats = chats
        self._states = states
        self._dispatch = dispatch
        self._agents = agents
        self._turns = turns
        self._conversations = conversations
        self._hooks = hooks
        self._new_id = new_id
        self._now = now

    async def finish(self, uri: str, session: LiveSession, report: Report | None = None) -> None:
        """Prepare a session, and dispatch that it is ready or why it failed. `report` gets the progress."""
        failure: Exception | None = None
        progress = Progress(report, total=len(self._hooks.prepare) + len(session.chats) + 1)
        try:
            await self._prepare(uri, session, progress)
        except Exception as error:  # The session shows why it failed.
            failure = error
        progress.end("Ready" if failure is None else "The session could not be created")
        if self._live.get(uri) is not session:
            await session.dispose()  # Disposed of meanwhile; an agent may have opened since.
        elif failure is not None:
            self._creation_failed(uri, session, failure)
        else:
            self._dispatch(uri, session_ready())
            session.ready.set_result(None)
            self._live.rest_unused()

    async def _prepare(self, uri: str, session: LiveSession, progress: Progress) -> None:
        progress.step("Preparing the session")
        for make in self._hooks.make_directory:
            await make(uri)
        for directory in (self._states.session(uri) or NO_SESSION).get("workingDirectories", ()):
            if not await asyncio.to_thread(os.path.isdir, path_of(directory, Path())):
                message = f"the working directory {directory} does not exist"
                raise AgentError(message, error_type="host/working-directory")
        for prepare in self._hooks.prepare:
            await prepare(uri)
            progress.step("Preparing the session")
        if not session.chats:
            await self._recall(uri, session)
        self._check_agent(uri)
        for runner in list(session.chats.values()):
            progress.step(f"Starting {session.agent.display_name}")
            await runner.open()
            self._check_told_model(session.agent, runner.chat.model)

    def _check_told_model(self, agent: Agent, model: ModelSelection | None) -> None:
        """Check the model chosen at creation: some agents report their models only when they are opened."""
        if model is not None and (reason := check_model(self._states.root(), agent.provider, model["id"])):
            raise AgentError(reason, error_type="host/model")

    def _check_agent(self, uri: str) -> None:
        """Check the custom agent chosen at creation: agents are known only once the customizations are read."""
        state = self._states.session(uri)
        chosen = selection_of(state).get("agent")
        if chosen is not None and (reason := check_agent(state, chosen["uri"])) is not None:
            raise AgentError(reason, error_type="host/agent")

    def _creation_failed(self, uri: str, session: LiveSession, error: Exception) -> None:
        if not isinstance(error, AgentError):
            _log.error("creating %s failed", uri, exc_info=error)
            error = AgentError("The session could not be created. The host's log has the details.", error_type="host")
        else:
            _log.warning("%s with the agent %s was not created: %s", uri, session.agent.provider, error.message)
        self._dispatch(uri, session_creation_failed(error=error.info()))
        if isinstance(error, LoginNeeded):
            self._agents.login_needed(session.agent, uri)
        session.ready.set_exception(AgentError(f"The session was not created: {error.message}", error_type="host"))
        session.ready.exception()

    async def _recall(self, uri: str, session: LiveSession) -> None:
        """Add the chat of a conversation that the agent has kept."""
        memory = self._conversations.to_recall(uri)
        chat = self._turns.live_chat(f"ahp-chat:/{self._new_id()}", uri)
        history = RecalledHistory(chat, new_id=self._new_id, now=self._now, store_content=self._turns.store_content)
        await session.agent.recall(chat, memory, history)
        state = new_chat(chat.uri, title=chat.session["title"], now=self._now(), turns=history.turns())
        async with self._chats.preparing(state) as prepared:
            if self._live.get(uri) is not session:
                return  # Disposed of meanwhile.
            chat.remember(memory)
            self._conversations.recalled(uri)
            self._chats.open(uri, state, prepared)
            self._dispatch(uri, session_default_chat_changed(default_chat=chat.uri))


__all__ = ["Progress", "Report", "SessionCreation", "Step", "initial_config", "resolve_config"]
