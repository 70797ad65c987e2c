"""Tracks which directories the sessions open to clients.

A session's state names the directories. Their real paths are resolved in a thread, one session at a time. A directory
that a session no longer names is closed at once.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ahpkit.host.feature import Services
from ahpkit.host.resources.safe_open import file_path, real_path
from ahpkit.host.states import NO_SESSION
from ahpkit.host.workers import RunInThread
from ahpkit.protocol.errors import AhpError, InvalidParams
from ahpkit.protocol.session.customizations import DirectoryCustomization
from ahpkit.protocol.session.state import SessionState

Opening = Literal["work", "saved", "shown", "picture"]
"""Why clients may use a directory: it is a working directory, a customization directory that they may write, or one
that they may only read. The picture of a plugin is a file that they may only read, also outside the roots."""

_PATIENCE = 1.0
"""Seconds that others wait for a directory to be found: a local disk answers in milliseconds."""


class NamedDirectory(NamedTuple):
    """A directory as a session names it."""

    kind: Opening
    path: Path
    within: Path | None = None
    """The folder in which its real path must lie, because a project may have a link in place of a customization
    directory."""


class OpenedDirectories:
    """The directories that sessions open, by real path. Adding one costs the same however many there are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, Mapping[NamedDirectory, str]] = {}
        self._counts: dict[Opening, Counter[str]] = {kind: Counter() for kind in get_args(Opening)}

    def set(self, session_uri: str, places: Mapping[NamedDirectory, str]) -> None:
        """Set the directories that a session opens, with their real paths. A session that is gone opens none."""
        with self._lock:
            old = self._of.pop(session_uri, {})
            for named, path in places.items():
                self._counts[named.kind][path] += 1
            for named, path in old.items():
                self._counts[named.kind][path] -= 1
                if not self._counts[named.kind][path]:
                    del self._counts[named.kind][path]
            if places:
                self._of[session_uri] = places

    def keep(self, session_uri: str, named: Iterable[NamedDirectory]) -> None:
        """Close all directories of a session except these."""
        known = self._of.get(session_uri, {})
        self.set(session_uri, {one: known[one] for one in named if one in known})

    def opens(self, kind: Opening, real: Path) -> bool:
        counts = self._counts[kind]
        return any(str(place) in counts for place in (real, *real.parents))

    def only_shows(self, real: Path) -> bool:
        """Whether the nearest open directory is one that clients may only read."""
        for place in map(str, (real, *real.parents)):
            if place in self._counts["work"] or place in self._counts["saved"]:
                return False
            if place in self._counts["shown"] or place in self._counts["picture"]:
                return True
        return False


def real_places(named: Iterable[NamedDirectory]) -> dict[NamedDirectory, str]:
    """The real paths of directories, without those that do not exist or lie outside of their folder. Blocks."""
    places: dict[NamedDirectory, str] = {}
    for one in named:
        with suppress(InvalidParams):
            real = real_path(one.path)
            if one.within is None or real.is_relative_to(real_path(one.within)):
                places[one] = str(real)
    return places


