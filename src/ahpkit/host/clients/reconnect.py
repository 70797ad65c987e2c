"""Answers `reconnect` with what the client missed: actions or states, whichever is shorter.

The actions are read from the log before anything is sent. This shows how many bytes they have, and whether all of them
can be expressed in the client's version. Very many actions are not kept in memory: they are read from the log again, as
fast as the client reads.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from ahpkit.dialects.base import MustReconnect
from ahpkit.host.clients.outlet import Outlet
from ahpkit.log.engine import LogEngine
from ahpkit.log.entry import MAX_PAGE, Entry
from ahpkit.log.errors import LogError
from ahpkit.protocol.common.state import Snapshot
from ahpkit.wire.pieces import Pieces, measure

_log = logging.getLogger(__name__)

_PAGE = 128 * 1024
"""Bytes of actions read from the log at a time."""

_PIECE = 256 * 1024
"""Bytes that are sent at a time. A page is longer only if its last action is long."""

_KEPT = 2 * 1024 * 1024
"""Bytes of actions that stay in memory after the first reading: fewer than a client may leave unread."""

_FEW = 4 * 1024
"""Below this many bytes the actions are sent without computing how large the states would be."""


class MissedActions:
    """The actions of some channels after a number and up to another, for one client."""

    def __init__(
        self,
        log: LogEngine,
        outlet: Outlet,
        channels: Sequence[str],
        *,
        after: int,
        until: int,
        can_replay: Callable[[Sequence[Entry]], bool],
    ) -> None:
        self._log = log
        self._outlet = outlet
        self._channels = channels
        self._after = after
        self._until = until
        self._can_replay = can_replay

    async def actions(
        self, snapshots: Callable[[], Sequence[Snapshot]], *, at_most: int, prefer: object
    ) -> Pieces | None:
        """The actions for the answer; None if snapshots are shorter, or the only possible answer.

        `prefer` is the client's wish: "actions" whenever the log has them, or "states".
        """
        try:
            return await self._smaller(snapshots, at_most, prefer)
        except MustReconnect:
            return None
        except LogError as error:  # The log was trimmed just now, or the disk cannot be read.
            _log.warning("a client gets snapshots instead of a replay: %s", error)
            return None

    async def _smaller(
        self, snapshots: Callable[[], Sequence[Snapshot]], at_most: int, prefer: object
    ) -> Pieces | None:
        if prefer == "states":
            return None
        bodies, following = await self._page(self._after, _FEW)
        if following is None:
            return Pieces(partial(_joined, bodies))
        if prefer != "actions":
            states = snapshots()
            size = await measure(states, at_most=_PAGE)
            if size <= _PAGE:  # Reading stops as soon as the actions are longer than the states.
                bodies, following = await self._page(self._after, size)
                is_less = following is None and sum(map(len, bodies)) <= size
                return Pieces(partial(_joined, bodies)) if is_less else None
            at_most = min(at_most, await measure(states, at_most=at_most))
        del bodies  # One action may be large.
        return await self._measured(at_most)

    async def _measured(self, at_most: int) -> Pieces | None:
        """The actions, if they are not too many. Raises `MustReconnect` and `LogError`."""
        kept: list[bytes] = []
        size, following = 0, self._after
        while following is not None:
            bodies, following = await self._page(following)
            size += sum(map(len, bodies))
            if size > at_most:
                return None
            kept += bodies
            if size > _KEPT:
                kept = []
            del bodies
        return Pieces(partial(_joined, kept)) if size <= _KEPT else Pieces(self._written)

    async def _page(self, after: int, max_bytes: int = _PAGE) -> tuple[list[bytes], int | None]:
        """Some actions in the form for this client, and the number after which the next page begins."""
        if self._outlet.is_over:
            return [], None
        page = await self._log.read(after, channels=self._channels, max_bytes=max_bytes)
        entries = [entry for entry in page if entry.seq <= self._until]
        if not self._can_replay(entries):
            raise MustReconnect
        bodies = [body for entry in entries if (body := self._outlet.project(entry)) is not None]
        return bodies, page[-1].seq if _is_cut_off(page, max_bytes) and page[-1].seq < self._until else None

    async def _written(self) -> AsyncIterator[bytes]:
        """The actions as a list. While the client reads, only one piece is kept in memory; the rest of a large page is
        read again.
        """
        yield b"["
        before, after, start = b"", self._after, 0
        while True:
            bodies, following = await self._page(after)
            text = b",".join(bodies)
            piece = (before if start == 0 and text else b"") + text[start : start + _PIECE]
            start += _PIECE
            if start >= len(text):
                if following is None:
                    break
                after, start, before = following, 0, b"," if text else before
            del bodies, text
            yield piece
        yield piece + b"]"


def _is_cut_off(page: Sequence[Entry], max_bytes: int) -> bool:
    return len(page) >= MAX_PAGE or sum(len(entry.payload) for entry in page) > max_bytes


async def _joined(bodies: Sequence[bytes]) -> AsyncIterator[bytes]:
    text = b"[%b]" % b",".join(bodies)
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


__all__ = ["MissedActions"]
