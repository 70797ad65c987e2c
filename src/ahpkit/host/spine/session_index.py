"""Indexes sessions and their chats, the channels in which something is under way, and the selections that wait for a
turn. The index is durable, so that the host need not read the states of all sessions when it starts. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ahpkit.dialects.base import SentAction
from ahpkit.dialects.generations import CHANGED, selected, selection_of
from ahpkit.host.feature import Values
from ahpkit.host.registration import AnyApplied
from ahpkit.host.spine.store import Origin
from ahpkit.host.states import NO_CHAT, States
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.chat import tool_calls
from ahpkit.protocol.chat.turns import STREAMED_TEXT
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.session.state import SessionState

_SESSION: Final = "session-known/"
"""Prefix of the durable value that marks a URI as a session."""
_CHAT: Final = "chat-session/"
"""Prefix of the durable value with a chat's session."""
_COMPLETE: Final = "index-kept/1"
"""The durable value that marks a log as complete: it has the two values above, and those of `Unsettled`, for all its
sessions."""
_UNSETTLED: Final = "unsettled/"
"""Prefix of the durable value that marks a channel in which something is under way."""


class SessionIndex:
    """Sessions by URI, each with its chats."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._chats: dict[str, dict[str, None]] = {}
        self._session_of: dict[str, str] = {}

    def restore(self, channels: Iterable[str]) -> bool:
        """Restore the sessions of an earlier run, in the order of their channels; False if they were not stored."""
        if self._values.get(_COMPLETE) is None:
            return False
        sessions, session_of = self._values.keys(_SESSION), dict(self._values.items(_CHAT))
        chats: list[tuple[str, str]] = []
        for uri in channels:
            if _SESSION + uri in sessions:
                self._chats[uri] = {}
            elif (session := session_of.get(_CHAT + uri)) is not None:
                chats.append((uri, session))
        for uri, session in chats:
            if session in self._chats:
                self._chats[session][uri] = None
                self._session_of[uri] = session
        return True

    def mark_complete(self) -> None:
        """Note that this log has a complete index."""
        if self._values.get(_COMPLETE) is None:
            self._values.set(_COMPLETE, True)

    def sessions(self) -> list[str]:
        return list(self._chats)

    def __contains__(self, session_uri: str) -> bool:
        return session_uri in self._chats

    def __len__(self) -> int:
        return len(self._chats)

    def session_of(self, chat_uri: str) -> str | None:
        return self._session_of.get(chat_uri)

    def has_channel(self, uri: str) -> bool:
        """Whether a channel is a session, its annotations, or one of its chats."""
        return uri in self._session_of or uri.removesuffix("/annotations") in self._chats

    def chats(self, session_uri: str) -> list[str]:
        return list(self._chats.get(session_uri, ()))

    def add_session(self, uri: str) -> None:
        if uri not in self._chats:
            self._chats[uri] = {}
            self._values.set(_SESSION + uri, True)

    def remove_session(self, uri: str) -> None:
        for chat in self.chats(uri):
            self.remove_chat(chat)
        if self._chats.pop(uri, None) is not None:
            self._values.set(_SESSION + uri, None)

    def add_chat(self, uri: str, session_uri: str) -> None:
        if uri not in self._session_of:
            self._chats[session_uri][uri] = None
            self._session_of[uri] = session_uri
            self._values.set(_CHAT + uri, session_uri)

    def remove_chat(self, uri: str) -> None:
        session_uri = self._session_of.pop(uri, None)
        if session_uri is not None:
            self._chats[session_uri].pop(uri, None)
            self._values.set(_CHAT + uri, None)


_UNDER_WAY: Final = frozenset(
    {
        *("activeTurn", "activity", "queuedMessages", "steeringMessage"),
        *("inputNeeded", "activeClients", "canvasRequests", "openCanvases"),
    }
)
"""Members of a session's or chat's state that have a value while something is under way in it."""

_NEVER: Final = frozenset(
    {*STREAMED_TEXT, *tool_calls.ACTIONS, "terminal/data", "session/titleChanged", "chat/draftChanged"}
)
"""The most frequent actions among those that neither begin nor end anything."""


class Unsettled:
    """The sessions and chats in which something is under way. After a restart only these have to be read."""

    def __init__(self, values: Values, index: SessionIndex) -> None:
        self._values = values
        self._index = index

    def uris(self) -> Sequence[str]:
        return [key.removeprefix(_UNSETTLED) for key in self._values.keys(_UNSETTLED)]

    def __contains__(self, uri: str) -> bool:
        return self._values.get(_UNSETTLED + uri) is not None

    def on_applied(self, applied: AnyApplied) -> None:
        if applied.action["type"] not in _NEVER and applied.before is not applied.after:
            uri = applied.channel
            if uri in self._index or self._index.session_of(uri) is not None:
                self.note(uri, applied.after)

    def note(self, uri: str, state: ChannelState) -> None:
        """Note whether something is under way in a channel."""
        under_way = is_under_way(state)
        if under_way != (uri in self):
            self._values.set(_UNSETTLED + uri, True if under_way else None)

    def forget(self, uri: str) -> None:
        self._values.set(_UNSETTLED + uri, None)


def is_under_way(state: ChannelState) -> bool:
    return state.get("lifecycle") == "creating" or any(state.get(member) for member in _UNDER_WAY)


class WaitingSelection(NamedTuple):
    """A client's choice of a model or agent, which waits until no turn of its session runs."""

    action: StateAction
    origin: Origin
    sent: SentAction
    """The action as the client sent it: this form is returned if it is refused."""

    def again(self, session: SessionState) -> WaitingSelection:
        """The same choice, adapted to the session's present state."""
        chosen = selection_of(self.action)
        key = chosen.get("changed", "")
        meta = selected(session, key, chosen.get(key))
        return self._replace(action={**self.action, "_meta": meta})


class WaitingSelections:
    """Holds back model and agent changes while a turn of their session runs."""

    def __init__(self, index: SessionIndex, states: States) -> None:
        self._index = index
        self._states = states
        self._waiting: dict[str, list[WaitingSelection]] = {}

    def keep(self, uri: str, action: StateAction, origin: Origin, sent: SentAction) -> bool:
        """Hold back an action if it has to wait; False when it can be applied now. `sent` is the action as the client
        wrote it."""
        if "_meta" not in action or CHANGED not in selection_of(action) or not self._busy(uri):
            return False
        waiting = self._waiting.setdefault(uri, [])
        if all(other.origin != origin for other in waiting):  # A client that reconnected sends it again.
            waiting.append(WaitingSelection(action, origin, sent))
        return True

    def take_due(self, session_uri: str) -> list[WaitingSelection]:
        """The selections that can be applied now, because no turn of the session runs any more."""
        if session_uri not in self._waiting or self._busy(session_uri):
            return []
        return self._waiting.pop(session_uri)

    def take_all(self, session_uri: str) -> list[WaitingSelection]:
        """All selections that wait in a session that is gone."""
        return self._waiting.pop(session_uri, [])

    def _busy(self, session_uri: str) -> bool:
        return any((self._states.chat(chat) or NO_CHAT).get("activeTurn") for chat in self._index.chats(session_uri))


__all__ = ["SessionIndex", "Unsettled", "WaitingSelection", "WaitingSelections"]
