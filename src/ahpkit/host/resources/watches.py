"""Resource watches: each watch is a channel that exists as long as somebody is subscribed.

All watches together use two watchers of the operating system: one for single folders, one for whole trees. When the set
of paths changes, a new watcher is started before the old one is stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from watchfiles import Change
from watchfiles._rust_notify import RustNotify  # watchfiles documents it as its backend; `awatch` blocks while it opens

from ahpkit.host.feature import Services
from ahpkit.host.limits import MAX_WATCHED_FOLDERS, MAX_WATCHES, MAX_WATCHES_OF_ALL
from ahpkit.protocol.errors import InvalidParams, InvalidRequest, NotFound
from ahpkit.protocol.resource_watch import (
    CreateResourceWatchParams,
    ResourceChange,
    ResourceChangeType,
    ResourceWatchState,
    resource_watch_changed,
)

_log = logging.getLogger(__name__)

_POLL_MS = 1_000
"""Milliseconds between two checks of folders if the system cannot notify us."""


def open_notify(paths: Sequence[str], *, recursive: bool) -> RustNotify:
    """Watch these paths; raises `FileNotFoundError` when one is not there.

    Linux gives a user 128 watchers and some ten thousand watched folders, for all programs together. Paths that are not
    UTF-8 are left out: the backend takes no others.
    """
    paths = [path for path in paths if path == os.fsencode(path).decode(errors="replace")]
    try:
        return _open_system_watcher(paths, recursive)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        if missing := next((path for path in paths if not os.path.exists(path)), None):
            raise FileNotFoundError(missing) from error
        _log.warning(
            "the system cannot watch more files (%s); %d places are checked every second instead", error, len(paths)
        )
        return RustNotify(list(paths), False, True, _POLL_MS, recursive, True)


def _open_system_watcher(paths: Sequence[str], recursive: bool) -> RustNotify:
    """Raises `OSError` when the system has no more watchers, or watches no more folders.

    Where a folder may not be read, the backend is told to leave such folders out. Then it does not report that the
    system watches no more folders, so this is tried first with a folder of our own.
    """
    try:
        return RustNotify(list(paths), False, False, 0, recursive, False)
    except PermissionError:
        with tempfile.TemporaryDirectory() as folder:
            RustNotify([folder], False, False, 0, False, False).close()
        return RustNotify(list(paths), False, False, 0, recursive, True)


_UNCLAIMED = 30.0
"""Seconds after which a watch without subscribers is closed."""

_STEP_MS = 50
"""Changes that follow each other within this many milliseconds are reported together."""

_DEBOUNCE_MS = 1_600
_TIMEOUT_MS = 3_600_000
"""Milliseconds that one wait of the backend lasts. Then the thread waits again."""

_MAX_PATTERNS = 100
_MAX_PATTERN = 200
"""Characters. Each change is compared with each pattern of each watch."""

_TOLD_AT_ONCE = 500
"""Changes in one action: some milliseconds of work."""

_CHANGES: dict[Change, ResourceChangeType] = {
    Change.added: "added",
    Change.modified: "updated",
    Change.deleted: "deleted",
}

_Changes = set[tuple[int, str]]
_Told = Callable[[_Changes, bool], Iterator[tuple[str, list[ResourceChange]]]]
_Tell = Callable[[str, list[ResourceChange]], None]


@dataclass(frozen=True, slots=True)
class _Watch:
    client_id: str
    path: Path
    recursive: bool
    params: CreateResourceWatchParams

    def items(self, changes: Sequence[tuple[int, str]]) -> list[ResourceChange]:
        """The changes that concern this watch."""
        return [
            {"uri": Path(changed).as_uri(), "type": _CHANGES[Change(change)]}
            for change, changed in changes
            if self._covers(changed) and _wanted(Path(changed), self.path, self.params)
        ]

    def _covers(self, changed: str) -> bool:
        root = str(self.path)
        if changed == root or os.path.dirname(changed) == root:
            return True
        return self.recursive and changed.startswith(root.rstrip(os.sep) + os.sep)


class Watches:
    """All watches of a host."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._watches: dict[str, _Watch] = {}
        self._watchers = [
            _Watcher(recursive=recursive, changes_of=self._changes_of, tell=self._tell) for recursive in (False, True)
        ]

    def recover(self) -> None:
        """Close the channels of an earlier run: nothing watches them any more."""
        for uri in self._services.channels("resourceWatch"):
            self._services.close_channel(uri)

    async def create(self, client_id: str, path: Path, params: CreateResourceWatchParams) -> str:
        """Create a watch. When this returns the channel, every later change will be noticed."""
        recursive = params.get("recursive", False)
        self._check_room(client_id)
        _check_patterns(params)
        await asyncio.to_thread(_check_place, path, recursive)
        self._check_room(client_id)  # Checked again: other watches may have been created meanwhile.
        uri = f"ahp-resource-watch:/{self._services.new_id()}"
        self._watches[uri] = _Watch(client_id, path, recursive, params)
        try:
            await self._listen(recursive)
        except BaseException:
            self._watches.pop(uri, None)
            raise
        state: ResourceWatchState = {"root": params["uri"], "recursive": recursive}
        if "excludes" in params:
            state["excludes"] = params["excludes"]
        if "includes" in params:
            state["includes"] = params["includes"]
        self._services.open_channel(uri, state)
        asyncio.get_running_loop().call_later(_UNCLAIMED, self._give_up, uri)
        return uri

    def root(self, uri: str) -> str | None:
        """The URI that a channel watches; None if there is no such watch."""
        watch = self._watches.get(uri)
        return None if watch is None else watch.params["uri"]

    def release(self, uri: str) -> None:
        """The last subscriber left."""
        watch = self._watches.pop(uri, None)
        if watch is not None:
            self._services.close_channel(uri)
            self._services.spawn(self._listen(watch.recursive), name="watch fewer files")

    async def aclose(self) -> None:
        for uri in list(self._watches):
            del self._watches[uri]
            self._services.close_channel(uri)
        for ears in self._watchers:
            await ears.listen(frozenset())

    def _check_room(self, client_id: str) -> None:
        own = sum(watch.client_id == client_id for watch in self._watches.values())
        if own >= MAX_WATCHES:
            raise InvalidRequest(f"one client may have {MAX_WATCHES} watches; unsubscribe from some first")
        if len(self._watches) >= MAX_WATCHES_OF_ALL:
            raise InvalidRequest(f"all clients together have {MAX_WATCHES_OF_ALL} watches; try again later")

    async def _listen(self, recursive: bool) -> None:
        paths = frozenset(str(watch.path) for watch in self._watches.values() if watch.recursive == recursive)
        await self._watchers[recursive].listen(paths)

    def _give_up(self, uri: str) -> None:
        if uri in self._watches and not self._services.subscribers(uri):
            self.release(uri)

    def _changes_of(self, changes: _Changes, recursive: bool) -> Iterator[tuple[str, list[ResourceChange]]]:
        """The changes for each watch, in parts. Runs in a thread, because many changes and patterns take a while."""
        ordered = sorted(changes)
        for uri, watch in list(self._watches.items()):
            items = watch.items(ordered) if watch.recursive == recursive else []
            for start in range(0, len(items), _TOLD_AT_ONCE):
                yield uri, items[start : start + _TOLD_AT_ONCE]

    def _tell(self, uri: str, items: list[ResourceChange]) -> None:
        if uri in self._watches and self._services.state(uri):
            self._services.dispatch(uri, resource_watch_changed(changes={"items": items}))


