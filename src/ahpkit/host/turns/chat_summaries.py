"""Updates two lists of a session when its chats change: its chats, and the requests that wait for a person or client
(`inputNeeded`).

When a field changes that the chat's summary repeats, `session/chatUpdated` is dispatched. When the chat loses such a
field, `session/chatAdded` replaces the whole entry, because a partial update cannot remove a field.

The only chat of a session has the session's title. When the session gets another title, the chat's entry is updated in
the same commit, once, even if the title changed several times. A session has the activity of the chat from which it has
its status. When that changes, `session/activityChanged` is dispatched.

After each action of a chat, the entries of that chat are compared with what waits in its state: questions, calls that
need an approval or a token, calls that a client runs. Entries of a chat are removed with the chat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from ahpkit.host.registration import AnyApplied, SessionApplied
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.host.states import NO_CHAT, NO_SESSION, States
from ahpkit.host.turns.chat import LiveChat
from ahpkit.host.turns.new_state import chat_entry, entry_of
from ahpkit.protocol.chat.actions import chat_activity_changed
from ahpkit.protocol.chat.state import ChatState, PartialChatSummary, ToolCallState
from ahpkit.protocol.chat.turns import STREAMED_TEXT, find_tool_call, waits_for_person
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.session.actions import (
    SessionAction,
    session_activity_changed,
    session_chat_added,
    session_chat_updated,
    session_input_needed_removed,
    session_input_needed_set,
    session_is_read_changed,
)
from ahpkit.protocol.session.state import SessionInputRequest, SessionStatus
from ahpkit.protocol.session.summary import activity_of, changed_fields, chat_summary, has_lost, only_chat

_NEVER = STREAMED_TEXT | {"chat/usage", "chat/draftChanged"}
"""The most frequent actions. They do not change the requests that wait."""


class InputNeeded:
    """Keeps `inputNeeded` of all sessions up to date."""

    def __init__(
        self,
        index: SessionIndex,
        unsettled: Callable[[], Sequence[str]],
        states: States,
        dispatch: Callable[[str, SessionAction], None],
    ) -> None:
        self._index = index
        self._unsettled = unsettled
        self._states = states
        self._dispatch = dispatch

    def on_applied(self, applied: AnyApplied) -> None:
        action = applied.action
        kind = action["type"]
        if action["type"] == "session/chatRemoved":
            self._bring_in_step(applied.channel, action["chat"], NO_CHAT)
        elif applied.before is not applied.after and kind not in _NEVER:
            session = self._index.session_of(applied.channel)
            if session is not None:
                call_id = action.get("toolCallId") if kind.startswith("chat/toolCall") else None
                self._bring_in_step(session, applied.channel, cast("ChatState", applied.after), call_id)

    def recover(self) -> None:
        """Clear the lists after a restart: no turn runs, so no request waits."""
        for session in self._unsettled():
            for entry in self._listed(session):
                self._dispatch(session, session_input_needed_removed(id=entry["id"]))

    def _bring_in_step(self, session: str, chat_uri: str, chat: ChatState, call_id: str | None = None) -> None:
        """Update the entries of a chat; with `call_id` only those of that call."""
        listed = self._listed(session)
        waiting = list(_waiting(chat_uri, chat) if call_id is None else _waiting_in_call(chat_uri, chat, call_id))
        if not listed and not waiting:
            return
        before = {entry["id"]: entry for entry in listed if entry["chat"] == chat_uri}
        if call_id is not None:
            id = f"{chat_uri}#{call_id}"
            before = {id: before[id]} if id in before else {}
        now = {entry["id"]: entry for entry in waiting}
        for id in before.keys() - now.keys():
            self._dispatch(session, session_input_needed_removed(id=id))
        for id, entry in now.items():
            if before.get(id) != entry:
                self._dispatch(session, session_input_needed_set(request=entry))

    def _listed(self, session: str) -> Sequence[SessionInputRequest]:
        return (self._states.session(session) or NO_SESSION).get("inputNeeded") or ()


def _waiting(chat_uri: str, chat: ChatState) -> Iterator[SessionInputRequest]:
    """The requests that wait in a chat, as entries for `inputNeeded`."""
    turn = chat.get("activeTurn")
    for part in turn["responseParts"] if turn else ():
        if part["kind"] == "inputRequest" and part.get("response") is None:
            request = part["request"]
            yield {"id": f"{chat_uri}#{request['id']}", "chat": chat_uri, "kind": "chatInput", "request": request}
        elif part["kind"] == "toolCall" and turn:
            yield from _waiting_call(chat_uri, turn["id"], part["toolCall"])


def _waiting_in_call(chat_uri: str, chat: ChatState, call_id: str) -> Iterator[SessionInputRequest]:
    turn = chat.get("activeTurn")
    call = find_tool_call(turn, call_id)
    if turn is not None and call is not None:
        yield from _waiting_call(chat_uri, turn["id"], call)


def _waiting_call(chat_uri: str, turn_id: str, call: ToolCallState) -> Iterator[SessionInputRequest]:
    id = f"{chat_uri}#{call['toolCallId']}"
    contributor = call.get("contributor")
    if call["status"] == "pending-confirmation" or call["status"] == "pending-result-confirmation":
        if waits_for_person(call):
            yield {"id": id, "chat": chat_uri, "kind": "toolConfirmation", "turnId": turn_id, "toolCall": call}
    elif call["status"] == "auth-required":
        yield {"id": id, "chat": chat_uri, "kind": "toolAuthentication", "turnId": turn_id, "toolCall": call}
    elif call["status"] == "running" and contributor is not None and contributor["kind"] == "client":
        client_id = contributor["clientId"]
        yield {
            "id": id,
            "chat": chat_uri,
            "kind": "toolClientExecution",
            "turnId": turn_id,
            "clientId": client_id,
            "toolCall": call,
        }


_NEWS = frozenset({"chat/turnComplete", "chat/error", "chat/toolCallReady", "chat/inputRequested"})
"""Actions that mark a session as unread: an answer, a failure, a question."""


class ChatSummaries:
    """Keeps the list of chats, the activity and the title of all sessions up to date."""

    def __init__(
        self,
        index: SessionIndex,
        states: States,
        dispatch: Callable[[str, StateAction], None],
        before_storing: Callable[[Callable[[], None]], None],
    ) -> None:
        self._index = index
        self._states = states
        self._dispatch = dispatch
        self._before_storing = before_storing
        self._renamed: set[str] = set()
        """Sessions that got a title. Their only chat may not have it yet."""

    def chat_changed(self, applied: AnyApplied) -> None:
        """A chat changed: update its entry in the session."""
        if applied.before is applied.after or applied.action["type"] in STREAMED_TEXT:
            return
        session_uri = self._index.session_of(applied.channel)
        if session_uri is None:
            return
        if applied.action["type"] in _NEWS:
            self._unread(session_uri)
        before, after = chat_summary(applied.before), chat_summary(applied.after)
        session = self._states.session(session_uri)
        if session is None or before == after:
            return
        if has_lost(before, after):
            entry = chat_entry(cast("ChatState", applied.after), entry_of(applied.channel, session))
            self._dispatch(session_uri, session_chat_added(summary=entry))
        else:
            self._dispatch(
                session_uri, _updated(applied.channel, cast("PartialChatSummary", changed_fields(before, after)))
            )

    def named(self, applied: AnyApplied) -> None:
        """A session got a title, or lost a chat."""
        if applied.before is not applied.after:
            self.renamed(applied.channel)

    def not_stored(self, channel: str) -> None:
        """An action of a channel could not be stored and was undone: make its entry match the state again."""
        session_uri = self._index.session_of(channel)
        session, chat = self._states.session(session_uri), self._states.chat(channel)
        if channel in self._index:
            self.renamed(channel)
        elif session_uri is not None and session is not None and chat is not None:
            known = entry_of(channel, session)
            if known is not None and (entry := chat_entry(chat, known)) != known:
                self._dispatch(session_uri, session_chat_added(summary=entry))

    def renamed(self, session_uri: str) -> None:
        """A session has another title, or only one chat is left: that chat gets the title in the same commit."""
        if not self._renamed:
            self._before_storing(self._retitle)
        self._renamed.add(session_uri)

    def _retitle(self) -> None:
        renamed, self._renamed = self._renamed, set()
        for uri in renamed:
            session = self._states.session(uri)
            chat = None if session is None else only_chat(session)
            if session is not None and chat is not None and chat["title"] != session["title"]:
                self._dispatch(uri, _updated(chat["resource"], {"title": session["title"]}))

    def chat_added(self, applied: SessionApplied) -> None:
        """When a session gets a second chat, the first one keeps the title that was shown so far."""
        if applied.before is applied.after:
            return
        chat = only_chat(applied.before)
        if chat is not None and chat["title"] != applied.before["title"]:
            self._dispatch(applied.channel, _updated(chat["resource"], {"title": applied.before["title"]}))

    def _unread(self, session_uri: str) -> None:
        """Mark the session as unread."""
        session = self._states.session(session_uri)
        if session is not None and session["status"] & SessionStatus.IsRead:
            self._dispatch(session_uri, session_is_read_changed(is_read=False))

    def activity(self, chat: LiveChat, text: str | None) -> None:
        """Show the present activity of a chat."""
        if self._states.chat(chat.uri) is not None and chat.state.get("activity", "") != (text or ""):
            self._dispatch(chat.uri, chat_activity_changed(activity=text or None))

    def chats_changed(self, applied: AnyApplied) -> None:
        """The list of chats changed: the session may now have its status and activity from another chat."""
        session = self._states.session(applied.channel)
        if session is None or applied.before is applied.after:
            return
        if session.get("activity") != (now := activity_of(session)):
            self._dispatch(applied.channel, session_activity_changed(activity=now))

    def nothing_runs(self, uri: str) -> None:
        """Clear the activity of a chat or session after a start, because no turn runs yet."""
        if (self._states.state(uri) or {}).get("activity"):
            is_chat = self._index.session_of(uri) is not None
            quiet = chat_activity_changed(activity=None) if is_chat else session_activity_changed(activity=None)
            self._dispatch(uri, quiet)


def _updated(chat: str, changes: PartialChatSummary) -> StateAction:
    return session_chat_updated(chat=chat, changes=changes)


__all__ = ["ChatSummaries", "InputNeeded"]
