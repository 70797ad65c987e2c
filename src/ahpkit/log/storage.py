"""The interface of a storage for a log. All of its methods block.

`load` is called once, before everything else. `commit`, `trim` and `tidy` are called by one thread at a time; `read`,
`seen`, `mark` and `statistics` may be called by others meanwhile and see what is committed. A call that fails changes
nothing, can be made again, and raises `StorageError` when the fault lies outside the program, `ContentRefused` when it
lies in what was to be written.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ahpkit.log.entry import Batch, Entry, Mark, Recovery, Statistics


class Storage(Protocol):
    """Where the records are. `tests/log/test_storage.py` says what every implementation must do."""

    def load(self) -> Recovery:
        """Open it and repair it if needed; returns what a restart needs, and what was wrong."""
        ...

    def commit(self, batch: Batch) -> None:
        """Make the batch durable: all of it, in its order, or none of it."""
        ...

    def read(
        self,
        after: int,
        *,
        channels: Collection[str] | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[Entry]:
        """The entries after a number, in order, of these open channels (None: all); raises `NotInLog` for a hole.

        Ends with the entry that reaches `limit`, or that makes the payloads together larger than `max_bytes`; with
        `max_bytes` also at `MAX_PAGE` entries.
        """
        ...

    def seen(self, client_id: str, client_seq: int) -> int | None:
        """The number that a client's action got; 0 if the action was trimmed; None if it was never logged."""
        ...

    def mark(self, seq: int) -> Mark:
        """Where the log stood at an entry that is still there."""
        ...

    def trim(self, before_seq: int) -> int:
        """Forget entries below a number, but none that a state still needs; returns the oldest number left."""
        ...

    def tidy(self, *, at_rest: bool = False) -> None:
        """Do work that can wait. Called by the thread that commits, when it is idle.

        `at_rest`: there was no commit for a while, so it may take longer.
        """
        ...

    def statistics(self) -> Statistics:
        """How large it is."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


__all__ = ["Storage"]