class _Watcher:
    """Reports the changes below a set of paths. The set can be replaced."""

    def __init__(self, *, recursive: bool, changes_of: _Told, tell: _Tell) -> None:
        """`changes_of` computes the reports, in a thread. `tell` sends one, in the event loop."""
        self._recursive = recursive
        self._changes_of = changes_of
        self._tell = tell
        self._wanted: frozenset[str] = frozenset()
        self._changing = asyncio.Lock()
        self._watched: tuple[frozenset[str], _WatchedPaths | None] = (frozenset(), None)

    async def listen(self, paths: frozenset[str]) -> None:
        """Watch exactly these paths. When several calls come at once, the last one counts."""
        self._wanted = paths
        async with self._changing:
            wanted, (known, old) = self._wanted, self._watched
            if wanted == known:
                return
            loop = asyncio.get_running_loop()

            def on_changes(changes: _Changes) -> Iterator[None]:
                for uri, items in self._changes_of(changes, self._recursive):
                    loop.call_soon_threadsafe(self._tell, uri, items)
                    yield

            watched = await asyncio.to_thread(_watch_existing, wanted, self._recursive, on_changes)
            self._watched = (wanted, watched)
            if old is not None:
                await asyncio.to_thread(old.close)


_OnChanges = Callable[[_Changes], Iterator[None]]
"""Called with changes. It is a generator, so that a stop does not wait until all changes are handled."""


