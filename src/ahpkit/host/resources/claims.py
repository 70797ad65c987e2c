"""Makes changes of files wait for each other if they touch the same places. Other changes run meanwhile.

Moving a folder checks everything in it first. Nothing may be written there between the check and the move. But a write
to another place does not wait until a large folder is copied.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from ahpkit.host.resources.safe_open import SafeOpener
from ahpkit.protocol.errors import Conflict

T = TypeVar("T")

_ATTEMPTS = 16
"""How many times a change is tried again if links lead it to places that it has not claimed."""

_Names = tuple[str, ...]


class _Elsewhere(Exception):
    """A link led to a place that is not claimed."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class Claim:
    """The places that one change touches, including everything below them."""

    def __init__(self, who: str | None, paths: Iterable[Path]) -> None:
        self._who = who
        self._places = [_names(path) for path in paths]
        self.before: set[Claim] = set()
        """Claims that have to end first."""
        self.after: list[Claim] = []
        self.free = asyncio.Event()

    def meets(self, other: Claim) -> bool:
        """Whether one of two claims has to wait for the other. Claims of one client always wait, so that they keep
        their order."""
        if self._who is not None and self._who == other._who:
            return True
        return any(_related(one, two) for one in self._places for two in other._places)

    def limit(self, opener: SafeOpener) -> SafeOpener:
        """An opener of the claimed places alone."""

        def check(path: Path) -> None:
            names = _names(path)
            if not any(names[: len(place)] == place for place in self._places):
                raise _Elsewhere(path)
            opener.check(path)

        return SafeOpener(check, opener.barred)


class Claims:
    """All changes that run or wait."""

    def __init__(self) -> None:
        self._open: dict[Claim, None] = {}

    async def run(self, who: str | None, paths: Iterable[Path], work: Callable[[Claim], Awaitable[T]]) -> T:
        """Run `work` when no earlier change touches the same places.

        `work` may use only paths that `Claim.limit` lets through. `who`: the client; its changes keep their order.
        """
        places = list(paths)
        for _ in range(_ATTEMPTS):
            async with self._claimed(Claim(who, places)) as claim:
                try:
                    return await work(claim)
                except _Elsewhere as other:
                    places.append(other.path)
        raise Conflict(f"{places[0]} changes while it is used; try again")

    @asynccontextmanager
    async def _claimed(self, claim: Claim) -> AsyncGenerator[Claim]:
        claim.before = {other for other in self._open if claim.meets(other)}
        for other in claim.before:
            other.after.append(claim)
        self._open[claim] = None
        try:
            if claim.before:
                await claim.free.wait()
            yield claim
        finally:
            del self._open[claim]
            for other in claim.after:
                other.before.discard(claim)
                if not other.before:
                    other.free.set()


def _names(path: Path) -> _Names:
    """The parts of a path, normalised, because some file systems treat different spellings of a name as the same."""
    return tuple(unicodedata.normalize("NFKC", part).casefold() for part in path.parts)


def _related(one: _Names, other: _Names) -> bool:
    """Whether two paths are the same, or one lies in the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


__all__ = ["Claim", "Claims"]
