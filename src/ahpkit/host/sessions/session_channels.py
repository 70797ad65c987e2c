"""Opens and closes the channels of sessions, and restores the list of sessions after a restart."""

from __future__ import annotations

from ahpkit.host.sessions.catalogue import SessionTimes
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.session_index import SessionIndex, Unsettled
from ahpkit.host.spine.store import Store
from ahpkit.host.states import NO_SESSION
from ahpkit.protocol.errors import InvalidParams, InvalidRequest, SessionAlreadyExists
from ahpkit.protocol.session.state import SessionState


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


__all__ = ["SessionChannels"]
