"""Keeps what a session says about its chats in step with the chats.

Whenever a chat changes a field its summary repeats, `session/chatUpdated` follows.
"""

from __future__ import annotations

from collections.abc import Callable

from ahpkit.host.feature import Applied
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.host.turns.chat import LiveChat
from ahpkit.protocol.channels import channel_of
from ahpkit.protocol.common.state import JsonObject
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
        dispatch: Callable[[str, JsonObject], None],
    ) -> None:
        self._index = index
        self._state_of = state_of
        self._dispatch = dispatch

    def heard(self, applied: Applied) -> None:
        if applied.before is applied.after or applied.action["type"] in _NEVER_IN_SUMMARY:
            return
        if (channel := channel_of(applied.channel)) is not None and channel.name == "chat":
            self._chat_changed(applied)

    def _chat_changed(self, applied: Applied) -> None:
        session_uri = self._index.session_of(applied.channel)
        if session_uri is not None and applied.action["type"] in _NEWS:
            self._unread(session_uri)
        changes = diff_chat_summary(applied.before, applied.after)
        if session_uri is not None and changes:
            action = {"type": "session/chatUpdated", "chat": applied.channel, "changes": changes}
            self._dispatch(session_uri, action)

    def _unread(self, session_uri: str) -> None:
        """There is something nobody has looked at yet."""
        session = self._state_of(session_uri)
        if session is not None and session["summary"]["status"] & SessionStatus.IsRead:
            self._dispatch(session_uri, {"type": "session/isReadChanged", "isRead": False})

    def activity(self, chat: LiveChat, text: str | None) -> None:
        """What a chat is doing now: on its entry, and on the session when it is the default chat."""
        entry = next((c for c in chat.session.get("chats", ()) if c["resource"] == chat.uri), None)
        if entry is None or entry.get("activity", "") == (text or ""):
            return
        changes = {"type": "session/chatUpdated", "chat": chat.uri, "changes": {"activity": text or ""}}
        self._dispatch(chat.session_uri, changes)
        if chat.session.get("defaultChat") == chat.uri:
            action = {"type": "session/activityChanged"} | ({"activity": text} if text else {})
            self._dispatch(chat.session_uri, action)


__all__ = ["ChatSummaries"]
