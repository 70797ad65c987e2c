"""Keeps the list of sessions with their summaries, and tells clients when it changes.

Changed fields of a session are sent with `root/sessionSummaryChanged`. That notification cannot say that a field is
gone. So when a session loses a field (its activity, its custom agent), the whole entry is sent again with
`root/sessionAdded`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from typing import Final, NamedTuple, cast

from ahpkit.dialects.generations import SELECTION, selection_of
from ahpkit.host.clients.clients import Clients
from ahpkit.host.feature import Values
from ahpkit.host.registration import AnyApplied
from ahpkit.host.spine.store import ChannelChanges, action_type
from ahpkit.host.turns.new_state import entry_of, is_named, present
from ahpkit.log.entry import Entry
from ahpkit.protocol.annotations import AnnotationsState
from ahpkit.protocol.channels import ROOT_URI, ChannelState
from ahpkit.protocol.chat.state import ChatState
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.meta_keys import CHANGES, OPENING
from ahpkit.protocol.session.state import PartialSessionSummary, SessionState, SessionSummary
from ahpkit.protocol.session.summary import (
    annotations_summary,
    changed_fields,
    has_lost,
    moment,
    only_chat,
    session_summary,
)

PREFIX: Final = "session-times/"
"""Prefix of the durable value with a session's times."""

STAMPING: Final = frozenset({"session/titleChanged", "session/configChanged", "session/metaChanged"})
"""Actions by which a person changes a session. When the host dispatches the same action (a title from the first
message), this does not count."""


class Times(NamedTuple):
    """ISO 8601, in UTC with milliseconds."""

    created: str
    modified: str


_UNKNOWN: Final = Times(iso_time(0), iso_time(0))


class SessionTimes:
    """The times of all sessions of a host.

    The log has the time of each action. So a change of a session is not written twice: its time is stored beside the
    log only before the session's state is, because a restart reads the actions after that state.
    """

    def __init__(self, values: Values, now: Callable[[], int]) -> None:
        self._values = values
        self._now = now
        self._started = now()
        self._changed: dict[str, int] = {}
        """Session → when a person changed it last, if that was after its state was stored."""

    def restore(self, tail: Iterable[Entry]) -> None:
        """Take over the changes of an earlier run: the actions after the stored states."""
        for entry in tail:
            if entry.client_id is not None and _is_change(entry):
                self._changed[entry.channel] = entry.at

    def created(self, uri: str, now: int) -> None:
        self._changed.pop(uri, None)
        self._values.set(PREFIX + uri, Times(iso_time(now), iso_time(now)))

    def forget(self, uri: str) -> None:
        self._changed.pop(uri, None)
        self._values.set(PREFIX + uri, None)

    def knows(self, uri: str) -> bool:
        """Whether the session has times. A session that is being disposed of has none."""
        return uri in self._changed or self._values.get(PREFIX + uri) is not None

    def of(self, uri: str) -> Times:
        created, modified = self._values.get(PREFIX + uri) or _UNKNOWN
        changed = self._changed.get(uri)
        return Times(created, modified if changed is None else iso_time(changed))

    def past(self, time: str) -> str:
        """A time for clients. A time in the future was written by a wrong clock; it is replaced by the time at which
        this host started."""
        now = self._now()
        if moment(time) <= datetime.fromtimestamp(now / 1000, UTC):
            return time
        return iso_time(min(now, self._started))

    def on_applied(self, applied: AnyApplied) -> None:
        """One of the actions in `STAMPING` was applied. If a client dispatched it, the session was changed now."""
        if applied.client_id is not None and applied.after is not applied.before:
            self._changed[applied.channel] = applied.at

    def keep(self, uri: str) -> None:
        """Store the times of a session, if they changed. Called before its state is stored."""
        if uri in self._changed:
            self._values.set(PREFIX + uri, self.of(uri))
            del self._changed[uri]


def _is_change(entry: Entry) -> bool:
    try:
        return action_type(entry.payload) in STAMPING
    except Exception:  # An action that cannot be read is left out of the state, too.
        return False


_ANNOTATIONS = "/annotations"
"""The end of the URI of a session's annotations."""

_READ_AT_ONCE = 20
"""Sessions whose states are read in one step of the event loop: a few milliseconds."""

_DEBOUNCE = 0.05
"""Seconds. Status and activity change several times within one step of a turn; a list needs only the last value."""


