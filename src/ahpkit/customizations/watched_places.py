"""Reads and watches the places in which sessions search for customizations. A place is read and watched once for all
sessions that share it."""

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
"""Unused places that may stay watched, because setting up all watches again costs more."""


class JudgedContent(NamedTuple):
    """The content of a place, judged which parts may run, and the files whose content decides this."""

    parsed: Parsed
    names: tuple[str, ...]


class PlaceContent(NamedTuple):
    """The present content of a place (None: nothing), and whether it changed."""

    parsed: Parsed | None
    is_news: bool


class WatchedPlaces:
    """All places. `judge` decides which parts of a place may run; it is called in a worker, because it reads files."""

    def __init__(
        self,
        judge: Callable[[Location, Parsed], JudgedContent],
        *,
        home: Path | None,
        plugins: Sequence[Path],
        besides: Sequence[Watched] = (),
    ) -> None:
        """`besides` are further places to watch. Their keys are reported like those of locations."""
        self._judge = judge
        self._home = home
        self._plugins = plugins
        self._besides = besides
        self._library = Library()
        self._watcher = Watcher()
        self._reading = asyncio.Lock()
        self.known: dict[str, Location] = {}
        """The locations of all sessions, by key."""
        self._users: dict[str, set[str]] = {}
        """Key → the sessions that use the location."""
        self._latest: dict[str, Parsed | None] = {}
        """Key → the content that was read last. It is valid as long as the place is watched."""
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
        """Set the locations of a session; `before` are its present ones.

        Places are watched before they are read, so that no change is missed.
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
        """Forget a session. Returns True if too many unused places are still watched, so that `watch` should be
        called."""
        left = self._forget_user(session_uri, locations)
        for key in left:
            self._library.forget(key)
            self._latest.pop(key, None)
            self._names.pop(key, None)
        return bool(left) and self._watcher.count > 2 * len(self.known) + _SPARE

    def _forget_user(self, session_uri: str, locations: Iterable[Location]) -> list[str]:
        """Remove a session from places; returns the keys of places that no session uses any more."""
        left: list[str] = []
        for location in locations:
            users = self._users.get(location.key, set())
            users.discard(session_uri)
            if not users and self.known.pop(location.key, None) is not None:
                self._users.pop(location.key, None)
                left.append(location.key)
        return left

    async def read(self, locations: Iterable[Location], *, again: bool) -> AsyncIterator[tuple[Location, PlaceContent]]:
        """Read places in their order. Without `again`, content that another session has read is reused; it is valid
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
                yield location, PlaceContent(latest, is_news=key not in known or latest != known[key])
            left = left[len(read) :]

    def _read_next(self, locations: Iterable[Location]) -> dict[str, Parsed | None]:
        """Read places until one has content. Most places are empty, and a separate step of a worker for each would cost
        more than the reading."""
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
        """Watch the files that places name, if these have changed."""
        if self._names_changed:
            self._names_changed = False
            await self.watch()

    async def watch(self) -> None:
        """Watch exactly the places that sessions use."""
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


__all__ = ["JudgedContent", "PlaceContent", "WatchedPlaces"]