class SessionDirectories:
    """Updates `opened` when the sessions' states change.

    A session that changed is read before the next file is used. Other sessions, such as those of an earlier run, are
    read when a client is refused.
    """

    def __init__(
        self,
        opened: OpenedDirectories,
        services: Services,
        run: RunInThread,
        default_directory: Path | None = None,
        *,
        patience: float = _PATIENCE,
    ) -> None:
        """`run` runs work in a thread, with a deadline. `default_directory` is the directory of sessions that name
        none."""
        self._opened = opened
        self._services = services
        self._run = run
        self._default_directory = default_directory
        self._patience = patience
        self._reads = 0
        """How many times the directories of a session were found."""
        self._stale: set[str] = set()
        self._known: set[str] = set()
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._found = asyncio.Event()
        """Set while no session is being read."""
        self._found.set()

    def changed(self, session_uri: str) -> None:
        """A session is new, gone, or has another state."""
        self._stale.add(session_uri)

    async def prepare(self, session_uri: str) -> None:
        """Read which directories one session opens."""
        self._stale.discard(session_uri)
        self._look(session_uri)
        if (look := self._looks.get(session_uri)) is not None:
            await asyncio.wait([look], timeout=self._patience)

    async def learn(self) -> int:
        """Read which directories the changed sessions open. Does not wait for long: a directory that is not found in
        time stays closed. Returns a number for `learn_all`."""
        while self._stale:
            self._look(self._stale.pop())
            if self._stale:
                await asyncio.sleep(0)  # Other tasks run between two sessions.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._found.wait()
        return self._reads

    async def learn_all(self, since: int) -> bool:
        """Read which directories all sessions open. Returns whether those of any session were found after `learn`
        returned `since`, perhaps before this call."""
        unknown = self._stale | self._known.symmetric_difference(self._services.session_uris())
        for session_uri in unknown:
            self._stale.discard(session_uri)
            self._look(session_uri)
            await asyncio.sleep(0)  # Other tasks run between two sessions.
        await self._found.wait()
        return self._reads > since

    def _look(self, session_uri: str) -> None:
        """Read one session: close the directories that it no longer opens, and resolve the real paths of the others."""
        state = self._services.session(session_uri)
        named = opened_by(state or NO_SESSION, self._default_directory)
        self._opened.keep(session_uri, named)
        if state is None:
            self._known.discard(session_uri)
        else:
            self._known.add(session_uri)
        self._looks.pop(session_uri, None)
        if named:
            look = self._services.spawn(self._find(session_uri, named), name=f"directories of {session_uri}")
            self._looks[session_uri] = look
        self._tell()

    def _tell(self) -> None:
        if self._looks:
            self._found.clear()
        else:
            self._found.set()

    async def _find(self, session_uri: str, named: Sequence[NamedDirectory]) -> None:
        look = asyncio.current_task()
        try:
            places = await self._run(lambda: real_places(named))
            if self._looks.get(session_uri) is look:  # The session has not changed since.
                self._opened.set(session_uri, places)
                self._reads += 1
        except AhpError:  # The file system does not answer. The next refusal reads this session again.
            self._known.discard(session_uri)
        finally:
            if self._looks.get(session_uri) is look:
                del self._looks[session_uri]
                self._tell()


def opened_by(session: SessionState, default_directory: Path | None = None) -> list[NamedDirectory]:
    """The directories that a session's state opens. For a session that names no directory, the default directory itself
    is not opened, only customization files in it."""
    workings = [path for uri in session.get("workingDirectories", ()) if (path := _local(uri)) is not None]
    opened = [NamedDirectory("work", path) for path in workings]
    if not workings and default_directory is not None:
        workings = [default_directory]
    for container in session.get("customizations", ()):
        if container["type"] == "directory" and "clientId" not in container:
            kind: Opening = "saved" if container.get("writable") else "shown"
            opened.extend(
                NamedDirectory(kind, path, _boundary(path, workings)) for path in _places(container, workings)
            )
        elif container["type"] == "plugin" and "clientId" not in container:
            icons = (_local(icon["src"]) for icon in container.get("icons", ()))
            opened.extend(
                NamedDirectory("picture", path, _boundary(path, workings)) for path in icons if path is not None
            )
    return opened


def _boundary(path: Path, workings: Sequence[Path]) -> Path | None:
    """The nearest folder that contains both this path and a working directory. A project's links must not lead out of
    it."""
    shared = (Path(os.path.commonpath((path, working))) for working in workings)
    return max(shared, key=lambda folder: len(folder.parts), default=None)


def _places(container: DirectoryCustomization, workings: Sequence[Path]) -> Iterator[Path]:
    """The directory of a container. One that contains a working directory opens only its own files."""
    path = _local(container["uri"])
    if path is None:
        return
    if not any(working.is_relative_to(path) for working in workings):
        yield path
        return
    for child in container.get("children", ()):
        if (inner := _local(child.get("uri"))) is not None:
            yield inner


def _local(uri: str | None) -> Path | None:
    try:
        return None if uri is None else file_path(uri)
    except InvalidParams:
        return None


__all__ = ["NamedDirectory", "OpenedDirectories", "Opening", "SessionDirectories", "opened_by", "real_places"]
