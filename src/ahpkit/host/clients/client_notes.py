"""Remembers of each client which version it speaks, and in which run of the host it was last connected.

A run lasts from a start of the host to its end. The log may have lost the last actions of a run: a write-ahead log was
cut off, or an older copy of the file was put back. Their numbers are then given to other actions. A client that saw the
lost ones cannot go on with the new ones. It is recognised by its sequence number: no client of a run can have seen more
than the number at which the next run began.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from ahpkit.host.feature import Values

_NOTE: Final = "client-version/"
_RUN: Final = "run/"
"""Prefixes of the durable values: one for each client, and one for each run with the number at which it began."""

_MAX_CLIENTS: Final = 10_000
_MAX_RUNS: Final = 1_000
"""How many are remembered. The oldest note is forgotten first."""

EARLIER: Final = 0
"""An unknown earlier run; or this one, if it is the first."""
NEVER: Final = -1
"""The client says that it was connected before, but this host does not know it."""


class Note(NamedTuple):
    """One client."""

    version: str
    words: Sequence[str] = ()
    """What else decides its dialect."""
    run: int = EARLIER
    """The run in which it was last connected; `EARLIER` or `NEVER` when that is not known."""
    doubted: int = -1
    """The number with which it came back from a lost history. When it comes back with another number, it has taken the
    states that it got instead."""

    @classmethod
    def read(cls, text: str) -> Self:
        version, *rest = text.split(" ")
        run, doubted = EARLIER, -1
        words: list[str] = []
        for word in rest:
            if word.startswith("@"):
                run = int(word[1:])
            elif word.startswith("?"):
                doubted = int(word[1:])
            else:
                words.append(word)
        return cls(version, words, run, doubted)

    def written(self) -> str:
        doubted = [f"?{self.doubted}"] if self.doubted >= 0 else []
        return " ".join([self.version, *self.words, f"@{self.run}", *doubted])


class ClientNotes:
    """The notes of all clients, durable."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.run = 0
        """The present run."""

    def begin(self, head: int) -> None:
        """Begin a run: the host starts, and its log ends at this number."""
        runs = self._values.keys(_RUN)
        self.run = 1 + max((int(key.removeprefix(_RUN)) for key in runs), default=0)
        self._values.set(f"{_RUN}{self.run}", head)
        if len(runs) > _MAX_RUNS:
            self._values.set(next(iter(runs)), None)

    def get(self, client_id: str) -> Note | None:
        text: str | None = self._values.get(_NOTE + client_id)
        return None if text is None else Note.read(text)

    def set(self, client_id: str, note: Note) -> None:
        if self.get(client_id) == note:
            return
        self._values.set(_NOTE + client_id, note.written())
        noted = self._values.keys(_NOTE)
        if len(noted) > _MAX_CLIENTS:
            self._values.set(next(iter(noted)), None)

    def shares_history(self, client_id: str, last_seen: int) -> bool:
        """Whether everything that a client saw, up to a number, is in the log. From now on it counts as a client of
        this run."""
        note = self.get(client_id)
        if note is None:
            return False
        if note.run == self.run:
            return note.doubted != last_seen
        is_shared = last_seen <= self._end_of(note.run)
        self.set(client_id, note._replace(run=self.run, doubted=-1 if is_shared else last_seen))
        return is_shared

    def _end_of(self, run: int) -> int:
        """The highest number of a run that was kept; -1 when that is no longer known."""
        if run == EARLIER and self.run == 1:
            return sys.maxsize
        head: int | None = self._values.get(f"{_RUN}{self.run if run == EARLIER else run + 1}")
        return -1 if head is None else head


__all__ = ["EARLIER", "NEVER", "ClientNotes", "Note"]
