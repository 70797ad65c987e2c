"""Reads and watches the places where sessions look for customizations, each once for all sessions that share it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ahpkit.customizations.details import Parsed
from ahpkit.customizations.discovery import Library, Location, locate
from ahpkit.customizations.watch import Watched, Watcher

_NAMED = "named by "
"""Prefix of a location's key: the key under which the files that it names are watched."""

_SPARE = 200
"""Unused places that may stay watched: setting up all watches again costs more than they do."""


class Judged(NamedTuple):
    """What was read of a place, with what of it may run, and the files that it names that matter for this."""

    parsed: Parsed
    names: tuple[str, ...]


class Read(NamedTuple):
    """What a place holds now (None: nothing), and whether that changed."""

    parsed: Parsed | None
    is_news: bool


class Places:
    """All places. `judge` decides which parts of a place may run; it is called in a worker, because it reads files."""

    def __init__(
        self,
        judge: Callable[[Location, Parsed], Judged],
        *,
        home: Path | None,
        plugins: Sequence[Path],
        besides: Sequence[Watched] = (),
    ) -> None:
        """`besides` is watched too; its keys are reported like those of locations."""
        self._judge = judge
        self._home = home
        self._plugins = plugins
        self._besides = besides
        self._library = Library()
        self._watcher = Watcher()
        self._reading = asyncio.Lock()
        self.known: dict[str, Location] = {}
        """Where sessions look, by key."""
        self._users: dict[str, set[str]] = {}
        """Sessions that look there, by the same key."""
        self._latest: dict[str, Parsed | None] = {}
        """What was read last, by key; it is valid as long as the place is watched."""
        self._names: dict[str, tuple[str, ...]] = {}
        """Files that hooks and servers name, by key: a script that changes changes what was trusted."""
        self._names_changed = False

    async def aclose(self) -> None:
        await self._watcher.aclose()

    @property
    def watching(self) -> bool:
        return self._watcher.watching

    def users(self, location: Location) -> Collection[str]:
        """The sessions that look there."""
        return tuple(self._users.get(location.key, ()))

    async def look(self, session_uri: str, workspace: Path, before: Iterable[Location]) -> list[Location]:
        """Set where a session looks from now on. Places are watched before they are read, so that no change is missed.

        `before` is where it looked until now.
        """
        found = await asyncio.to_thread(locate, workspace, home=self._home, plugins=self._plugins)
        known = set(self.known)
        self._forget_user(session_uri, before)
        for location in found:
            self.known[location.key] = location
            self._users.setdefault(location.key, set()).add(session_uri)
        if set(self.known) != known or not self.watching:
            await self.watch()
        return found

    def leave(self, session_uri: str, locations: Iterable[Location]) -> bool:
        """Forget a session. True when so many unused places are still watched that `watch` should be called."""
        left = self._forget_user(session_uri, locations)
        for key in left:
            self._library.forget(key)
            self._latest.pop(key, None)
            self._names.pop(key, None)
        return bool(left) and self._watcher.count > 2 * len(self.known) + _SPARE

    def _forget_user(self, session_uri: str, locations: Iterable[Location]) -> list[str]:
        """Remove a session from places; the keys of those that no session uses now."""
        left: list[str] = []
        for location in locations:
            users = self._users.get(location.key, set())
            users.discard(session_uri)
            if not users and self.known.pop(location.key, None) is not None:
                self._users.pop(location.key, None)
                left.append(location.key)
        return left

    async def read(self, locations: Iterable[Location], *, again: bool) -> AsyncIterator[tuple[Location, Read]]:
        """What places hold, in their order. Without `again`, the result of another session is reused, which is valid
        because the place is watched.

        A session that shares its places with many others costs no more than the first.
        """
        left = list(locations)
        while left:
            async with self._reading:
                unread = [location for location in left if again or location.key not in self._latest]
                found = await asyncio.to_thread(self._read_next, unread) if unread else {}
                later = {location.key for location in unread} - found.keys()
                read = left[: next((at for at, location in enumerate(left) if location.key in later), len(left))]
                known = {location.key: self._latest[location.key] for location in read if location.key in self._latest}
                self._latest.update(found)
            for location in read:
                key, latest = location.key, self._latest.get(location.key)
                yield location, Read(latest, is_news=key not in known or latest != known[key])
            left = left[len(read) :]

    def _read_next(self, locations: Iterable[Location]) -> dict[str, Parsed | None]:
        """Read until a place holds something. Most hold nothing: a step of a worker for each costs more than a look."""
        found: dict[str, Parsed | None] = {}
        for location in locations:
            found[location.key] = held = self._read_now(location)
            if held is not None:
                break
        return found

    def _read_now(self, location: Location) -> Parsed | None:
        parsed = self._library.read(location)
        if parsed is None:
            return None
        judged = self._judge(location, parsed)
        if judged.names != self._names.get(location.key, ()):
            self._names[location.key] = judged.names
            self._names_changed = True
        return judged.parsed

    async def changed(self) -> AsyncIterator[frozenset[str]]:
        """Keys of places in which something changed, as it happens, and keys of `besides`."""
        async for keys in self._watcher:
            yield frozenset(key.removeprefix(_NAMED) for key in keys)

    async def watch_named(self) -> None:
        """Watch the files that places name, if what was read names others now."""
        if self._names_changed:
            self._names_changed = False
            await self.watch()

    async def watch(self) -> None:
        """Watch exactly the places that sessions look at."""
        places = [
            Watched(location.key, location.root.absolute(), location.place.files if location.place else ())
            for location in self.known.values()
        ]
        places += (
            Watched(_NAMED + key, Path("/"), tuple(path.lstrip("/") for path in self._names[key]))
            for key in self.known
            if self._names.get(key)
        )
        await self._watcher.watch([*places, *self._besides])


__all__ = ["Judged", "Places", "Read"]
