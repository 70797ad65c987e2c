"""Keeps the directories whose files are followed for each session, across restarts.

A session has one entry for each of its directories. Two sessions in one directory share its work tree.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ahpkit.changes import catalogue as wire
from ahpkit.changes.git import GitError, find, make
from ahpkit.changes.record import Record, TurnRecord
from ahpkit.changes.session import SessionChanges
from ahpkit.changes.sides import FileChange
from ahpkit.changes.work_tree import WorkTree
from ahpkit.host.feature import Services
from ahpkit.host.resources.safe_open import SafeOpener, anywhere, real_path
from ahpkit.platform.files import local_path
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import SessionState

_log = logging.getLogger(__name__)

_KEY = "changes/"
"""Prefix of the durable values with the records. The session's URI follows; for its further directories also `#` and
the directory's key."""


@dataclass(slots=True, kw_only=True)
class Followed:
    """One directory of one session."""

    session: str
    """The session's URI."""
    key: str
    """Names this directory of this session in the URIs of changesets."""
    directory: Path
    changes: SessionChanges
    root_uri: str
    prefix: str
    """The directory below the work tree's root; empty: the root itself."""
    in_git: bool
    shows: Callable[[Path], bool]
    """Whether clients may see a file at all."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    own_tree: bool = False
    """The work tree was made for this session."""
    running: set[str] = field(default_factory=set[str])
    beside: dict[str, list[tuple[Followed, str]]] = field(default_factory=dict[str, "list[tuple[Followed, str]]"])
    """Running turn → turns of other sessions that ran at the same time and could have written the same files."""
    reviewed: set[str] = field(default_factory=set[str])

    def paths_of(self, other: Followed, paths: Collection[str]) -> set[str]:
        """Paths of another directory's work tree as paths in this work tree, without those that lie outside of it."""
        root, other_root = self.changes.tree.root, other.changes.tree.root
        if root == other_root:
            return {*paths}
        places = (other_root / path for path in paths)
        return {place.relative_to(root).as_posix() for place in places if place.is_relative_to(root)}

    def running_turns(self) -> list[TurnRecord]:
        """The records of the turns that run. A turn that was truncated away has none."""
        turns = self.changes.record.turns
        return [turns[turn_id] for turn_id in self.running if turn_id in turns]

    async def own(self, changes: Sequence[FileChange]) -> list[FileChange]:
        """Changes inside the directory, of files that clients may see. There may be very many."""
        return await asyncio.to_thread(self._own, changes)

    def _own(self, changes: Sequence[FileChange]) -> list[FileChange]:
        return [change for change in changes if all(map(self._is_own, change.paths))]

    def _is_own(self, path: str) -> bool:
        return path.startswith(self.prefix) and self.shows(self.changes.tree.root / path)


