"""Which sessions there are, which chat belongs to which session, and selections that wait for a turn. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ahpkit.dialects.generations import CHANGED, selected, selection_of
from ahpkit.host.spine.store import Origin
from ahpkit.protocol.common.state import JsonObject


class SessionIndex:
    """Sessions by URI, each with its chats."""

    def __init__(self) -> None:
        self._chats: dict[str, dict[str, None]] = {}
        self._session_of: dict[str, str] = {}

    def sessions(self) -> list[str]:
        return list(self._chats)

    def __contains__(self, session_uri: str) -> bool:
        return session_uri in self._chats

    def __len__(self) -> int:
        return len(self._chats)

    def session_of(self, chat_uri: str) -> str | None:
        return self._session_of.get(chat_uri)

    def chats(self, session_uri: str) -> list[str]:
        return list(self._chats.get(session_uri, ()))

    def add_session(self, uri: str) -> None:
        self._chats.setdefault(uri, {})

    def remove_session(self, uri: str) -> None:
        for chat in self._chats.pop(uri, ()):
            del self._session_of[chat]

    def add_chat(self, uri: str, session_uri: str) -> None:
        self._chats[session_uri][uri] = None
        self._session_of[uri] = session_uri

    def remove_chat(self, uri: str) -> None:
        session_uri = self._session_of.pop(uri, None)
        if session_uri is not None:
            self._chats[session_uri].pop(uri, None)


class WaitingSelection(NamedTuple):
    """A client's choice of model or agent that waits until no turn of its session runs."""

    action: JsonObject
    origin: Origin
    sent: JsonObject
    """The action as the client sent it: that goes back if it is refused."""

    def again(self, session: JsonObject) -> WaitingSelection:
        """The same choice in what the session has become meanwhile."""
        chosen = selection_of(self.action)
        key: str = chosen[CHANGED]
        meta = selected(session, key, chosen.get(key))
        return self._replace(action={**self.action, "_meta": meta})


class WaitingSelections:
    """Keeps model and agent changes back while a turn of their session runs."""

    def __init__(self, index: SessionIndex, state_of: Callable[[str], JsonObject | None]) -> None:
        self._index = index
        self._state_of = state_of
        self._waiting: dict[str, list[WaitingSelection]] = {}

    def keep(self, uri: str, selection: WaitingSelection) -> bool:
        """Keep an action back if it has to wait; False when it can be applied now."""
        if CHANGED not in selection_of(selection.action) or not self._busy(uri):
            return False
        waiting = self._waiting.setdefault(uri, [])
        if all(other.origin != selection.origin for other in waiting):  # A client that reconnected sends it again.
            waiting.append(selection)
        return True

    def take_due(self, session_uri: str) -> list[WaitingSelection]:
        """What can be applied now, because no turn of the session runs any more."""
        if session_uri not in self._waiting or self._busy(session_uri):
            return []
        return self._waiting.pop(session_uri)

    def take_all(self, session_uri: str) -> list[WaitingSelection]:
        """Everything that waits, because the session is gone."""
        return self._waiting.pop(session_uri, [])

    def _busy(self, session_uri: str) -> bool:
        return any((self._state_of(chat) or {}).get("activeTurn") for chat in self._index.chats(session_uri))


__all__ = ["SessionIndex", "WaitingSelection", "WaitingSelections"]
