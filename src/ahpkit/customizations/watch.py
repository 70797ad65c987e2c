"""Watches places for changes, and reports in which of them something changed.

Every folder of a place is watched separately, but never a whole workspace, so that `node_modules` and similar folders
are not watched. For a place that does not exist yet, the nearest existing folder is watched. When folders appear or
disappear, the watches are set up again before the change is reported, so that a reader of the place misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ahpkit.customizations.source import IGNORED_FOLDERS
from ahpkit.host.resources.watches import open_notify
from ahpkit.platform.files import followed

_log = logging.getLogger(__name__)

_STEP_MS = 30
"""Milliseconds without a change that end a burst of changes, such as an editor's save or a checkout."""

_DEBOUNCE_MS = 120
"""Milliseconds after which a burst that does not end is reported, because clients must get a change within 300 ms."""

_PAUSE = 0.25
"""Seconds before everything is watched again after the backend failed, so that repeated failures cost little."""

_TIMEOUT_MS = 3_600_000
"""Milliseconds that one wait of the backend lasts. Then the thread waits again."""

_FOLDER_LIMIT = 20_000
"""Folders watched at once; a Linux host allows a user some 65,000 or more."""

_TEMPORARY_ENDINGS = ("~", ".swp", ".swo", ".swx", ".tmp", ".crswap", ".part", "#")
_TEMPORARY_BEGINNINGS = (".#", ".goutputstream-", "4913")
"""Names of temporary files that editors write beside the file that they save."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A place: a folder with everything in it, or only some files below it."""

    key: str
    root: Path
    files: tuple[str, ...] = ()

    def folders(self) -> Iterator[str]:
        """The folders to watch: those of the place, and the nearest one above that exists."""
        for target in [self.root / name for name in self.files] or [self.root]:
            yield _nearest(target.parent)
        if not self.files:
            yield from _all_folders(str(self.root))


def touches(root: str, files: Collection[str], path: str) -> bool:
    """Whether a change at `path` concerns the place at `root`: it is inside, or in a folder on the way to it."""
    if files:
        return any(_within(os.path.join(root, name), path) for name in files)
    if _within(path, root):
        return not any(part in IGNORED_FOLDERS for part in path[len(root) :].split(os.sep))
    return _within(root, path)


class Watcher:
    """`async with Watcher() as watcher: await watcher.watch(places)`, then `async for keys in watcher`.

    Yields sets of keys; the changes of one burst come together.
    """

    def __init__(self) -> None:
        self._places: dict[str, Watched] = {}
        self._changed: set[str] = set()
        self._wake = asyncio.Event()
        self._stale = False
        self._wanted = self._set_up_for = 0
        """The number of changes of the set of places, and the number up to which they are watched."""
        self._changing = asyncio.Lock()
        self._current: _WatchedFolders | None = None
        self._retiring: asyncio.Task[None] | None = None
        """A watch that was replaced, but still reports the changes that it noticed before."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop watching."""
        self._places = {}
        async with self._changing:
            await self._replace(None)
            await self._retired()

    async def watch(self, places: Iterable[Watched]) -> None:
        """Watch exactly these places. When this returns, every later change will be noticed."""
        wanted = {place.key: place for place in places}
        if wanted != self._places:
            self._places = wanted
            self._wanted += 1
        await self._set_up()

    @property
    def count(self) -> int:
        """How many places are watched."""
        return len(self._places)

    @property
    def watching(self) -> bool:
        """Whether every place is really watched."""
        return self._current is not None and self._current.complete and self._set_up_for == self._wanted

    async def __aiter__(self) -> AsyncIterator[frozenset[str]]:
        while True:
            await self._wake.wait()
            if self._stale:
                self._stale = False
                self._wanted += 1
                await self._set_up()
            self._wake.clear()
            changed, self._changed = self._changed & self._places.keys(), set()
            if changed:
                yield frozenset(changed)

    async def _set_up(self) -> None:
        """Update the watches. If many tasks call this at once, it is done at most twice."""
        async with self._changing:
            if self._set_up_for == self._wanted:
                return
            wanted, places = self._wanted, list(self._places.values())
            loop = asyncio.get_running_loop()

            def on_changes(keys: frozenset[str], folders_changed: bool) -> None:
                loop.call_soon_threadsafe(self._on_changes, keys, folders_changed)

            await self._retired()
            await self._replace(await asyncio.to_thread(_watch_existing, places, on_changes))
            self._set_up_for = wanted

    async def _replace(self, new: _WatchedFolders | None) -> None:
        """Start the new watch before the old one stops, and let the old one finish its burst: a change may be reported
        twice, but is never missed."""
        old, self._current = self._current, new
        if old is not None:
            old.replaced = True
            patience = 0 if new is None else (_DEBOUNCE_MS + _STEP_MS) / 1000
            self._retiring = asyncio.create_task(asyncio.to_thread(old.close, patience))

    async def _retired(self) -> None:
        """Wait until there is only one watch, so that there are never more than two."""
        if self._retiring is not None:
            await self._retiring
            self._retiring = None

    def _on_changes(self, keys: frozenset[str], folders_changed: bool) -> None:
        if self._current is None:
            return
        self._stale = self._stale or folders_changed
        self._changed |= keys
        self._wake.set()