class FollowedDirectories:
    """The followed directories of sessions. `place` holds our objects and indexes, one folder for each directory."""

    def __init__(
        self,
        place: Path,
        *,
        services: Services,
        default_directory: Path,
        trusts: Callable[[Path], bool],
        shows: Callable[[Path], bool],
        reaches: Callable[[Path], bool] = lambda _: True,
        writing: Callable[[], SafeOpener] = anywhere,
    ) -> None:
        self.services = services
        self.trusts = trusts
        self._place = place
        self._default_directory = default_directory
        self._shows = shows
        self._reaches = reaches
        self._writing = writing
        self._sessions: dict[str, dict[Path, Followed]] = {}
        self._finding: dict[str, asyncio.Lock] = {}
        self._trees: dict[Path, WorkTree] = {}
        self._by_tree: dict[WorkTree, list[Followed]] = {}
        self._keys: dict[str, str] = {}
        """Key → the session it belongs to."""
        self._keyed: set[str] = set()
        """Sessions whose directories all have their keys in `_keys`. A directory that is added later gets one then."""
        self._later: dict[str, set[str]] | None = None
        """Session → the keys of the durable values of its further directories; filled when they are first needed."""

    # -- which there are ---------------------------------------------------------------------------------------------

    async def of_session(self, session_uri: str) -> list[Followed]:
        """A session's directories in the session's order. They are found when they are first needed. Directories that
        cannot be followed, or that lie outside the present roots, are left out."""
        async with self._finding.setdefault(session_uri, asyncio.Lock()):
            named = await self._named(session_uri)
            if named is None:
                return []
            known = self._sessions.setdefault(session_uri, {})
            wanted = await asyncio.to_thread(lambda: [one for one in named if self._reaches(real_path(one))])
            for directory in wanted:
                if directory not in known and (tree := await self.tree(directory)) is not None:
                    found = await self._restored(session_uri, self._key(session_uri, directory, named), directory, tree)
                    if self._sessions.get(session_uri) is not known:
                        return []  # The session was forgotten meanwhile.
                    self._add(found)
            return [known[directory] for directory in wanted if directory in known]

    def known(self, session_uri: str) -> list[Followed]:
        """The directories of a session that were found already."""
        return list(self._sessions.get(session_uri, {}).values())

    def sharing(self, followed: Followed) -> list[Followed]:
        """The directories of other sessions with the same work tree, or with one that lies inside the other."""
        root = followed.changes.tree.root
        found: list[Followed] = []
        for tree, there in self._by_tree.items():
            if tree.root.is_relative_to(root) or root.is_relative_to(tree.root):
                found += (one for one in there if one.session != followed.session)
        # A repository inside another one, such as a work tree of a session, holds none of its files.
        return [one for one in found if one.changes.tree.root == root or not (one.in_git and followed.in_git)]

    async def by_key(self, key: str) -> Followed | None:
        """The directory that a changeset's URI names."""
        session_uri = await self._session_of(key)
        if session_uri is None:
            return None
        return next((one for one in await self.of_session(session_uri) if one.key == key), None)

    def known_by_key(self, key: str) -> Followed | None:
        """The directory that a changeset's URI names, if it was found already."""
        return next((one for one in self.known(self._keys.get(key, "")) if one.key == key), None)

    async def _session_of(self, key: str) -> str | None:
        if key not in self._keys:  # After a restart it may not have been found yet.
            for uri in self.services.session_uris():
                if uri not in self._keyed and (named := await self._named(uri)) is not None:
                    self._keyed.add(uri)
                    self._keys |= {self._key(uri, directory, named): uri for directory in named}
                    self._keys[wire.key_of(uri)] = uri
                    await asyncio.sleep(0)  # Other tasks run between two sessions.
        return self._keys.get(key)

    async def _named(self, session_uri: str) -> list[Path] | None:
        """The directories that a session names; None if there is no such session."""
        async with self.services.reading(session_uri):
            state = self.services.session(session_uri)
            return None if state is None else session_directories(state, self._default_directory)

    # -- finding and forgetting --------------------------------------------------------------------------------------

    async def tree(self, directory: Path) -> WorkTree | None:
        """The work tree of a directory; None without git, and for a directory that is not there."""
        if not await asyncio.to_thread(os.path.isdir, directory):
            return None
        if directory not in self._trees:
            named = hashlib.sha256(str(directory).encode("utf-8", "surrogateescape")).hexdigest()[:20]
            place = self._place / named
            try:
                git = await find(
                    directory, objects=place, runs_filters=lambda: self.trusts(directory), reaches=self._reaches
                )
                git = git or make(directory, objects=place)
            except (GitError, OSError) as error:
                _log.warning("no changesets for %s: %s", directory, error)
                return None
            if git is None:
                return None
            # Another task may have made it meanwhile. Each directory has only one, because it has one index.
            self._trees.setdefault(directory, WorkTree(git, shows=self._shows, writing=self._writing))
        return self._trees[directory]

    async def _restored(self, session_uri: str, key: str, directory: Path, tree: WorkTree) -> Followed:
        stored: JsonObject = self.services.values.get(self._stored_at(session_uri, key)) or {}
        in_git = tree.git.git_dir != tree.git.objects.parent
        real = await asyncio.to_thread(directory.resolve)
        below = real.relative_to(tree.root).as_posix() if real.is_relative_to(tree.root) else "."
        changes = SessionChanges(tree, Record.from_json(stored), edits_only=not in_git)
        with suppress(GitError, OSError):  # Its objects are gone, for example.
            await changes.count_interrupted()
        return Followed(
            session=session_uri,
            key=key,
            directory=directory,
            changes=changes,
            root_uri=tree.root.as_uri(),
            prefix="" if below == "." else f"{below}/",
            in_git=in_git,
            shows=self._shows,
            reviewed=set(stored.get("reviewed", ())),
        )

    def _add(self, followed: Followed) -> None:
        self._sessions[followed.session][followed.directory] = followed
        self._by_tree.setdefault(followed.changes.tree, []).append(followed)
        self._keys[followed.key] = followed.session

    def _key(self, session_uri: str, directory: Path, present: Sequence[Path]) -> str:
        """The key of one of a session's directories. The session's first directory has the key of the session."""
        first: JsonObject = self.services.values.get(_KEY + session_uri) or {}
        own = first.get("directory") or str(next(iter(present), ""))
        return wire.key_of(session_uri if own == str(directory) else f"{session_uri}\n{directory}")

    def remember(self, followed: Followed) -> None:
        record = followed.changes.record.to_json()
        record |= {"reviewed": sorted(followed.reviewed), "directory": str(followed.directory)}
        place = self._stored_at(followed.session, followed.key)
        self.services.values.set(place, record)
        if self._later is not None and "#" in place:
            self._later.setdefault(followed.session, set()).add(place)

    @staticmethod
    def _stored_at(session_uri: str, key: str) -> str:
        return _KEY + session_uri + ("" if key == wire.key_of(session_uri) else f"#{key}")

    def forget(self, session_uri: str) -> list[Followed]:
        """Forget a session that is gone; returns the directories that were followed for it."""
        gone = self.rest(session_uri)
        self._keyed.discard(session_uri)
        for followed in gone:
            self._keys.pop(followed.key, None)
        for place in (_KEY + session_uri, *self._later_places().pop(session_uri, ())):
            self.services.values.set(place, None)
        return gone

    def rest(self, session_uri: str) -> list[Followed]:
        """Forget a session that goes to rest; returns the directories that were followed for it. They are found again
        when they are needed."""
        gone = list(self._sessions.pop(session_uri, {}).values())
        self._finding.pop(session_uri, None)
        for followed in gone:
            self._drop(followed)
        return gone

    def _later_places(self) -> dict[str, set[str]]:
        if self._later is None:
            self._later = {}
            for place in self.services.values.keys(_KEY):
                if "#" in place:
                    self._later.setdefault(place.removeprefix(_KEY).rpartition("#")[0], set()).add(place)
        return self._later

    def forget_directories(self, session_uri: str, gone: Collection[Followed]) -> None:
        """Forget directories that the session has left."""
        for followed in gone:
            self._sessions[session_uri].pop(followed.directory, None)
            self._keys.pop(followed.key, None)
            self._drop(followed)

    def _drop(self, followed: Followed) -> None:
        tree = followed.changes.tree
        rest = [other for other in self._by_tree.get(tree, ()) if other is not followed]
        if rest:
            self._by_tree[tree] = rest
        else:
            self._by_tree.pop(tree, None)
            self._trees = {directory: one for directory, one in self._trees.items() if one is not tree}


def session_directories(state: SessionState, default: Path) -> list[Path]:
    """The directories on this machine that a session works in."""
    uris: Sequence[str] = state.get("workingDirectories") or ()
    paths = [local_path(uri) for uri in uris if uri.startswith("file:")]
    return [path for path in paths if path is not None] if uris else [default]


__all__ = ["Followed", "FollowedDirectories"]
