"""Creates, forks, restores and disposes of sessions.

The channel of a new session exists at once, with lifecycle `creating`; `creation` does the rest in the background.

`SessionChannels` knows all sessions, `live_sessions` those that are live, `session_chats` the chats. The first state of
a session is computed in `creation` and `directories`. Forks of chats are in `chat_rules`.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import TypedDict

from ahpkit.dialects.generations import FORK, SELECTION, selection_of, unmarked
from ahpkit.dialects.states_up import is_remote, local_directory
from ahpkit.host.agent import Agent
from ahpkit.host.agents import Agents
from ahpkit.host.registration import SessionHooks
from ahpkit.host.sessions.agent_conversations import AgentConversations
from ahpkit.host.sessions.catalogue import SessionTimes
from ahpkit.host.sessions.chat_rules import check_chosen_model, check_idle, with_workers
from ahpkit.host.sessions.creation import Report, SessionCreation, initial_config
from ahpkit.host.sessions.directories import NewDirectories, directories_of_new
from ahpkit.host.sessions.live_sessions import LiveSession, LiveSessions
from ahpkit.host.sessions.session_chats import SessionChats
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.session_index import SessionIndex, Unsettled
from ahpkit.host.spine.store import Prepared, Store
from ahpkit.host.states import NO_CHAT, NO_SESSION, States
from ahpkit.host.turns.new_state import (
    DEFAULT_TITLE,
    NO_CONFIG,
    entry_of,
    kept_session,
    moved_title,
    new_chat,
    new_session,
    turns_until,
)
from ahpkit.protocol.channels import ROOT_URI, channel_of
from ahpkit.protocol.chat.commands import MoveChatParams, MoveChatResult
from ahpkit.protocol.chat.state import ChatOrigin, ChatState, Turn
from ahpkit.protocol.common.actions import StateAction
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
    session_default_chat_changed,
)
from ahpkit.protocol.session.commands import CreateSessionParams
from ahpkit.protocol.session.state import ProjectInfo, SessionState
from ahpkit.wire.tasks import Tasks


class SessionChannels:
    """The channels of all sessions of a host. A session has one for itself and one for its annotations."""

    def __init__(
        self,
        *,
        store: Store,
        kinds: ChannelKinds,
        index: SessionIndex,
        unsettled: Unsettled,
        times: SessionTimes,
        max_sessions: int,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._index = index
        self._unsettled = unsettled
        self._times = times
        self._max_sessions = max_sessions

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, uri: str) -> bool:
        return uri in self._index

    def check_new(self, uri: str) -> None:
        """Raise if no new session with this URI can be created."""
        if not self._kinds.may_be(uri, "session"):
            raise InvalidParams(f"channel: {uri[:200]!r} is not a session URI; use ahp-session:/<id>")
        if self._store.taken(uri):
            raise SessionAlreadyExists(f"the session {uri} exists already")
        if len(self._index) >= self._max_sessions:
            raise InvalidRequest(
                f"this host has {self._max_sessions} sessions, which is the limit; dispose of some first"
            )

    def open(self, uri: str, state: SessionState, *, created_at: int) -> None:
        """Begin a session. `created_at` is in milliseconds since the epoch."""
        self._times.created(uri, created_at)
        self._store.open(uri, state, kind="session")
        self._store.open(f"{uri}/annotations", {"annotations": []}, kind="annotations")
        self._index.add_session(uri)
        self._unsettled.note(uri, state)

    def close(self, uri: str) -> None:
        """End a session whose chats are closed already."""
        self._store.close(f"{uri}/annotations")
        self._store.close(uri)
        self._index.remove_session(uri)
        self._unsettled.forget(uri)
        self._times.forget(uri)

    def chats(self, uri: str) -> list[str]:
        """URIs of the chats of a session."""
        return list(self._index.chats(uri))

    def session_of(self, chat_uri: str) -> str | None:
        """The session that a chat belongs to."""
        return self._index.session_of(chat_uri)

    def restore(self) -> None:
        """Restore the list of sessions of an earlier run. Nothing is dispatched, and no state is read."""
        if self._index.restore(self._store.channels()):
            return
        for uri in self._store.channels():  # An older ahpkit wrote this log, without an index.
            if self._kinds.name_of(uri) == "session":
                self._add_to_index(uri)

    def _add_to_index(self, uri: str) -> None:
        state = self._store.session(uri) or NO_SESSION
        self._index.add_session(uri)
        self._unsettled.note(uri, state)
        for summary in state["chats"]:
            if (chat := self._store.chat(summary["resource"])) is not None:
                self._index.add_chat(summary["resource"], uri)
                self._unsettled.note(summary["resource"], chat)


Source = tuple[SessionState, ChatState, list[Turn]]
"""The source of a fork: the states of a session and of its chat, and the turns that the fork shows."""


class Fork(TypedDict):
    """The session and the turn that a new session continues."""

    session: str
    turnId: str


def fork_source(fork: Fork, states: States) -> Source:
    """The session, the chat and the turns that a new session continues; raises if one of them does not exist."""
    session = states.session(fork["session"])
    if session is None:
        raise SessionNotFound(f"there is no session {fork['session']} to fork")
    for summary in session["chats"]:
        chat = states.chat(summary["resource"])
        turns = turns_until(chat, fork["turnId"]) if chat else None
        if chat is not None and turns is not None:
            return session, chat, turns
    raise NotFound(f"fork.turnId: the session has no finished turn {fork['turnId']!r}")


def fork_of(params: CreateSessionParams) -> Fork | None:
    """The session and turn that a new session continues. Clients before 0.9 can ask for it."""
    meta = params.get("_meta") or {}
    return meta.get(FORK)


def taken_over(params: CreateSessionParams, source: SessionState, provider: str) -> CreateSessionParams:
    """The parameters of a fork: the source's directories, and its choices and settings if the agent is the same.

    Parameters that the client gives have priority.
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


