"""Stores durably when sessions were created and last changed. Lists show these times; no state contains them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ahpkit.host.feature import Applied, Values
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.session.summary import moment

PREFIX: Final = "session-times/"
"""Prefix of the durable value with a session's times."""

STAMPING: Final = frozenset({"session/titleChanged", "session/configChanged", "session/metaChanged"})
"""Actions by which a person changes a session. The same actions of the host (a title from the first message) do not
count."""


class Times(NamedTuple):
    """ISO 8601, in UTC with milliseconds."""

    created: str
    modified: str


_UNKNOWN: Final = Times(iso_time(0), iso_time(0))


class SessionTimes:
    """The times of all sessions of a host."""

    def __init__(self, values: Values, now: Callable[[], int]) -> None:
        self._values = values
        self._now = now
        self._started = now()

    def created(self, uri: str, now: int) -> None:
        self._values.set(PREFIX + uri, Times(iso_time(now), iso_time(now)))

    def forget(self, uri: str) -> None:
        self._values.set(PREFIX + uri, None)

    def of(self, uri: str) -> Times:
        kept = self._values.get(PREFIX + uri)
        return _UNKNOWN if kept is None else Times(*kept)

    def past(self, time: str) -> str:
        """A time as it is shown: one in the future was written by a wrong clock, and is not later than our start."""
        now = self._now()
        if moment(time) <= datetime.fromtimestamp(now / 1000, UTC):
            return time
        return iso_time(min(now, self._started))

    def heard(self, applied: Applied, now: int) -> None:
        """One of `STAMPING` was applied: if a person did it, the session was changed now."""
        if applied.client_id is not None and applied.after is not applied.before:
            key, modified = PREFIX + applied.channel, iso_time(now)
            created, before = self._values.get(key) or _UNKNOWN
            if modified != before:
                self._values.set(key, Times(created, modified))


__all__ = ["PREFIX", "STAMPING", "SessionTimes", "Times"]