class SessionCatalogue:
    """The summaries of all sessions: those that clients got last. They are updated from the committed states."""

    def __init__(
        self,
        state_of: Callable[[str], ChannelState | None],
        clients: Clients,
        times: SessionTimes,
        *,
        kinds: Callable[[str], str | None],
        opening: Callable[[str], str | None] = lambda chat: None,
        reading: Callable[..., AbstractAsyncContextManager[object]] = lambda *uris: nullcontext(),
    ) -> None:
        """`opening(chat)`: the slash command that a chat began with; None if it did not. `reading(*uris)`: reads states
        piece by piece, so that `state_of` is quick for them until the end of the block."""
        self._state_of = state_of
        self._reading = reading
        self._reads = asyncio.Lock()
        self._times = times
        self._kind_of = kinds
        self._opening_of = opening
        self._clients = clients
        self._sent: dict[str, SessionSummary | None] = {}
        """Session → the summary that clients got last. None: the session is from before the restart, and its summary
        was not needed yet."""
        self._unread: list[str] = []
        self._changed: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    def restore(self, uris: Iterable[str]) -> None:
        """Add the sessions from before the restart. Their states are read later, and clients get no notification."""
        self._sent = dict.fromkeys(uris)
        self._unread = list(reversed(self._sent))

    async def read(self) -> None:
        """Read the summaries that are not known yet, a few at a time. Several tasks may call this at the same time."""
        async with self._reads:
            while self._unread:
                for uri in [self._unread.pop() for _ in range(min(_READ_AT_ONCE, len(self._unread)))]:
                    async with self._reading(uri, uri + _ANNOTATIONS):
                        self._known(uri)
                await asyncio.sleep(0)

    def _known(self, uri: str) -> SessionSummary | None:
        """The summary that clients got last; if they have not got one yet, the present summary."""
        if uri in self._sent and self._sent[uri] is None:
            self._sent[uri] = self._summary(uri)
        return self._sent.get(uri)

    def follow(self, changes: ChannelChanges, changed: Iterable[str]) -> None:
        """Take over a commit: the channels that appeared and disappeared, and those with new actions."""
        for uri in changes.gone:
            self._removed(uri)
        for uri in changes.appeared:
            if self._kind_of(uri) == "session":
                summary = self._sent[uri] = self._summary(uri)
                self._clients.to_all("root/sessionAdded", {"channel": ROOT_URI, "summary": summary})
        for uri in changed:
            self._touch(uri.removesuffix(_ANNOTATIONS))

    def _removed(self, uri: str) -> None:
        if uri in self._sent:
            del self._sent[uri]
            self._changed.discard(uri)
            self._clients.to_all("root/sessionRemoved", {"channel": ROOT_URI, "session": uri})

    def _touch(self, uri: str) -> None:
        """If this channel belongs to a session, note that the session's summary has to be compared."""
        if uri in self._sent and self._times.knows(uri):
            self._changed.add(uri)
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_DEBOUNCE, self._send_some)

    def flush(self) -> None:
        """Send the summaries that have changed since the last time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._changed:
            self._send(self._changed.pop())

    def _send_some(self) -> None:
        """Send the changed summaries of a few sessions. Other tasks run before the next few."""
        for _ in range(min(_READ_AT_ONCE, len(self._changed))):
            self._send(self._changed.pop())
        self._timer = asyncio.get_running_loop().call_later(0, self._send_some) if self._changed else None

    def _send(self, uri: str) -> None:
        if not self._times.knows(uri):
            return  # The next commit says that it is gone.
        known, now = self._sent[uri] or {}, self._summary(uri)
        self._sent[uri] = now
        if has_lost(known, now) or has_lost(selection_of(known), selection_of(now)):
            self._clients.to_root("root/sessionAdded", {"channel": ROOT_URI, "summary": now})
        elif changes := cast("PartialSessionSummary", changed_fields(known, now)):
            self._clients.to_root(
                "root/sessionSummaryChanged", {"channel": ROOT_URI, "session": uri, "changes": changes}
            )

    def _summary(self, uri: str) -> SessionSummary:
        """The present summary of one session, from its own state and those of its chats."""
        state = cast("SessionState", self._state_of(uri))
        annotations = cast("AnnotationsState | None", self._state_of(uri + _ANNOTATIONS))
        times = self._times.of(uri)
        meta = state.get("_meta") or {}
        summary = session_summary(
            uri, state, created_at=times.created, modified_at=times.modified, changes=meta.get(CHANGES)
        )
        summary["createdAt"] = self._times.past(summary["createdAt"])
        summary["modifiedAt"] = self._times.past(summary["modifiedAt"])
        opening = self._opening_of(state.get("defaultChat", ""))
        if notes := present(**{SELECTION: selection_of(state) or None, OPENING: opening}):
            summary["_meta"] = notes
        if annotations:
            summary["annotations"] = annotations_summary(uri + _ANNOTATIONS, annotations)
        return summary

    def summary(self, uri: str) -> SessionSummary | None:
        """The present summary of one session; None if there is no such session."""
        return self._summary(uri) if self._state_of(uri) is not None else None

    def title(self, session: str, chat: str) -> str | None:
        """The title of a chat in its session, if the chat's own state does not have it; otherwise None.

        A session's first chat has the session's title while it is the only one, and keeps that title later. Further
        chats are named after their first message; chats that began with a title keep it.
        """
        state = cast("SessionState | None", self._state_of(session))
        own = cast("ChatState | None", self._state_of(chat))
        if state is None or own is None:
            return None
        if (only := only_chat(state)) is not None and only["resource"] == chat:
            return state["title"]
        if is_named(own):
            return None
        entry = entry_of(chat, state)
        return None if entry is None else entry["title"]

    def summaries(self) -> list[SessionSummary]:
        """All summaries. Only those of sessions that have changed are computed again."""
        changed = {uri for uri in self._changed if self._times.knows(uri)}
        return [self._summary(uri) if told is None or uri in changed else told for uri, told in self._sent.items()]


__all__ = ["PREFIX", "STAMPING", "SessionCatalogue", "SessionTimes", "Times"]