_log = logging.getLogger(__name__)


class Sessions:
    """All sessions of a host."""

    def __init__(
        self,
        *,
        channels: SessionChannels,
        live: LiveSessions,
        chats: SessionChats,
        creation: SessionCreation,
        directories: NewDirectories,
        agents: Agents,
        conversations: AgentConversations,
        hooks: SessionHooks,
        states: States,
        dispatch: Callable[[str, StateAction], None],
        durable: Callable[[], Awaitable[None]],
        tasks: Tasks,
        new_id: Callable[[], str],
        now: Callable[[], int],
    ) -> None:
        self.live = live
        self.chats = chats
        self.directories = directories
        self._channels = channels
        self._creation = creation
        self._agents = agents
        self._conversations = conversations
        self._hooks = hooks
        self._states = states
        self._dispatch = dispatch
        self._durable = durable
        self._tasks = tasks
        self._new_id = new_id
        self._now = now

    # -- creating ------------------------------------------------------------------------------------------------

    async def create(self, params: CreateSessionParams, report: Report | None = None) -> None:
        """`createSession`: the channel exists when this returns; the rest happens in the background.

        `report` gets its progress.
        """
        uri = params["channel"]
        self._channels.check_new(uri)
        fork = fork_of(params)
        if fork is not None:
            await self.live.wake_gently(fork["session"])
        source = None if fork is None else fork_source(fork, self._states)
        agent = self._agent_for(params, source)
        check_chosen_model(selection_of(params).get("model"), agent.provider, self._states.root())
        self._agents.check_authenticated(agent)
        given = taken_over(params, source[0], agent.provider) if source is not None else params
        asked = directories_of_new(given, agent)
        directories = await self.directories.here(asked)
        directory = directories[0] if directories else None
        for further in directories[1:]:
            await self.directories.find(further)
        path = await self.directories.find(directory)
        settings = dict(given.get("config") or {})
        config = await initial_config(agent, path, settings, self._hooks.settings)
        directories = await self.directories.choose(uri, path, directories, config["values"])
        chat = self._default_chat(uri, source)
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
        async with self.chats.preparing(chat) as prepared:
            self._channels.check_new(uri)  # Checked again: another client may have created this session meanwhile.
            self._open_session(uri, agent, state, created_at=self._now())
            self._add_default_chat(uri, chat, prepared)
        if (active := params.get("activeClient")) is not None:
            self._dispatch(uri, session_active_client_set(active_client=active))
        self._count_changed()
        self.finish(uri, report)

    def _agent_for(self, params: CreateSessionParams, source: Source | None) -> Agent:
        default = source[0]["provider"] if source else None
        return self._agents.find(params.get("provider") or default)

    def _open_session(self, uri: str, agent: Agent, state: SessionState, *, created_at: int) -> None:
        self._channels.open(uri, state, created_at=created_at)
        self.live.add(uri, agent)

    def finish(self, uri: str, report: Report | None = None) -> None:
        """Finish the creation of a session in the background: it becomes ready, or fails."""
        self._tasks.spawn(self._creation.finish(uri, self.live[uri], report), name=f"create {uri}")

    def _default_chat(self, uri: str, source: Source | None) -> ChatState:
        chat_uri, now = self._default_chat_uri(uri), self._now()
        if source is None:
            return new_chat(chat_uri, title=DEFAULT_TITLE, now=now)
        session, chat, turns = source
        origin: ChatOrigin = {"kind": "fork", "chat": chat["resource"], "turnId": turns[-1]["id"]}
        selection, title = selection_of(chat), session["title"]
        return new_chat(chat_uri, title=title, now=now, origin=origin, turns=turns, selection=selection)

    def _add_default_chat(self, uri: str, chat: ChatState, prepared: Prepared | None = None) -> None:
        self.chats.open(uri, chat, prepared)
        self._dispatch(uri, session_default_chat_changed(default_chat=chat["resource"]))

    def _default_chat_uri(self, session_uri: str) -> str:
        """The URI of a new session's default chat. If the session's URI has VS Code's form, so has that of the chat,
        because VS Code expects this."""
        if channel_of(session_uri) is not None:
            return f"ahp-chat:/{self._new_id()}"
        return f"ahp-chat://default/{urlsafe_b64encode(session_uri.encode()).decode().rstrip('=')}"

    async def import_session(
        self, provider: str, title: str, chats: Iterable[tuple[str, list[Turn]]]
    ) -> tuple[str, str]:
        """Make a new session with the content of an exported one: the title and the turns of each chat. Returns its URI
        and the provider of its agent."""
        uri = f"ahp-session:/{self._new_id()}"
        agent = self._agents.find(provider if self._agents.has(provider) else None)
        state = new_session(provider=agent.provider, directories=None, project=None, config=NO_CONFIG)
        state["title"] = title
        made = [
            new_chat(f"ahp-chat:/{self._new_id()}", title=title, now=self._now(), turns=turns) for title, turns in chats
        ]
        async with AsyncExitStack() as stack:
            prepared = [await stack.enter_async_context(self.chats.preparing(chat)) for chat in made]
            self._channels.check_new(uri)
            self._open_session(uri, agent, state, created_at=self._now())
            for chat, stored in zip(made, prepared, strict=True):
                self.chats.open(uri, chat, stored)
        if not made:
            self._add_default_chat(uri, self._default_chat(uri, None))
        self._count_changed()
        self.finish(uri)
        return uri, agent.provider

    async def adopt(self, uri: str) -> bool:
        """Make a session of a conversation that an agent keeps, and wait until it is stored; False if there is no such
        conversation.

        The chat is added when the agent has sent the history.
        """
        if not self._conversations.to_recall(uri):
            listed = self._conversations.find(uri)
            if listed is None:
                return False
            self._conversations.adopted(listed)
            state = kept_session(listed.agent.provider, listed.kept)
            self._open_session(uri, listed.agent, state, created_at=listed.kept.modified_at or 0)
            self._count_changed()
            self.finish(uri)
        await self._durable()  # Only what is stored can be shown.
        return True

    # -- chats ---------------------------------------------------------------------------------------------------

    async def move_chat(self, params: MoveChatParams) -> MoveChatResult:
        """`moveChat`: move a chat to another place in its session, to another session, or to a new session."""
        uri, destination = params["channel"], params["destination"]
        source = self._channels.session_of(uri)
        if source is None:
            raise NotFound(f"there is no chat {uri}")
        if not (self._states.chat(uri) or NO_CHAT).get("movable"):
            raise InvalidParams("channel: this chat cannot be moved")
        if (kind := destination["kind"]) not in ("newSession", "session"):  # A kind of later versions.
            raise InvalidParams(f"destination.kind: {str(kind)[:100]!r} is neither session nor newSession")
        if destination["kind"] == "newSession":
            self._check_one_stays(uri, source)
            return {"session": await self._move_to_new(uri, source)}
        if destination["session"] == source:
            self.chats.reorder(source, uri, destination.get("after"))
        else:
            self._check_one_stays(uri, source)
            await self.chats.move(uri, source, destination["session"], destination.get("after"))
        return {"session": destination["session"]}

    def _check_one_stays(self, uri: str, source: str) -> None:
        here = self._states.session(source) or NO_SESSION
        if len(with_workers(uri, here)) == len(here["chats"]):
            raise InvalidParams("channel: the last chat of a session cannot be moved away; a session keeps one")

    async def _move_to_new(self, uri: str, source: str) -> str:
        here, chat = self._states.session(source) or NO_SESSION, self._states.chat(uri) or NO_CHAT
        moving = with_workers(uri, here)
        check_idle(moving, self._states)
        target = f"ahp-session:/{self._new_id()}"
        self._channels.check_new(target)
        agent = self.live[source].agent
        state = new_session(
            provider=agent.provider,
            directories=here.get("workingDirectories"),
            project=here.get("project"),
            config=here.get("config", NO_CONFIG),
        )
        state["title"] = moved_title((entry_of(uri, here) or chat)["title"])
        self._open_session(target, agent, state, created_at=self._now())
        runners = self.chats.take_along(moving, source, target)
        self._dispatch(target, session_default_chat_changed(default_chat=uri))
        self._count_changed()
        await self.chats.tell_moved(runners, target)
        self.finish(target)
        return target

    # -- ending --------------------------------------------------------------------------------------------------

    async def dispose(self, uri: str) -> None:
        """`disposeSession`: remove a session with its chats, and everything that agents and features hold for it."""
        async with self.live.reading(uri):
            session = self._remove(uri)
        if session is not None:
            await session.dispose()

    def _remove(self, uri: str) -> LiveSession | None:
        if uri not in self._channels:
            if self._conversations.dismiss(uri):
                return None
            raise SessionNotFound(f"there is no session {uri}")
        self.live.make_live(uri)
        session = self.live[uri]
        self._conversations.disposed(uri, session.agent.provider)
        self._hooks.disposed.tell(uri)
        for chat in self._channels.chats(uri):
            self.chats.close(chat, session.chats.get(chat))
        self._channels.close(uri)
        self.live.remove(uri)
        self._count_changed()
        return session

    async def aclose(self) -> None:
        """The host stops: running turns end with an error that says so."""
        reason = "The host was stopped while this turn was running."
        await asyncio.gather(*(runner.aclose(reason) for runner in self.live.runners()), return_exceptions=True)

    def _count_changed(self) -> None:
        self._dispatch(ROOT_URI, root_active_sessions_changed(active_sessions=len(self._channels)))

    # -- after a restart -----------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Add `movable` to chats of older logs."""
        for uri in [*self.live]:  # A copy: each action moves its session to the end of the table.
            self.chats.say_movable(uri)


__all__ = ["Fork", "SessionChannels", "Sessions", "Source", "fork_of", "fork_source", "taken_over"]
