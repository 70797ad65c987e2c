"""Opens, moves and disposes of the chats of sessions. The pure rules for this are in `chat_rules`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from ahpkit.dialects.generations import Selection, selection_of
from ahpkit.host.policy import check_agent
from ahpkit.host.registration import SessionApplied, SessionHooks
from ahpkit.host.sessions.agent_conversations import AgentConversations
from ahpkit.host.sessions.chat_rules import (
    ChatBeginning,
    beginning,
    check_anchor,
    check_chosen_model,
    check_directories,
    check_idle,
    is_movable,
    placed,
    with_workers,
)
from ahpkit.host.sessions.live_sessions import LiveSessions
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.session_index import SessionIndex, Unsettled
from ahpkit.host.spine.store import Prepared, Store
from ahpkit.host.states import NO_CHAT, NO_SESSION
from ahpkit.host.turns.attached_chats import check_attached
from ahpkit.host.turns.new_state import chat_entry, entry_of, new_chat
from ahpkit.host.turns.runner import ChatRunner
from ahpkit.host.turns.turns import Turns
from ahpkit.protocol.chat.actions import chat_movable_changed, chat_turn_started
from ahpkit.protocol.chat.commands import CreateChatParams
from ahpkit.protocol.chat.state import ChatState
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.errors import AlreadyExists, InvalidParams, InvalidRequest, NotFound, SessionNotFound
from ahpkit.protocol.session.actions import (
    session_chat_added,
    session_chat_removed,
    session_chats_reordered,
    session_default_chat_changed,
)


class SessionChats:
    """The chats of all sessions of a host."""

    def __init__(
        self,
        live: LiveSessions,
        *,
        store: Store,
        kinds: ChannelKinds,
        dispatch: Callable[[str, StateAction], None],
        index: SessionIndex,
        unsettled: Unsettled,
        conversations: AgentConversations,
        hooks: SessionHooks,
        turns: Turns,
        max_chats: int,
        new_id: Callable[[], str],
        now: Callable[[], int],
    ) -> None:
        self._live = live
        self._states = store
        self._kinds = kinds
        self._dispatch = dispatch
        self._index = index
        self._unsettled = unsettled
        self._conversations = conversations
        self._hooks = hooks
        self._turns = turns
        self._max_chats = max_chats
        self._new_id = new_id
        self._now = now

    async def create(self, params: CreateChatParams) -> None:
        """`createChat`: make a further chat of a session. It may be empty or a fork, and may get its first message."""
        uri, session_uri = params["chat"], params["channel"]
        if not self._kinds.may_be(uri, "chat"):
            raise InvalidParams(f"chat: {uri[:200]!r} is not a chat URI; use ahp-chat:/<id>")
        if session_uri not in self._index:
            raise SessionNotFound(f"there is no session {session_uri}")
        self._live.wake(session_uri)
        self._check_new(uri, session_uri)
        self._check_choices(params)
        begins = beginning(
            params.get("source"),
            chat=uri,
            session=self._states.session(session_uri) or NO_SESSION,
            agent=self._live[session_uri].agent,
            states=self._states,
        )
        state = self._first_state(params, begins)
        async with self.preparing(state) as prepared:
            self._check_room(session_uri)  # Checked again: meanwhile the session may be gone or full.
            runner = self.open(session_uri, state, prepared)
        if begins.background is not None:
            runner.chat.keep_background(begins.background)
        if (message := params.get("initialMessage")) is not None:
            now = iso_time(self._now())
            self._dispatch(uri, chat_turn_started(turn_id=self._new_id(), started_at=now, message=message))

    def _check_choices(self, params: CreateChatParams) -> None:
        """Raise if the client's choices for a new chat (model, custom agent, first message) are not possible."""
        session_uri, selection = params["channel"], selection_of(params)
        check_chosen_model(selection.get("model"), self._live[session_uri].agent.provider, self._states.root())
        chosen = selection.get("agent")
        if chosen is not None and (reason := check_agent(self._states.session(session_uri), chosen["uri"])):
            raise InvalidParams(f"agent: {reason}")
        message = params.get("initialMessage")
        if message is not None and (reason := check_attached(message, self._states)) is not None:
            raise InvalidParams(f"initialMessage.{reason}")

    def _first_state(self, params: CreateChatParams, begins: ChatBeginning) -> ChatState:
        """The state of a new chat. If no choices are given, it takes over those of the chat that it continues."""
        directories = params.get("workingDirectories", begins.directories)
        self._check_subset(params["channel"], directories or ())
        continued = None if begins.origin is None or begins.origin["kind"] == "user" else begins.origin["chat"]
        selection: Selection = {**selection_of(self._states.chat(continued)), **selection_of(params)}
        return new_chat(
            params["chat"],
            title=begins.title,
            now=self._now(),
            origin=begins.origin,
            turns=begins.turns,
            selection=selection,
            directories=directories,
            movable=True,
        )

    def _check_new(self, uri: str, session_uri: str) -> None:
        self._check_room(session_uri)
        if self._states.taken(uri):
            raise AlreadyExists(f"the chat {uri} exists already")

    def _check_room(self, session_uri: str) -> None:
        if session_uri not in self._live:
            raise SessionNotFound(f"there is no session {session_uri}")
        if len(self._live[session_uri].chats) >= self._max_chats:
            raise InvalidRequest(f"a session may have {self._max_chats} chats; dispose of some first")

    def _check_subset(self, session_uri: str, directories: Sequence[str]) -> None:
        """Raise if a directory of a chat is not a directory of its session."""
        known = (self._states.session(session_uri) or NO_SESSION).get("workingDirectories", ())
        if outside := next((each for each in directories if each not in known), None):
            raise InvalidParams(f"workingDirectories: {outside} is not a directory of the session")

    def preparing(self, state: ChatState) -> AbstractAsyncContextManager[Prepared | None]:
        """Store the first state of a new chat before the chat is opened."""
        return self._states.preparing(state["resource"], state)

    def open(self, session_uri: str, state: ChatState, prepared: Prepared | None = None) -> ChatRunner:
        """Open a new chat with this state. `prepared` is the result of `preparing`."""
        uri = state["resource"]
        self._states.open(uri, state, kind="chat", prepared=prepared)
        runner = self._live.add_runner(session_uri, uri)
        self._dispatch(session_uri, session_chat_added(summary=chat_entry(state)))
        return runner

    # -- moving ----------------------------------------------------------------------------------------------------

    def reorder(self, session_uri: str, chat: str, after: str | None) -> None:
        """Move a chat to the place after another chat of its session, or to the first place."""
        session = self._states.session(session_uri) or NO_SESSION
        check_anchor(after, chat, session)
        self._put_after(session_uri, [chat], after)

    def _put_after(self, session_uri: str, chats: Sequence[str], after: str | None) -> None:
        order = [entry["resource"] for entry in (self._states.session(session_uri) or NO_SESSION)["chats"]]
        self._dispatch(session_uri, session_chats_reordered(chats=placed(order, chats, after)))

    async def move(self, uri: str, source: str, target: str, after: str | None) -> None:
        """Move a chat to another session of the same agent."""
        await self._live.wake_gently(target)
        self._live.wake(target)
        there, chat = self._states.session(target), self._states.chat(uri) or NO_CHAT
        if target not in self._live or there is None:
            raise NotFound(f"destination.session: there is no session {target}")
        if self._live[target].agent is not self._live[source].agent or there["lifecycle"] == "failed":
            raise InvalidParams(f"destination.session: {target} cannot take this chat; it needs a session of its agent")
        check_anchor(after, uri, there)
        check_directories(chat, there)
        moving = with_workers(uri, self._states.session(source) or NO_SESSION)
        check_idle(moving, self._states)
        if len(self._live[target].chats) + len(moving) > self._max_chats:
            raise InvalidRequest(f"a session may have {self._max_chats} chats; dispose of some first")
        runners = self.take_along(moving, source, target)
        self._put_after(target, moving, after)
        await self.tell_moved(runners, target)

    def take_along(self, chats: Sequence[str], source: str, target: str) -> list[ChatRunner]:
        """Move chats from one session to another in one step. The channels of the chats do not change."""
        before = self._states.session(source) or NO_SESSION
        for uri in chats:
            self._dispatch(source, session_chat_removed(chat=uri))
        for uri in chats:
            self._index.remove_chat(uri)
            self._index.add_chat(uri, target)
            if (runner := self._live[source].chats.pop(uri, None)) is not None:
                self._live[target].chats[uri] = runner
            entry = chat_entry(self._states.chat(uri) or NO_CHAT, entry_of(uri, before))
            self._dispatch(target, session_chat_added(summary=entry))
            self._hooks.chat_moved.tell(uri, target)
        return [runner for uri in chats if (runner := self._live[target].chats.get(uri)) is not None]

    async def tell_moved(self, runners: Sequence[ChatRunner], target: str) -> None:
        """Tell the agents of moved chats their new session."""
        session = self._live[target]
        for runner in runners:
            await runner.move(target, lambda: asyncio.shield(session.ready))

    def on_applied(self, applied: SessionApplied) -> None:
        """The default chat changed: update which chats can be moved."""
        if applied.action["type"] == "session/defaultChatChanged":
            self.say_movable(applied.channel)

    def say_movable(self, session_uri: str) -> None:
        """Update `movable` of the session's chats, where it changed."""
        session = self._states.session(session_uri) or NO_SESSION
        for entry in session["chats"]:
            chat = self._states.chat(entry["resource"])
            if chat is not None and chat.get("movable", False) != is_movable(chat, session):
                self._dispatch(chat["resource"], chat_movable_changed(movable=is_movable(chat, session)))

    async def dispose(self, uri: str) -> None:
        """`disposeChat`: a session keeps at least one chat."""
        session_uri = self._index.session_of(uri)
        if session_uri is None:
            raise NotFound(f"there is no chat {uri}")
        self._live.wake(session_uri)
        session = self._live[session_uri]
        if list(session.chats) == [uri]:
            raise InvalidParams("channel: the last chat of a session cannot be disposed; dispose the session instead")
        if (self._states.session(session_uri) or NO_SESSION).get("defaultChat") == uri:
            self._dispatch(session_uri, session_default_chat_changed())
        self._dispatch(session_uri, session_chat_removed(chat=uri))
        runner = session.chats.pop(uri, None)
        if runner is not None:
            runner.chat.clear_meta()
        self.close(uri, runner)
        if runner is not None:
            await runner.dispose()

    def close(self, uri: str, runner: ChatRunner | None) -> None:
        """Close a chat, and drop everything that is held for it."""
        self._turns.remove_chat(uri)
        if runner is not None:
            if runner.turn is not None:
                runner.turn.end()
            if runner.chat.memory:
                self._conversations.hide(runner.agent.provider, runner.chat.memory)
            runner.chat.forget()
        self._unsettled.forget(uri)
        self._states.close(uri)
        self._hooks.chat_disposed.tell(uri)


__all__ = ["SessionChats"]
