"""Creates, forks, restores and disposes of sessions.

A session is created in the background: its channel exists at once with lifecycle `creating`; features prepare it and
the agent opens its default chat; then it is `ready`, or `failed` with a reason.

Which sessions are live is in `live_sessions`, their chats are in `session_chats`. Pure rules are in `new_sessions` and
`chats`.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ahpkit.dialects.generations import selection_of
from ahpkit.dialects.states_up import is_remote, local_directory
from ahpkit.host.agent import Agent, AgentError, LoginNeeded
from ahpkit.host.agents import Agents
from ahpkit.host.clients.clients import Clients
from ahpkit.host.policy import check_agent, check_model
from ahpkit.host.registration import SessionHooks
from ahpkit.host.sessions.catalogue import SessionTimes
from ahpkit.host.sessions.chats import check_chosen_model, check_idle, with_workers
from ahpkit.host.sessions.kept_conversations import KeptConversations, ToldHistory
from ahpkit.host.sessions.live_sessions import LiveSession, LiveSessions
from ahpkit.host.sessions.new_sessions import (
    Progress,
    Report,
    Source,
    directories_of_new,
    fork_of,
    fork_source,
    initial_config,
    taken_over,
)
from ahpkit.host.sessions.session_chats import SessionChats
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.session_index import SessionIndex, Unsettled, WaitingSelections
from ahpkit.host.spine.store import Store
from ahpkit.host.states import NO_CHAT, NO_SESSION
from ahpkit.host.turns.chat import path_of
from ahpkit.host.turns.new_state import DEFAULT_TITLE, NO_CONFIG, kept_session, new_chat, new_session
from ahpkit.host.turns.turns import Turns
from ahpkit.platform.files import local_path
from ahpkit.protocol.channels import ROOT_URI, channel_of
from ahpkit.protocol.chat.commands import MoveChatParams, MoveChatResult
from ahpkit.protocol.chat.state import ChatOrigin
from ahpkit.protocol.common.state import JsonObject, ModelSelection
from ahpkit.protocol.errors import (
    InvalidParams,
    InvalidRequest,
    NotFound,
    SessionAlreadyExists,
    SessionNotFound,
)
from ahpkit.protocol.meta_keys import ELSEWHERE
from ahpkit.protocol.root import root_active_sessions_changed
from ahpkit.protocol.session.actions import (
    session_active_client_set,
    session_creation_failed,
    session_default_chat_changed,
    session_ready,
)
from ahpkit.protocol.session.commands import CreateSessionParams
from ahpkit.protocol.session.state import ProjectInfo, SessionActiveClient, SessionState
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPorts:
    """What `Sessions` uses of the host, for itself and for the two parts that it makes."""

    store: Store
    kinds: ChannelKinds
    dispatcher: Dispatcher
    index: SessionIndex
    unsettled: Unsettled
    waiting: WaitingSelections
    clients: Clients
    hooks: SessionHooks
    tasks: Tasks
    agents: Agents
    turns: Turns
    kept: KeptConversations
    times: SessionTimes
    durable: Callable[[], Awaitable[None]]
    monotonic: Callable[[], float]
    rest_after: float
    max_idle: int
    max_sessions: int
    max_chats: int
    default_directory: Path
    new_id: Callable[[], str]
    now: Callable[[], int]


class Sessions:
    """All sessions of a host."""

    def __init__(self, ports: SessionPorts) -> None:
        self._ports = ports
        self._states = ports.store
        self._dispatch = ports.dispatcher.apply
        self.live = LiveSessions(
            store=ports.store,
            index=ports.index,
            unsettled=ports.unsettled,
            clients=ports.clients,
            hooks=ports.hooks,
            tasks=ports.tasks,
            agents=ports.agents,
            turns=ports.turns,
            create=self._finish_creating,
            monotonic=ports.monotonic,
            rest_after=ports.rest_after,
            max_idle=ports.max_idle,
        )
        self.chats = SessionChats(
            self.live,
            store=ports.store,
            kinds=ports.kinds,
            dispatch=ports.dispatcher.apply,
            index=ports.index,
            unsettled=ports.unsettled,
            kept=ports.kept,
            hooks=ports.hooks,
            turns=ports.turns,
            max_chats=ports.max_chats,
            new_id=ports.new_id,
            now=ports.now,
        )

    # -- creating ------------------------------------------------------------------------------------------------

    async def create(self, params: CreateSessionParams, report: Report | None = None) -> None:
        """`createSession`: the channel exists when this returns; the rest happens in the background.

        `report` gets its progress.
        """
        uri = params["channel"]
        self._check_new(uri)
        fork = fork_of(params)
        source = None if fork is None else fork_source(fork, self._states)
        agent = self._agent_for(params, source)
        check_chosen_model(selection_of(params).get("model"), agent.provider, self._states.root())
        self._ports.agents.check_authenticated(agent)
        given = taken_over(params, source[0], agent.provider) if source is not None else params
        asked = directories_of_new(given, agent)
        directories = await self._here(asked)
        directory = directories[0] if directories else None
        for further in directories[1:]:
            await self.directory(further)
        path = await self.directory(directory)
        settings = dict(given.get("config") or {})
        config = await initial_config(agent, path, settings, self._ports.hooks.settings)
        directories = await self._chosen(uri, path, directories, config["values"])
        self._check_new(uri)  # Again: somebody else may have been faster while we waited.
        project: ProjectInfo | None = {"uri": directory, "displayName": path.name} if directory else None
        state = new_session(
            provider=agent.provider,
            directories=directories or None,
            project=project,
            config=config,
            meta=given.get("_meta"),
        )
        if asked and is_remote(asked[0]) and directory != local_directory(asked[0]):
            state["_meta"] = {**state.get("_meta", {}), ELSEWHERE: asked[0]}
        if source is not None:
            state["title"] = source[0]["title"]
        self._open_session(uri, agent, state, created_at=self._ports.now())
        self._add_default_chat(uri, params.get("activeClient"), source)
        self._count_changed()
        creating = self._finish_creating(uri, self.live[uri], report)
        self._ports.tasks.spawn(creating, name=f"create {uri}")

    async def _chosen(self, uri: str, path: Path, directories: list[str], settings: Mapping[str, Any]) -> list[str]:
        """The directories of a new session. The first may differ from the one that was asked for."""
        chosen = path
        for choose in self._ports.hooks.choose_directory:
            chosen = await choose(uri, chosen, settings)
        return directories if chosen == path else [chosen.as_uri(), *directories[1:]]

    async def directory(self, uri: str | None) -> Path:
        """The directory that a URI names, if sessions may have it; the default one for None."""
        here = None if uri is None else (await self._here([uri]))[0]
        if here is not None:
            for check in self._ports.hooks.check_directory:
                await check(here)
        return path_of(here, self._ports.default_directory)

    async def _here(self, directories: Sequence[str]) -> list[str]:
        """Directories as paths of this machine. A folder of VS Code's server that does not exist here, because that
        server runs on another machine, is replaced by the default directory.
        """
        found: list[str] = []
        for uri in directories:
            here = local_directory(uri)
            path = local_path(here) if is_remote(uri) else None
            if is_remote(uri) and (path is None or not await asyncio.to_thread(path.is_dir)):
                _log.warning("%.200r is not on this machine: the default directory is taken", uri)
                here = self._ports.default_directory.as_uri()
            found.append(here)
        return list(dict.fromkeys(found))

    def _check_new(self, uri: str) -> None:
        if not self._ports.kinds.may_be(uri, "session"):
            raise InvalidParams(f"channel: {uri[:200]!r} is not a session URI; use ahp-session:/<id>")
        if self._ports.store.taken(uri):
            raise SessionAlreadyExists(f"the session {uri} exists already")
        if len(self._ports.index) >= (most := self._ports.max_sessions):
            raise InvalidRequest(f"this host has {most} sessions, which is the limit; dispose of some first")

    def _agent_for(self, params: CreateSessionParams, source: Source | None) -> Agent:
        default = source[0]["provider"] if source else None
        return self._ports.agents.find(params.get("provider") or default)

    def _open_session(self, uri: str, agent: Agent, state: SessionState, *, created_at: int) -> None:
        self._ports.times.created(uri, created_at)
        self._ports.store.open(uri, state, kind="session")
        self._ports.store.open(f"{uri}/annotations", {"annotations": []}, kind="annotations")
        self.live.add(uri, agent)
        self._ports.index.add_session(uri)
        self._ports.unsettled.look(uri, state)

    def _add_default_chat(self, uri: str, active: SessionActiveClient | None, source: Source | None) -> None:
        chat_uri = self._default_chat_uri(uri)
        now = self._ports.now()
        if source is None:
            state = new_chat(chat_uri, title=DEFAULT_TITLE, now=now)
        else:
            session, chat, turns = source
            origin: ChatOrigin = {"kind": "fork", "chat": chat["resource"], "turnId": turns[-1]["id"]}
            selection, title = selection_of(chat), session["title"]
            state = new_chat(chat_uri, title=title, now=now, origin=origin, turns=turns, selection=selection)
        self.chats.open(uri, state)
        self._dispatch(uri, session_default_chat_changed(default_chat=chat_uri))
        if active is not None:
            self._dispatch(uri, session_active_client_set(active_client=active))

    def _default_chat_uri(self, session_uri: str) -> str:
        """A session with a URI of VS Code's kind gets the default chat that VS Code looks for."""
        if channel_of(session_uri) is not None:
            return f"ahp-chat:/{self._ports.new_id()}"
        return f"ahp-chat://default/{urlsafe_b64encode(session_uri.encode()).decode().rstrip('=')}"

    async def _finish_creating(self, uri: str, session: LiveSession, report: Report | None = None) -> None:
        failure: Exception | None = None
        progress = Progress(report, total=len(self._ports.hooks.prepare) + len(session.chats) + 1)
        try:
            await self._prepare(uri, session, progress)
        except Exception as error:  # The session shows why it failed.
            failure = error
        progress.end("Ready" if failure is None else "The session could not be created")
        if self.live.get(uri) is not session:
            await self._close_runners(session)  # Disposed of meanwhile; an agent may have opened since.
        elif failure is not None:
            self._creation_failed(uri, session, failure)
        else:
            self._dispatch(uri, session_ready())
            session.ready.set_result(None)
            self.live.rest_unused()

    async def _prepare(self, uri: str, session: LiveSession, progress: Progress) -> None:
        progress.step("Preparing the session")
        for make in self._ports.hooks.make_directory:
            await make(uri)
        for directory in (self._states.session(uri) or NO_SESSION).get("workingDirectories", ()):
            if not await asyncio.to_thread(path_of(directory, Path()).is_dir):
                message = f"the working directory {directory} does not exist"
                raise AgentError(message, error_type="host/working-directory")
        for prepare in self._ports.hooks.prepare:
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
        self._dispatch(uri, session_creation_failed(error=error.info()))
        if isinstance(error, LoginNeeded):
            self._ports.agents.login_needed(session.agent, uri)
        session.ready.set_exception(AgentError(f"The session was not created: {error.message}", error_type="host"))
        session.ready.exception()

    def import_session(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """A new session with the content of an exported one; its URI and its agent's provider."""
        uri = f"ahp-session:/{self._ports.new_id()}"
        agent = self._ports.agents.find(document["provider"] if self._ports.agents.has(document["provider"]) else None)
        state = new_session(provider=agent.provider, directories=None, project=None, config=NO_CONFIG)
        state["title"] = document["title"]
        self._open_session(uri, agent, state, created_at=self._ports.now())
        for chat in document["chats"]:
            chat_uri = f"ahp-chat:/{self._ports.new_id()}"
            self.chats.open(uri, new_chat(chat_uri, title=chat["title"], now=self._ports.now(), turns=chat["turns"]))
        if not document["chats"]:
            self._add_default_chat(uri, None, None)
        self._count_changed()
        self._ports.tasks.spawn(self._finish_creating(uri, self.live[uri]), name=f"import {uri}")
        return uri, agent.provider

    async def adopt(self, uri: str) -> bool:
        """Make a session of a conversation that an agent keeps, and wait until it is stored; False when there is no
        such conversation.

        Its chat is added when the agent has sent the history.
        """
        if not self._ports.kept.to_recall(uri):
            listed = self._ports.kept.find(uri)
            if listed is None:
                return False
            self._ports.kept.adopted(listed)
            state = kept_session(listed.agent.provider, listed.kept)
            self._open_session(uri, listed.agent, state, created_at=listed.kept.modified_at or 0)
            self._count_changed()
            self._ports.tasks.spawn(self._finish_creating(uri, self.live[uri]), name=f"adopt {uri}")
        await self._ports.durable()  # Only what is stored can be shown.
        return True

    async def _recall(self, uri: str, session: LiveSession) -> None:
        memory = self._ports.kept.to_recall(uri)
        chat = self._ports.turns.live_chat(f"ahp-chat:/{self._ports.new_id()}", uri)
        history = ToldHistory(
            chat, new_id=self._ports.new_id, now=self._ports.now, store_content=self._ports.turns.store_content
        )
        await session.agent.recall(chat, memory, history)
        if self.live.get(uri) is not session:
            return  # Disposed of meanwhile.
        chat.remember(memory)
        self._ports.kept.recalled(uri)
        title = chat.session["title"]
        self.chats.open(uri, new_chat(chat.uri, title=title, now=self._ports.now(), turns=history.turns()))
        self._dispatch(uri, session_default_chat_changed(default_chat=chat.uri))

    # -- chats ---------------------------------------------------------------------------------------------------

    async def move_chat(self, params: MoveChatParams) -> MoveChatResult:
        """`moveChat`: to another place in its session, to another session, or to one of its own."""
        uri, destination = params["channel"], params["destination"]
        source = self._ports.index.session_of(uri)
        if source is None:
            raise NotFound(f"there is no chat {uri}")
        if not (self._states.chat(uri) or NO_CHAT).get("movable"):
            raise InvalidParams("channel: this chat cannot be moved")
        if destination["kind"] == "newSession":
            return {"session": await self._move_to_new(uri, source)}
        if destination["kind"] != "session":  # A kind of later versions.
            other = str(cast("JsonObject", destination)["kind"])
            raise InvalidParams(f"destination.kind: {other[:100]!r} is neither session nor newSession")
        if destination["session"] == source:
            self.chats.reorder(source, uri, destination.get("after"))
        else:
            await self.chats.move(uri, source, destination["session"], destination.get("after"))
        return {"session": destination["session"]}

    async def _move_to_new(self, uri: str, source: str) -> str:
        here, chat = self._states.session(source) or NO_SESSION, self._states.chat(uri) or NO_CHAT
        moving = with_workers(uri, here)
        check_idle(moving, self._states)
        target = f"ahp-session:/{self._ports.new_id()}"
        self._check_new(target)
        agent = self.live[source].agent
        state = new_session(
            provider=agent.provider,
            directories=here.get("workingDirectories"),
            project=here.get("project"),
            config=here.get("config", NO_CONFIG),
        )
        self._open_session(target, agent, {**state, "title": chat["title"]}, created_at=self._ports.now())
        runners = self.chats.take_along(moving, source, target)
        self._dispatch(target, session_default_chat_changed(default_chat=uri))
        self._count_changed()
        await self.chats.settle(runners, target)
        self._ports.tasks.spawn(self._finish_creating(target, self.live[target]), name=f"create {target}")
        return target

    # -- ending --------------------------------------------------------------------------------------------------

    async def dispose(self, uri: str) -> None:
        """`disposeSession`: the session, its chats and what agents and features hold for it are gone."""
        if uri not in self._ports.index:
            if self._ports.kept.dismiss(uri):
                return
            raise SessionNotFound(f"there is no session {uri}")
        self.live.make_live(uri)
        session = self.live[uri]
        self._ports.kept.disposed(uri, session.agent.provider)
        self._ports.hooks.disposed.tell(uri)
        for chat in self._ports.index.chats(uri):
            self.chats.close(chat, session.chats.get(chat))
        self._ports.store.close(f"{uri}/annotations")
        self._ports.store.close(uri)
        self._ports.index.remove_session(uri)
        self.live.remove(uri)
        self._ports.unsettled.forget(uri)
        self._ports.times.forget(uri)
        self._count_changed()
        for _, origin, sent in self._ports.waiting.take_all(uri):
            reason = f"the session {uri} was disposed of before this could be applied"
            self._ports.clients.reject(uri, sent, origin, reason)
        await self._close_runners(session)

    @staticmethod
    async def _close_runners(session: LiveSession) -> None:
        for runner in session.chats.values():
            await runner.dispose()

    async def aclose(self) -> None:
        """The host stops: running turns end with an error that says so."""
        reason = "The host was stopped while this turn was running."
        await asyncio.gather(*(runner.aclose(reason) for runner in self.live.runners()), return_exceptions=True)

    def _count_changed(self) -> None:
        self._dispatch(ROOT_URI, root_active_sessions_changed(active_sessions=len(self._ports.index)))

    # -- after a restart -----------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Restore the list of sessions of an earlier run. Nothing is dispatched, and no state is read."""
        index, store = self._ports.index, self._ports.store
        if index.restore(store.channels()):
            return
        for uri in store.channels():  # A log of an ahpkit that kept no index.
            if self._ports.kinds.name_of(uri) == "session":
                self._add_to_index(uri)

    def _add_to_index(self, uri: str) -> None:
        state = self._states.session(uri) or NO_SESSION
        self._ports.index.add_session(uri)
        self._ports.unsettled.look(uri, state)
        for summary in state["chats"]:
            if (chat := self._states.chat(summary["resource"])) is not None:
                self._ports.index.add_chat(summary["resource"], uri)
                self._ports.unsettled.look(summary["resource"], chat)

    def recover(self) -> None:
        """Add `movable` to chats of older logs."""
        for uri in self.live:
            self.chats.say_movable(uri)


__all__ = ["SessionPorts", "Sessions"]
