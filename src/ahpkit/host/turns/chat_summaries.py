"""Keeps what a session says about its chats in step with the chats.

Whenever a chat changes a field its summary repeats, `session/chatUpdated` follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ahpkit.host.feature import Applied
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.host.turns.chat import LiveChat
from ahpkit.protocol.chat.constructors import chat_activity_changed
from ahpkit.protocol.chat.state import PartialChatSummary
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.constructors import (
    session_activity_changed,
    session_chat_updated,
    session_is_read_changed,
)
from ahpkit.protocol.session.state import SessionStatus
from ahpkit.protocol.session.summary import diff_chat_summary

_NEVER_IN_SUMMARY = frozenset({"chat/delta", "chat/reasoning", "chat/toolCallDelta"})
"""Streamed text: by far the most frequent actions, and none of them touches a summary."""

_NEWS = frozenset({"chat/turnComplete", "chat/error", "chat/toolCallReady", "chat/inputRequested"})
"""What a person will want to look at: an answer, a failure, a question."""


class ChatSummaries:
    """Listens to what is applied."""

    def __init__(
        self,
        index: SessionIndex,
        state_of: Callable[[str], JsonObject | None],
        dispatch: Callable[[str, StateAction], None],
    ) -> None:
        self._index = index
        self._state_of = state_of
        self._dispatch = dispatch

    def heard(self, applied: Applied) -> None:
        if applied.before is applied.after or applied.action["type"] in _NEVER_IN_SUMMARY:
            return
        if self._index.session_of(applied.channel) is not None:
            self._chat_changed(applied)

    def _chat_changed(self, applied: Applied) -> None:
        session_uri = self._index.session_of(applied.channel)
        if session_uri is not None and applied.action["type"] in _NEWS:
            self._unread(session_uri)
        changes = diff_chat_summary(applied.before, applied.after)
        if session_uri is not None and changes:
            self._dispatch(session_uri, _updated(applied.channel, changes))

    def _unread(self, session_uri: str) -> None:
        """There is something nobody has looked at yet."""
        session = self._state_of(session_uri)
        if session is not None and session["status"] & SessionStatus.IsRead:
            self._dispatch(session_uri, session_is_read_changed(is_read=False))

    def activity(self, chat: LiveChat, text: str | None) -> None:
        """What a chat is doing now: on the chat, and on the session when it is the default chat."""
        if not chat.state or chat.state.get("activity", "") == (text or ""):
            return
        self._dispatch(chat.uri, chat_activity_changed(activity=text or None))
        if chat.session.get("defaultChat") == chat.uri:
            self._dispatch(chat.session_uri, session_activity_changed(activity=text or None))

    def nothing_runs(self, session_uri: str) -> None:
        """After a start no chat is doing anything, whatever was said before."""
        for uri in self._index.chats(session_uri):
            if (self._state_of(uri) or {}).get("activity"):
                self._dispatch(uri, chat_activity_changed(activity=None))
        if (self._state_of(session_uri) or {}).get("activity"):
            self._dispatch(session_uri, session_activity_changed(activity=None))


def _updated(chat: str, changes: JsonObject) -> StateAction:
    return session_chat_updated(chat=chat, changes=cast("PartialChatSummary", changes))


__all__ = ["ChatSummaries"]