class _Places:
    """Finds the places that a change concerns by its path. The cost does not depend on the number of places."""

    def __init__(self, places: Iterable[Watched]) -> None:
        self._at: defaultdict[str, set[tuple[Watched, str]]] = defaultdict(set)
        """Root → the places with that root."""
        self._below: defaultdict[str, set[tuple[Watched, str]]] = defaultdict(set)
        """Places by each watched path, and by every folder above it."""
        for place in places:
            for root in _spellings(place.root):
                self._at[root].add((place, root))
                for target in [os.path.join(root, name) for name in place.files] or [root]:
                    for folder in _upwards(target):
                        self._below[folder].add((place, root))

    def concerned(self, path: str) -> set[str]:
        """The keys of the places that a change at this path concerns."""
        near = self._below.get(path, set()).union(*(self._at.get(folder, ()) for folder in _upwards(path)))
        return {place.key for place, root in near if touches(root, place.files, path)}


_OnChanges = Callable[[frozenset[str], bool], None]
"""Called with the places that changed, and whether folders appeared or disappeared."""


class _WatchedFolders:
    """One set of watched folders, and the thread that waits for their changes and finds out which places they touch."""

    def __init__(self, places: list[Watched], folders: list[str], on_changes: _OnChanges) -> None:
        self.replaced = False
        self.complete = len(folders) <= _FOLDER_LIMIT
        folders = folders[:_FOLDER_LIMIT]
        self.folders = frozenset(folders)
        self.places = _Places(places)
        self._notify = open_notify(folders, recursive=False)
        self._stop = threading.Event()
        self._on_changes = on_changes
        self._thread = threading.Thread(target=self._run, name="customization-watcher", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                changes = self._notify.watch(_DEBOUNCE_MS, _STEP_MS, _TIMEOUT_MS, self._stop)
            except RuntimeError as error:  # A name that is not UTF-8: the backend cannot continue.
                _log.debug("a change was not understood, everything is looked at again: %s", error)
                if not self._stop.wait(_PAUSE):
                    self._tell(self.folders)
                return
            if changes in ("stop", "signal"):
                return
            if isinstance(changes, set):
                self._tell({path for _, path in changes})

    def _tell(self, paths: Collection[str]) -> None:
        """Find and report the places that changes concern. Takes a while after a checkout, which changes thousands of
        files."""
        relevant = [path for path in paths if not _is_temporary(path)]
        keys = frozenset(key for path in relevant for key in self.places.concerned(path))
        if keys:  # Folders that appeared before this watch was replaced were found when the new one was set up.
            folders = not self.replaced and any(path in self.folders or os.path.isdir(path) for path in relevant)
            self._on_changes(keys, folders)

    def close(self, patience: float) -> None:
        """Stop watching after some seconds, so that changes that were noticed already are reported. Blocks."""
        time.sleep(patience)
        self._stop.set()
        self._thread.join()
        self._notify.close()


def _watch_existing(places: list[Watched], on_changes: _OnChanges) -> _WatchedFolders | None:
    """Watch the folders that exist; try again when one disappears meanwhile."""
    while True:
        folders = list(dict.fromkeys(folder for place in places for folder in place.folders()))
        if len(folders) > _FOLDER_LIMIT:
            _log.warning("%d folders to watch; changes in %d go unnoticed", len(folders), len(folders) - _FOLDER_LIMIT)
        try:
            return _WatchedFolders(places, folders, on_changes) if folders else None
        except FileNotFoundError:
            continue
        except (OSError, RuntimeError) as error:
            _log.warning("cannot watch customizations: %s. Changes are seen by the next session.", error)
            return None


def _all_folders(root: str) -> Iterator[str]:
    for folder, folders, _ in os.walk(root):
        folders[:] = [name for name in folders if name not in IGNORED_FOLDERS]
        yield folder


def _nearest(folder: Path) -> str:
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def _upwards(path: str) -> Iterator[str]:
    """A path and every folder above it."""
    yield path
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


def _spellings(root: Path) -> set[str]:
    """The root as it was given and with links resolved, because systems differ in which form they report."""
    return {str(root), followed(root)}


def _is_temporary(path: str) -> bool:
    name = os.path.basename(path)
    return name.endswith(_TEMPORARY_ENDINGS) or name.startswith(_TEMPORARY_BEGINNINGS)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


__all__ = ["Watched", "Watcher", "touches"]
