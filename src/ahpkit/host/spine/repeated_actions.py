"""Recognises an action that a client sends again, so that it is applied only once."""

from __future__ import annotations

from ahpkit.host.spine.store import Origin
from ahpkit.log.engine import LogEngine

_MAX_CLIENTS = 10_000
"""Clients for which a new start is remembered. The one that was not seen for longest is forgotten first."""


class RepeatedActions:
    """Compares the numbers that clients give their actions with what the log has.

    A client that initializes starts counting again, so earlier numbers are ignored.
    """

    def __init__(self, log: LogEngine) -> None:
        self._log = log
        self._since: dict[str, int] = {}
        """serverSeq at which a client last began to count."""
        self._highest: dict[str, int] = {}
        """The highest number that a client used since then."""

    def begin(self, client_id: str) -> None:
        """A client starts counting anew."""
        self._since.pop(client_id, None)
        self._since[client_id] = self._log.head_seq
        self._highest[client_id] = -1
        if len(self._since) > _MAX_CLIENTS:
            oldest = next(iter(self._since))
            del self._since[oldest], self._highest[oldest]

    def is_new(self, origin: Origin) -> bool:
        """Whether this action was certainly not applied before. Costs no I/O; when False, ask `find`."""
        highest = self._highest.get(origin.client_id)
        if highest is None:
            return self._log.is_new(*origin)
        if origin.client_seq <= highest:
            return False
        self._highest[origin.client_id] = origin.client_seq
        return True

    async def find(self, origin: Origin) -> int | None:
        """serverSeq of the action when it was applied before (0: too long ago to tell), else None."""
        seq = await self._log.seen(*origin)
        since = self._since.get(origin.client_id, -1)
        return seq if seq is not None and seq > since else None


__all__ = ["RepeatedActions"]