class _WatchedPaths:
    """One set of watched paths, and the thread that waits for their changes."""

    def __init__(self, paths: Sequence[str], recursive: bool, on_changes: _OnChanges) -> None:
        self._notify = open_notify(paths, recursive=recursive)
        self._on_changes = on_changes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resource-watcher", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                changes = self._notify.watch(_DEBOUNCE_MS, _STEP_MS, _TIMEOUT_MS, self._stop)
            except RuntimeError as error:  # A name that is not UTF-8: the backend cannot continue after that.
                _log.warning("a change was not understood; later ones go unnoticed until a watch is made: %s", error)
                return
            if changes in ("stop", "signal"):
                return
            for _ in self._on_changes(changes) if isinstance(changes, set) else ():
                if self._stop.is_set():
                    return

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._notify.close()


def _watch_existing(paths: Iterable[str], recursive: bool, on_changes: _OnChanges) -> _WatchedPaths | None:
    """Watch the paths that exist; try again when one disappears meanwhile."""
    while there := [path for path in sorted(paths) if os.path.exists(path)]:
        try:
            return _WatchedPaths(there, recursive, on_changes)
        except FileNotFoundError:
            continue
        except (OSError, RuntimeError) as error:
            _log.warning("files cannot be watched: %s", error)
            return None
    return None


def _check_place(path: Path, recursive: bool) -> None:
    if not path.exists():
        raise NotFound(f"{path} does not exist")
    if recursive:
        for number, _ in enumerate(os.walk(path)):
            if number > MAX_WATCHED_FOLDERS:
                raise InvalidParams(f"uri: has more than {MAX_WATCHED_FOLDERS} folders below it; watch a part of it")


def _check_patterns(params: CreateResourceWatchParams) -> None:
    for key in ("includes", "excludes"):
        patterns: list[str] = params.get(key, {}).get("items", [])
        if len(patterns) > _MAX_PATTERNS or any(len(pattern) > _MAX_PATTERN for pattern in patterns):
            raise InvalidParams(f"{key}: at most {_MAX_PATTERNS} patterns of at most {_MAX_PATTERN} characters")


def _wanted(changed: Path, root: Path, params: CreateResourceWatchParams) -> bool:
    name = changed.relative_to(root).as_posix() if changed.is_relative_to(root) else changed.name
    includes = params.get("includes", {}).get("items")
    return (includes is None or _matches(name, includes)) and not _matches(
        name, params.get("excludes", {}).get("items", ())
    )


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """A pattern is a glob for the whole relative path, or a path whose descendants it covers."""
    return any(fnmatch(name, pattern) or name.startswith(f"{pattern.rstrip('/')}/") for pattern in patterns)


__all__ = ["RustNotify", "Watches", "open_notify"]
