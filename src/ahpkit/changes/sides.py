"""Files before and after a change, and the pieces that a change is made of. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LINK, SUBMODULE, EXECUTABLE = "120000", "160000", "100755"


class Side(NamedTuple):
    """A file on one side of a comparison. A tuple, because tens of thousands of them are stored at once: JSON is
    written from tuples as they are."""

    path: str
    mode: str
    oid: str


@dataclass(frozen=True)
class FileChange:
    """One changed file. `before` only: deleted. `after` only: created. Two paths: renamed."""

    before: Side | None
    after: Side | None
    added: int | None = None
    removed: int | None = None
    """The number of removed lines; None for binary files and for files that were not compared."""
    note: str = ""
    """Why the content is not shown: `too large`, `not compared`."""

    @property
    def path(self) -> str:
        side = self.after or self.before
        assert side is not None
        return side.path

    @property
    def paths(self) -> set[str]:
        return {side.path for side in (self.before, self.after) if side is not None}


Pair = tuple[Side | None, Side | None]
"""A file before and after."""


def same(one: Side | None, other: Side | None) -> bool:
    """Whether two sides have the same content and mode."""
    if one is None or other is None:
        return one is other
    return (one.mode, one.oid) == (other.mode, other.oid)


def paths_of(changes: Iterable[FileChange]) -> set[str]:
    """All paths of some changes. There may be very many: call it in a thread."""
    return {side.path for change in changes for side in (change.before, change.after) if side is not None}


def own_steps(whole: Pair, between: Sequence[Pair]) -> list[Pair]:
    """The session's own parts of a change, without what others changed in between."""
    befores = [whole[0], *(after for _, after in between)]
    return list(zip(befores, [*(before for before, _ in between), whole[1]], strict=True))


__all__ = ["EXECUTABLE", "LINK", "SUBMODULE", "FileChange", "Pair", "Side", "own_steps", "paths_of", "same"]
