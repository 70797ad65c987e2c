"""Sessions and their chats: creates, forks, restores and disposes of them.

A session is created in the background: its channel exists at once with lifecycle `creating`; features prepare it and
the agent opens its default chat; then it is `ready`, or `failed` with a reason.

A session that nobody uses rests: nothing but its text and its entry in the index is there. `wake` makes it live when
somebody looks at it or something happens in it. After a restart all rest but those in which something was under way.

This module is long because creating, moving, resting and disposing change one table: the sessions that are live. The
rules that need no table stand beside it (`new_sessions`, `chats`, `session_config`).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ahpkit.dialects.generations import selection_of
from ahpkit.dialects.states_up import is_remote, local_directory, with_note
from ahpkit.host.agent import Agent, AgentError, LoginNeeded
from ahpkit.host.agents import Agents
from ahpkit.host.clients.clients import Clients
from ahpkit.host.feature import Applied, Registration
from ahpkit.host.policy import check_agent, check_model
from ahpkit.host.sessions.chats import (
    beginning,
    check_anchor,
    check_directories,
    check_idle,
    is_movable,
    placed,
    with_workers,
)
from ahpkit.host.sessions.kept_conversations import KeptConversations
from ahpkit.host.sessions.new_sessions import (
    Progress,
    Report,
    Source,
    directories_of_new,
    fork_of,
    fork_source,
    taken_over,
)
from ahpkit.host.sessions.session_config import initial_config
from ahpkit.host.sessions.session_times import SessionTimes
from ahpkit.host.sessions.told_history import ToldHistory
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.session_index import SessionIndex, Unsettled, WaitingSelections
from ahpkit.host.spine.store import Store
from ahpkit.host.tasks import Tasks
from ahpkit.host.turns.attached_chats import check_attached
from ahpkit.host.turns.chat import path_of
from ahpkit.host.turns.new_state import NO_CONFIG, chat_entry, kept_session, new_chat, new_session
from ahpkit.host.turns.runner import ChatRunner
from ahpkit.host.turns.titles import DEFAULT_TITLE
from ahpkit.host.turns.turns import Turns
from ahpkit.platform.file_uris import local_path
from ahpkit.protocol.channels import ROOT_URI, channel_of
from ahpkit.protocol.chat.actions import chat_movable_changed, chat_turn_started
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import JsonObject, ModelSelection
from ahpkit.protocol.errors import (
    AlreadyExists,
    InvalidParams,
    InvalidRequest,
    NotFound,
    SessionAlreadyExists,
    SessionNotFound,
)
from ahpkit.protocol.meta_keys import ELSEWHERE
from ahpkit.protocol.root.actions import root_active_sessions_changed
from ahpkit.protocol.session.actions import (
    session_active_client_set,
    session_chat_added,
    session_chat_removed,
    session_chats_reordered,
    session_creation_failed,
    session_default_chat_changed,
    session_ready,
)

_log = logging.getLogger(__name__)


_LOOK_EVERY = 5.0
"""Seconds between two searches for unused sessions."""

_LOOK_AT = 20
"""Sessions that are looked at in one go."""

_WAKE_PATIENCE = 10.0
"""Seconds that a request waits for a session that rested; then it is served with what there is."""


@dataclass(slots=True)
class _Session:
    """A session that is live."""

    agent: Agent
    ready: asyncio.Future[None]
    used: float = 0.0
    """When something last happened in it, by a clock that only goes forward."""
    chats: dict[str, ChatRunner] = field(default_factory=dict[str, ChatRunner])


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPorts:
    """What sessions use of the host."""

    store: Store
    kinds: ChannelKinds
    dispatcher: Dispatcher
    index: SessionIndex
    unsettled: Unsettled
    waiting: WaitingSelections
    clients: Clients
    registered: Registration
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
        self._state_of = ports.store.state
        self._dispatch = ports.dispatcher.apply
        self._sessions: dict[str, _Session] = {}
        """Those that are live; the longest unused first."""
        self._started = False

    # -- creating ------------------------------------------------------------------------------------------------

    async def create(self, params: Mapping[str, Any], report: Report | None = None) -> None:
        """`createSession`: the channel exists when this returns; the rest happens in the background.

        `report` is told how far that is.
        """
        uri: str = params["channel"]
        self._check_new(uri)
        fork = fork_of(params)
        source = None if fork is None else fork_source(fork, self._state_of)
        agent = self._agent_for(params, source)
        self._check_model(agent, selection_of(params).get("model"))
        self._ports.agents.check_authenticated(agent)
        given = taken_over(params, source[0], agent.provider) if source is not None else params
        asked = directories_of_new(given, agent)
        directories = await self._here(asked)
        directory = directories[0] if directories else None
        for further in directories[1:]:
            await self.directory(further)
        path = await self.directory(directory)
        settings = dict(given.get("config") or {})
        config = await initial_config(agent, path, settings, self._ports.registered.session_settings)
        directories = await self._chosen(uri, path, directories, config["values"])
        self._check_new(uri)  # Again: somebody else may have been faster while we waited.
        project = {"uri": directory, "displayName": path.name} if directory else None
        given = {**given, "workingDirectories": directories or None}
        state = new_session(given, provider=agent.provider, project=project, config=config)
        if asked and is_remote(asked[0]) and directory != local_directory(asked[0]):
            state = with_note(state, ELSEWHERE, asked[0])
        if source is not None:
            state["title"] = source[0]["title"]
        self._open_session(uri, agent, state, created_at=self._ports.now())
        self._add_default_chat(uri, params, source)
        self._count_changed()
        creating = self._finish_creating(uri, self._sessions[uri], report)
        self._ports.tasks.spawn(creating, name=f"create {uri}")

    async def _chosen(self, uri: str, path: Path, directories: list[str], settings: Mapping[str, Any]) -> list[str]:
        """The directories of a new session, the first perhaps another one than was asked for."""
        chosen = path
        for choose in self._ports.registered.directory_choosers:
            chosen = await choose(uri, chosen, settings)
        return directories if chosen == path else [chosen.as_uri(), *directories[1:]]

    async def directory(self, uri: str | None) -> Path:
        """The directory that a URI names, if sessions may have it; the default one for None."""
        here = None if uri is None else (await self._here([uri]))[0]
        if here is not None:
            for check in self._ports.registered.directory_checks:
                await check(here)
        return path_of(here, self._ports.default_directory)

    async def _here(self, directories: Sequence[str]) -> list[str]:
        """Directories as they are called on this machine. A folder of VS Code's server that is not here, because that
        server runs on another machine, gives way to the default directory.
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
            raise InvalidRequest(f"this host has {most} sessions, and takes no more; dispose of some first")

    def _agent_for(self, params: Mapping[str, Any], source: Source | None) -> Agent:
        default = source[0]["provider"] if source else None
        return self._ports.agents.find(params.get("provider") or default)

    def _check_model(self, agent: Agent, model: JsonObject | None) -> None:
        if model is not None and (reason := check_model(self._states.root(), agent.provider, model["id"])):
            raise InvalidParams(f"model: {reason}")

    def _open_session(self, uri: str, agent: Agent, state: JsonObject, *, created_at: int) -> None:
        self._ports.times.created(uri, created_at)
        self._ports.store.open(uri, state, kind="session")
        self._ports.store.open(f"{uri}/annotations", {"annotations": []}, kind="annotations")
        self._sessions[uri] = _Session(agent, asyncio.get_running_loop().create_future())
        self._ports.index.add_session(uri)
        self._ports.unsettled.look(uri, state)

    def _add_default_chat(self, uri: str, params: Mapping[str, Any], source: Any) -> None:
        chat_uri = self._default_chat_uri(uri)
        title, origin, turns, selection = DEFAULT_TITLE, None, None, None
        if source is not None:
            title, turns, selection = source[0]["title"], source[2], selection_of(source[1])
            origin = {"kind": "fork", "chat": source[1]["resource"], "turnId": turns[-1]["id"]}
        now = self._ports.now()
        state = new_chat(chat_uri, title=title, now=now, origin=origin, turns=turns, selection=selection)
        self._open_chat(uri, state)
        self._dispatch(uri, session_default_chat_changed(default_chat=chat_uri))
        if "activeClient" in params:
            self._dispatch(uri, session_active_client_set(active_client=params["activeClient"]))

    def _default_chat_uri(self, session_uri: str) -> str:
        """A session with a URI of VS Code's kind gets the default chat that VS Code looks for."""
        if channel_of(session_uri) is not None:
            return f"ahp-chat:/{self._ports.new_id()}"
        return f"ahp-chat://default/{urlsafe_b64encode(session_uri.encode()).decode().rstrip('=')}"

    async def _finish_creating(self, uri: str, session: _Session, report: Report | None = None) -> None:
        failure: Exception | None = None
        progress = Progress(report, total=len(self._ports.registered.session_preparers) + len(session.chats) + 1)
        try:
            await self._prepare(uri, session, progress)
        except Exception as error:  # The session shows why it failed.
            failure = error
        progress.end("Ready" if failure is None else "The session could not be created")
        if self._sessions.get(uri) is not session:
            await self._close_runners(session)  # Disposed of meanwhile; an agent may have opened since.
        elif failure is not None:
            self._creation_failed(uri, session, failure)
        else:
            self._dispatch(uri, session_ready())
            session.ready.set_result(None)
            self.rest_unused()

    async def _prepare(self, uri: str, session: _Session, progress: Progress) -> None:
        progress.step("Preparing the session")
        for make in self._ports.registered.directory_makers:
            await make(uri)
        for directory in (self._state_of(uri) or {}).get("workingDirectories", ()):
            if not await asyncio.to_thread(path_of(directory, Path()).is_dir):
                message = f"the working directory {directory} does not exist"
                raise AgentError(message, error_type="host/working-directory")
        for prepare in self._ports.registered.session_preparers:
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
        """The model chosen at creation: an agent may have told only now which it has."""
        if model is not None and (reason := check_model(self._states.root(), agent.provider, model["id"])):
            raise AgentError(reason, error_type="host/model")

    def _check_agent(self, uri: str) -> None:
        """The custom agent chosen at creation: known only now that the customizations are."""
        state = self._states.session(uri)
        chosen = selection_of(state).get("agent")
        if chosen is not None and (reason := check_agent(state, chosen["uri"])) is not None:
            raise AgentError(reason, error_type="host/agent")

    def _creation_failed(self, uri: str, session: _Session, error: Exception) -> None:
        if not isinstance(error, AgentError):
            _log.error("creating %s failed", uri, exc_info=error)
            error = AgentError("The session could not be created. The host's log has the details.", error_type="host")
        self._dispatch(uri, session_creation_failed(error=error.info()))
        if isinstance(error, LoginNeeded):
            self._ports.agents.login_needed(session.agent, uri)
        session.ready.set_exception(AgentError(f"The session was not created: {error.message}", error_type="host"))
        session.ready.exception()

    def import_session(self, document: JsonObject) -> tuple[str, str]:
        """A new session with the content of an exported one; its URI and its agent's provider."""
        uri = f"ahp-session:/{self._ports.new_id()}"
        agent = self._ports.agents.find(document["provider"] if self._ports.agents.has(document["provider"]) else None)
        state = new_session({}, provider=agent.provider, project=None, config=NO_CONFIG)
        state["title"] = document["title"]
        self._open_session(uri, agent, state, created_at=self._ports.now())
        for chat in document["chats"]:
            chat_uri = f"ahp-chat:/{self._ports.new_id()}"
            self._open_chat(uri, new_chat(chat_uri, title=chat["title"], now=self._ports.now(), turns=chat["turns"]))
        if not document["chats"]:
            self._add_default_chat(uri, {}, None)
        self._count_changed()
        self._ports.tasks.spawn(self._finish_creating(uri, self._sessions[uri]), name=f"import {uri}")
        return uri, agent.provider

    async def adopt(self, uri: str) -> bool:
        """Make a conversation that an agent keeps a session, and wait until that is stored; False when there is none.

        Its chat comes when the agent has told the history.
        """
        if not self._ports.kept.to_recall(uri):
            listed = self._ports.kept.find(uri)
            if listed is None:
                return False
            self._ports.kept.adopted(listed)
            state = kept_session(listed.agent.provider, listed.kept)
            self._open_session(uri, listed.agent, state, created_at=listed.kept.modified_at or 0)
            self._count_changed()
            self._ports.tasks.spawn(self._finish_creating(uri, self._sessions[uri]), name=f"adopt {uri}")
        await self._ports.durable()  # Only what is stored can be shown.
        return True

    async def _recall(self, uri: str, session: _Session) -> None:
        memory = self._ports.kept.to_recall(uri)
        chat = self._ports.turns.live_chat(f"ahp-chat:/{self._ports.new_id()}", uri)
        history = ToldHistory(
            chat, new_id=self._ports.new_id, now=self._ports.now, store_content=self._ports.turns.store_content
        )
        await session.agent.recall(chat, memory, history)
        if self._sessions.get(uri) is not session:
            return  # Disposed of meanwhile.
        chat.remember(memory)
        self._ports.kept.recalled(uri)
        title = chat.session["title"]
        self._open_chat(uri, new_chat(chat.uri, title=title, now=self._ports.now(), turns=history.turns()))
        self._dispatch(uri, session_default_chat_changed(default_chat=chat.uri))

    # -- chats ---------------------------------------------------------------------------------------------------

    def create_chat(self, params: Mapping[str, Any]) -> None:
        """`createChat`: a further chat of a session, empty or forked, with its first message if there is one."""
        uri, session_uri = params["chat"], params["channel"]
        if not self._ports.kinds.may_be(uri, "chat"):
            raise InvalidParams(f"chat: {uri[:200]!r} is not a chat URI; use ahp-chat:/<id>")
        if session_uri not in self._ports.index:
            raise SessionNotFound(f"there is no session {session_uri}")
        self.wake(session_uri)
        if self._ports.store.taken(uri):
            raise AlreadyExists(f"the chat {uri} exists already")
        if len(self._sessions[session_uri].chats) >= self._ports.max_chats:
            raise InvalidRequest(f"a session may have {self._ports.max_chats} chats; dispose of some first")
        selection = selection_of(params)
        self._check_model(self._sessions[session_uri].agent, selection.get("model"))
        chosen: JsonObject | None = selection.get("agent")
        if chosen is not None and (reason := check_agent(self._states.session(session_uri), chosen["uri"])):
            raise InvalidParams(f"agent: {reason}")
        if (reason := check_attached(params.get("initialMessage") or {}, self._state_of)) is not None:
            raise InvalidParams(f"initialMessage.{reason}")
        begins = beginning(
            params.get("source"),
            chat=uri,
            session=self._state_of(session_uri) or {},
            agent=self._sessions[session_uri].agent,
            state_of=self._state_of,
        )
        directories: list[str] | None = params.get("workingDirectories", begins.directories)
        self._check_subset(session_uri, directories or ())
        selection = {**selection_of(self._state_of((begins.origin or {}).get("chat", ""))), **selection}
        state = new_chat(
            uri,
            title=begins.title,
            now=self._ports.now(),
            origin=begins.origin,
            turns=begins.turns,
            selection=selection,
            directories=directories,
            movable=True,
        )
        runner = self._open_chat(session_uri, state)
        if begins.background is not None:
            runner.chat.keep_background(begins.background)
        if "initialMessage" in params:
            started = chat_turn_started(
                turn_id=self._ports.new_id(),
                started_at=iso_time(self._ports.now()),
                message=params["initialMessage"],
            )
            self._dispatch(uri, started)

    def _check_subset(self, session_uri: str, directories: Sequence[str]) -> None:
        """A chat works in directories of its session."""
        known: Sequence[str] = (self._state_of(session_uri) or {}).get("workingDirectories") or ()
        if outside := next((each for each in directories if each not in known), None):
            raise InvalidParams(f"workingDirectories: {outside} is not a directory of the session")

    def _open_chat(self, session_uri: str, state: JsonObject) -> ChatRunner:
        uri = state["resource"]
        self._ports.store.open(uri, state, kind="chat")
        runner = self._add_runner(session_uri, uri)
        self._dispatch(session_uri, session_chat_added(summary=chat_entry(state)))
        return runner

    def _add_runner(self, session_uri: str, uri: str) -> ChatRunner:
        session = self._sessions[session_uri]
        runner = self._ports.turns.add_chat(uri, session_uri, session.agent, lambda: asyncio.shield(session.ready))
        session.chats[uri] = runner
        return runner

    # -- moving chats --------------------------------------------------------------------------------------------

    async def move_chat(self, params: Mapping[str, Any]) -> JsonObject:
        """`moveChat`: to another place in its session, to another session, or to one of its own."""
        uri, destination = params["channel"], params["destination"]
        source = self._ports.index.session_of(uri)
        if source is None:
            raise NotFound(f"there is no chat {uri}")
        if not (self._state_of(uri) or {}).get("movable"):
            raise InvalidParams("channel: this chat cannot be moved")
        match destination.get("kind"):
            case "session" if destination["session"] == source:
                self._reorder(source, uri, destination.get("after"))
                return {"session": source}
            case "session":
                await self._move_to(uri, source, destination["session"], destination.get("after"))
                return {"session": destination["session"]}
            case "newSession":
                return {"session": await self._move_to_new(uri, source)}
            case other:
                raise InvalidParams(f"destination.kind: {str(other)[:100]!r} is neither session nor newSession")

    def _reorder(self, session_uri: str, chat: str, after: str | None) -> None:
        session = self._state_of(session_uri) or {}
        check_anchor(after, chat, session)
        self._put_after(session_uri, [chat], after)

    def _put_after(self, session_uri: str, chats: Sequence[str], after: str | None) -> None:
        order = [entry["resource"] for entry in (self._state_of(session_uri) or {})["chats"]]
        self._dispatch(session_uri, session_chats_reordered(chats=placed(order, chats, after)))

    async def _move_to(self, uri: str, source: str, target: str, after: str | None) -> None:
        there, chat = self._state_of(target), self._state_of(uri) or {}
        if target not in self._sessions or there is None:
            raise NotFound(f"destination.session: there is no session {target}")
        if self._sessions[target].agent is not self._sessions[source].agent or there["lifecycle"] == "failed":
            raise InvalidParams(f"destination.session: {target} cannot take this chat; it needs a session of its agent")
        check_anchor(after, uri, there)
        check_directories(chat, there)
        moving = with_workers(uri, self._state_of(source) or {})
        check_idle(moving, self._state_of)
        if len(self._sessions[target].chats) + len(moving) > self._ports.max_chats:
            raise InvalidRequest(f"a session may have {self._ports.max_chats} chats; dispose of some first")
        runners = self._take_along(moving, source, target)
        self._put_after(target, moving, after)
        await self._settle(runners, target)

    async def _move_to_new(self, uri: str, source: str) -> str:
        here, chat = self._state_of(source) or {}, self._state_of(uri) or {}
        moving = with_workers(uri, here)
        check_idle(moving, self._state_of)
        target = f"ahp-session:/{self._ports.new_id()}"
        self._check_new(target)
        agent = self._sessions[source].agent
        given = {"workingDirectories": here.get("workingDirectories")}
        config: JsonObject = here.get("config") or NO_CONFIG
        state = new_session(given, provider=agent.provider, project=here.get("project"), config=config)
        self._open_session(target, agent, {**state, "title": chat["title"]}, created_at=self._ports.now())
        runners = self._take_along(moving, source, target)
        self._dispatch(target, session_default_chat_changed(default_chat=uri))
        self._count_changed()
        await self._settle(runners, target)
        self._ports.tasks.spawn(self._finish_creating(target, self._sessions[target]), name=f"create {target}")
        return target

    def _take_along(self, chats: Sequence[str], source: str, target: str) -> list[ChatRunner]:
        """Take chats from one session to another, in one step. Their own channels stay as they are."""
        for uri in chats:
            self._dispatch(source, session_chat_removed(chat=uri))
        for uri in chats:
            self._ports.index.remove_chat(uri)
            self._ports.index.add_chat(uri, target)
            if (runner := self._sessions[source].chats.pop(uri, None)) is not None:
                self._sessions[target].chats[uri] = runner
            self._dispatch(target, session_chat_added(summary=chat_entry(self._state_of(uri) or {})))
            self._tell(self._ports.registered.chat_moved, uri, target)
        return [runner for uri in chats if (runner := self._sessions[target].chats.get(uri)) is not None]

    async def _settle(self, runners: Sequence[ChatRunner], target: str) -> None:
        session = self._sessions[target]
        for runner in runners:
            await runner.move(target, lambda: asyncio.shield(session.ready))

    def heard(self, applied: Applied) -> None:
        """Another chat became the default one: which chats can be moved follows from it."""
        if applied.action["type"] == "session/defaultChatChanged":
            self._say_movable(applied.channel)

    def _say_movable(self, session_uri: str) -> None:
        session = self._state_of(session_uri) or {}
        for entry in session["chats"]:
            chat = self._state_of(entry["resource"])
            if chat is not None and chat.get("movable", False) != is_movable(chat, session):
                self._dispatch(chat["resource"], chat_movable_changed(movable=is_movable(chat, session)))

    async def dispose_chat(self, uri: str) -> None:
        """`disposeChat`: a session keeps at least one chat."""
        session_uri = self._ports.index.session_of(uri)
        if session_uri is None:
            raise NotFound(f"there is no chat {uri}")
        self.wake(session_uri)
        session = self._sessions[session_uri]
        if list(session.chats) == [uri]:
            raise InvalidParams("channel: the last chat of a session cannot be disposed; dispose the session instead")
        if (self._state_of(session_uri) or {}).get("defaultChat") == uri:
            self._dispatch(session_uri, session_default_chat_changed())
        self._dispatch(session_uri, session_chat_removed(chat=uri))
        runner = session.chats.pop(uri, None)
        if runner is not None:
            runner.chat.clear_meta()
        self._close_chat(uri, runner)
        if runner is not None:
            await runner.dispose()

    def _close_chat(self, uri: str, runner: ChatRunner | None) -> None:
        self._ports.turns.remove_chat(uri)
        if runner is not None:
            if runner.turn is not None:
                runner.turn.end()
            if runner.chat.memory:
                self._ports.kept.hide(runner.agent.provider, runner.chat.memory)
            runner.chat.forget()
        self._ports.unsettled.forget(uri)
        self._ports.store.close(uri)
        self._tell(self._ports.registered.chat_disposed, uri)

    # -- ending --------------------------------------------------------------------------------------------------

    async def dispose(self, uri: str) -> None:
        """`disposeSession`: the session, its chats and what agents and features hold for it are gone."""
        if uri not in self._ports.index:
            if self._ports.kept.dismiss(uri):
                return
            raise SessionNotFound(f"there is no session {uri}")
        self._make_live(uri)
        session = self._sessions[uri]
        self._ports.kept.disposed(uri, session.agent.provider)
        self._tell(self._ports.registered.session_disposed, uri)
        for chat in self._ports.index.chats(uri):
            self._close_chat(chat, session.chats.get(chat))
        self._ports.store.close(f"{uri}/annotations")
        self._ports.store.close(uri)
        self._ports.index.remove_session(uri)
        del self._sessions[uri]
        self._ports.unsettled.forget(uri)
        self._ports.times.forget(uri)
        self._count_changed()
        for _, origin, sent in self._ports.waiting.take_all(uri):
            reason = f"the session {uri} was disposed of before this could be applied"
            self._ports.clients.reject(uri, sent, origin, reason)
        await self._close_runners(session)

    @staticmethod
    def _tell(features: Sequence[Callable[..., object]], *about: str) -> None:
        for heard in features:
            try:
                heard(*about)
            except Exception:  # It happened, also when a feature fails.
                _log.exception("a feature failed when %s was disposed of, moved or went to rest", about[0])

    @staticmethod
    async def _close_runners(session: _Session) -> None:
        for runner in session.chats.values():
            await runner.dispose()

    async def aclose(self) -> None:
        """The host stops: running turns end with an error that says so."""
        reason = "The host was stopped while this turn was running."
        runners = [runner for session in self._sessions.values() for runner in session.chats.values()]
        await asyncio.gather(*(runner.aclose(reason) for runner in runners), return_exceptions=True)

    def _count_changed(self) -> None:
        self._dispatch(ROOT_URI, root_active_sessions_changed(active_sessions=len(self._ports.index)))

    # -- resting and waking --------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Restore the list of sessions of an earlier run. Nothing is dispatched, and no state is read."""
        index, store = self._ports.index, self._ports.store
        if index.restore(store.channels()):
            return
        for uri in store.channels():  # A log of an ahpkit that kept no index.
            if self._ports.kinds.name_of(uri) == "session":
                self._index(uri)

    def _index(self, uri: str) -> None:
        state = self._state_of(uri) or {}
        self._ports.index.add_session(uri)
        self._ports.unsettled.look(uri, state)
        for summary in state["chats"]:
            if (chat := self._state_of(summary["resource"])) is not None:
                self._ports.index.add_chat(summary["resource"], uri)
                self._ports.unsettled.look(summary["resource"], chat)

    def recover(self) -> None:
        """Add `movable` to chats of older logs."""
        for uri in self._sessions:
            self._say_movable(uri)

    def resume(self) -> None:
        """Go on with what was under way in an earlier run. From here on sessions are prepared when they wake."""
        self._ports.index.kept()
        self._started = True
        for uri in self._ports.unsettled.uris():
            self._make_live(self._session_of(uri) or "")
        for uri in list(self._sessions):
            self._resume(uri)

    def _session_of(self, channel: str) -> str | None:
        session = channel.removesuffix("/annotations")
        return session if session in self._ports.index else self._ports.index.session_of(channel)

    def rests(self, channel: str) -> bool:
        """Whether a channel belongs to a session that is not live."""
        session = self._session_of(channel)
        return session is not None and session not in self._sessions

    def wake(self, channel: str) -> None:
        """Make the session of a channel live, if it rests. Features prepare it in the background."""
        session = self._session_of(channel)
        if session is None:
            return
        if self._make_live(session) and self._started:
            self._resume(session)
        self._use(session)

    def _use(self, uri: str) -> None:
        session = self._sessions[uri] = self._sessions.pop(uri)
        session.used = self._ports.monotonic()

    async def awake(self, channel: str) -> None:
        """Wake the session of a channel and wait until it is prepared, but not for long."""
        self.wake(channel)
        session = self._sessions.get(self._session_of(channel) or "")
        if session is not None and not session.ready.done():
            await asyncio.wait([session.ready], timeout=_WAKE_PATIENCE)

    def _make_live(self, uri: str) -> bool:
        """Make a session live; whether it was not before."""
        if uri in self._sessions or uri not in self._ports.index:
            return False
        self._ports.store.wake(uri)
        state = self._state_of(uri) or {}
        agent = self._ports.agents.of_session(state["provider"])
        self._sessions[uri] = _Session(agent, asyncio.get_running_loop().create_future())
        for summary in state["chats"]:
            if self._ports.index.session_of(summary["resource"]) == uri:
                self._ports.store.wake(summary["resource"])
                if summary.get("origin", {}).get("kind") != "tool":
                    self._add_runner(uri, summary["resource"])
        return True

    async def rest_when_unused(self) -> None:
        """Runs for ever: looks for unused sessions and lets them rest."""
        while True:
            await asyncio.sleep(min(self._ports.rest_after / 2, _LOOK_EVERY))
            self.rest_unused()

    def rest_unused(self) -> None:
        """Let sessions rest that nobody has used for long, or for the longest time when there are many. A few at once:
        the cost of a look is the same with any number of sessions."""
        now = self._ports.monotonic()
        for uri, session in list(itertools.islice(self._sessions.items(), _LOOK_AT)):
            if len(self._sessions) <= self._ports.max_idle and now - session.used < self._ports.rest_after:
                return
            if self._is_used(uri, session):
                self._use(uri)
            else:
                self._rest(uri, session)

    def _is_used(self, uri: str, session: _Session) -> bool:
        ports = self._ports
        chats = ports.index.chats(uri)
        if not session.ready.done() or not all(map(ports.store.durable, (uri, *chats))):
            return True
        if any(ports.clients.subscribers(channel) for channel in (uri, f"{uri}/annotations", *chats)):
            return True
        if any(channel in ports.unsettled for channel in (uri, *chats)):
            return True
        if not all(runner.can_rest for runner in session.chats.values()):
            return True
        return any(busy(uri) for busy in ports.registered.session_busy)

    def _rest(self, uri: str, session: _Session) -> None:
        del self._sessions[uri]
        for chat, runner in session.chats.items():
            self._ports.turns.rest_chat(chat)
            self._ports.tasks.spawn(runner.rest(), name=f"rest {chat}")
        self._tell(self._ports.registered.session_rested, uri)
        for channel in (uri, f"{uri}/annotations", *self._ports.index.chats(uri)):
            self._ports.store.rest(channel)

    def _resume(self, uri: str) -> None:
        """A half-created session is created again, others are prepared anew."""
        session = self._sessions[uri]
        state = self._state_of(uri) or {}
        if state["lifecycle"] == "creating":
            self._ports.tasks.spawn(self._finish_creating(uri, self._sessions[uri]), name=f"create {uri}")
        elif state["lifecycle"] == "failed":
            session.ready.set_exception(AgentError("The session was not created.", error_type="host"))
            session.ready.exception()
        else:
            self._ports.tasks.spawn(self._prepare_again(uri, session), name=f"prepare {uri}")

    async def _prepare_again(self, uri: str, session: _Session) -> None:
        for prepare in self._ports.registered.session_preparers:
            try:
                await prepare(uri)
            except Exception:  # The session wakes without this feature.
                _log.exception("a feature could not prepare %s again", uri)
        if not session.ready.done():
            session.ready.set_result(None)
        for runner in list(session.chats.values()):
            runner.take_next()


__all__ = ["SessionPorts", "Sessions"]
