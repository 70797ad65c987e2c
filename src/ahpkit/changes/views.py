"""Opens changeset channels when somebody subscribes, keeps them up to date, and closes them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

from ahpkit.changes import catalogue as wire
from ahpkit.changes.catalogue import View
from ahpkit.changes.followed_directories import Followed, FollowedDirectories
from ahpkit.changes.git import GitError
from ahpkit.changes.sides import FileChange, Side
from ahpkit.host.feature import Services
from ahpkit.host.states import NO_CHAT, NO_SESSION
from ahpkit.protocol.changeset import (
    ChangesetFile,
    ChangesetFilesReviewChangedAction,
    ChangesetOperation,
    ChangesetOperationStatus,
    ChangesetState,
    changeset_cleared,
    changeset_content_changed,
    changeset_file_removed,
    changeset_file_set,
    changeset_operation_status_changed,
    changeset_operations_changed,
    changeset_status_changed,
)
from ahpkit.protocol.chat.turns import find_turn
from ahpkit.protocol.common.state import ErrorInfo, JsonObject

_ONE_BY_ONE = 20
"""At most this many differences are sent as single actions; for more, the whole list is replaced."""

_MAX_FILES = 5_000
"""Files that a changeset lists. Its last entry, the directory itself, says how many more there are."""

_ELSEWHERE = "What this turn changed is not known here: it ran before its chat came to this session"


class Views:
    """The changesets that somebody follows."""

    def __init__(self, services: Services, followed: FollowedDirectories) -> None:
        self.services = services
        self._directories = followed
        self._open: dict[str, View] = {}

    # -- life of a channel -------------------------------------------------------------------------------------------

    async def open(self, uri: str) -> bool:
        """Somebody subscribes to a changeset: show that it is being computed, then compute it."""
        view = wire.read_uri(uri)
        followed = None if view is None else await self._directories.by_key(view.key)
        if view is None or followed is None or not await self._is_offered(view, followed):
            return False
        if self.services.state(uri) is None:
            # The last subscriber may have left a moment ago: wait until the old channel is closed.
            await self.services.durable()
        if self.services.state(uri) is None:
            self._open[uri] = view
            self.services.open_channel(uri, {"status": "computing", "files": []}, kind="changeset", is_retold=True)
            await self.services.durable()
            self.services.spawn(self.compute(followed, uri, view), name="a changeset")
        return True

    async def _is_offered(self, view: View, followed: Followed) -> bool:
        """Whether the session's catalogue leads to this changeset: with any turn that one of its chats shows."""
        if view.kind in ("uncommitted", "compare-turns") and not followed.in_git:
            return False
        known = followed.changes.record.turns
        return await self._are_shown({turn for turn in view.turns if turn not in known}, followed.session)

    async def _are_shown(self, turns: set[str], session_uri: str) -> bool:
        if not turns:
            return True
        async with self.services.reading(session_uri):
            chats = [entry["resource"] for entry in (self.services.session(session_uri) or NO_SESSION)["chats"]]
        for chat in chats:
            async with self.services.reading(chat):
                turns -= {turn for turn in turns if find_turn(self.services.chat(chat) or NO_CHAT, turn) is not None}
            if not turns:
                break
        return not turns

    def recover(self) -> None:
        """Close the channels of an earlier run. A client that subscribes again gets a new one."""
        for uri in self.services.channels("changeset"):
            self.services.close_channel(uri)

    def unsubscribed(self, uri: str) -> None:
        if self._open.pop(uri, None) is not None:
            self.services.close_channel(uri)

    def end(self, gone: Collection[Followed], turns: Collection[str] | None = None) -> None:
        """Close the changesets of directories that are not followed any more; with `turns` only those of these
        turns."""
        keys = {followed.key for followed in gone}
        for uri, view in list(self._open.items()):
            if view.key in keys and (turns is None or set(turns) & set(view.turns)):
                self._end(uri)

    def _end(self, uri: str) -> None:
        self._open.pop(uri, None)
        if self.services.state(uri) is not None:
            self.services.dispatch(uri, changeset_cleared())
            self.services.close_channel(uri)

    def show_any(self, followed: Collection[Followed]) -> bool:
        """Whether somebody follows a changeset of one of these directories."""
        keys = {one.key for one in followed} if self._open else set[str]()
        return any(view.key in keys for view in self._open.values())

    def find(self, uri: str) -> tuple[Followed, View, ChangesetState] | None:
        """What an open channel is about, and its state."""
        view, state = self._open.get(uri), self.services.changeset(uri)
        followed = None if view is None else self._directories.known_by_key(view.key)
        return None if view is None or state is None or followed is None else (followed, view, state)

    async def is_inside(self, followed: Followed) -> bool:
        """Whether a directory is below the roots, which the owner may have changed since it was opened."""
        return followed in await self._directories.of_session(followed.session)

    # -- content -----------------------------------------------------------------------------------------------------

    async def show(self, followed: Followed) -> None:
        """Update all changesets of a directory that somebody follows."""
        for uri, view in list(self._open.items()):
            if view.key == followed.key:
                await self.compute(followed, uri, view)

    async def compute(self, followed: Followed, uri: str, view: View) -> None:
        state = self.services.changeset(uri)
        if state is None:
            return
        if state["status"] not in ("computing", "recomputing"):
            self.services.dispatch(uri, changeset_status_changed(status="recomputing"))
        try:
            async with followed.lock:
                changes = await followed.own(await changes_of(followed, view))
                entries = await asyncio.to_thread(_entries, followed, view, changes)
        except (GitError, OSError, KeyError) as error:
            if self.services.state(uri) is not None:
                self.services.dispatch(uri, changeset_status_changed(status="error", error=failure(error)))
            return
        self._send(followed, uri, view, entries)

    def _send(self, followed: Followed, uri: str, view: View, entries: Sequence[ChangesetFile]) -> None:
        """Send the difference between the shown changeset and the new one."""
        state = self.services.changeset(uri)
        if state is None:
            return
        shown = {entry["id"]: entry for entry in state["files"]}
        wanted: dict[str, ChangesetFile] = {entry["id"]: entry for entry in entries}
        gone = [id for id in shown if id not in wanted]
        new = [entry for id, entry in wanted.items() if shown.get(id) != entry]
        if state.get("operations") is None or len(gone) + len(new) > _ONE_BY_ONE:
            offered = self._operations(followed, view, state, wanted.values())
            self.services.dispatch(uri, changeset_content_changed(files=list(wanted.values()), operations=offered))
        else:
            for id in gone:
                self.services.dispatch(uri, changeset_file_removed(file_id=id))
            for entry in new:
                self.services.dispatch(uri, changeset_file_set(file=entry))
            offered = self._operations(followed, view, state, wanted.values())
            if offered != state.get("operations"):
                self.services.dispatch(uri, changeset_operations_changed(operations=offered))
        self.services.dispatch(uri, changeset_status_changed(status="ready"))

    def _operations(
        self, followed: Followed, view: View, state: ChangesetState, files: Collection[ChangesetFile]
    ) -> list[ChangesetOperation]:
        """The present operations: disabled if there is nothing to do. The status of running and failed ones is kept."""
        shown: dict[str, ChangesetOperation] = {one["id"]: one for one in state.get("operations") or ()}
        offered = wire.operations(
            view.kind,
            in_git=followed.in_git,
            any_files=bool(files),
            own_tree=followed.own_tree,
            can_redo=bool(followed.changes.record.undone),
        )
        return [
            {**shown[one["id"]]} if shown.get(one["id"], one)["status"] in ("running", "error") else one
            for one in offered
        ]

    def operation_status(
        self, uri: str, id: str, status: ChangesetOperationStatus, error: ErrorInfo | None = None
    ) -> None:
        if self.services.state(uri) is not None:
            self.services.dispatch(uri, changeset_operation_status_changed(operation_id=id, status=status, error=error))

    # -- review ------------------------------------------------------------------------------------------------------

    def refuse(self, client_id: str, channel: str, action: JsonObject, state: JsonObject) -> str | None:
        view = self._open.get(channel)
        if action["type"] == "changeset/filesReviewChanged" and view is not None and view.kind == "compare-turns":
            return "this changeset does not offer review"
        return None

    def reviewed(self, uri: str, action: ChangesetFilesReviewChangedAction, files: Iterable[ChangesetFile]) -> None:
        """A person marked files of a changeset as reviewed. Each mark is bound to the file's content."""
        found = self.find(uri)
        if found is None:
            return
        followed, named = found[0], set(action["files"])
        for entry in files:
            if entry["id"] in named:
                mark = wire.mark_of_entry(entry, followed.root_uri)
                (followed.reviewed.add if action["reviewed"] else followed.reviewed.discard)(mark)
        self._directories.remember(followed)


async def changes_of(followed: Followed, view: View) -> list[FileChange]:
    """The changes that a view shows."""
    if any(turn not in followed.changes.record.turns for turn in view.turns):
        raise GitError(_ELSEWHERE)
    match view.kind:
        case "uncommitted":
            return await followed.changes.uncommitted()
        case "session":
            return await followed.changes.session(followed.running)
        case "turn":
            return await followed.changes.turn(view.turns[0])
        case "compare-turns":
            return await followed.changes.between(*view.turns)


def _entries(followed: Followed, view: View, changes: Sequence[FileChange]) -> list[ChangesetFile]:
    """The entries of changed files for clients. Called in a thread."""
    listed, reviewed = [*changes[:_MAX_FILES]], frozenset(followed.reviewed)
    if more := len(changes) - len(listed):
        listed.append(FileChange(None, Side("", "040000", ""), note=f"{more} more files changed; they are not listed"))
    return [wire.file_entry(change, view.key, followed.root_uri, reviewed) for change in listed]


def failure(error: Exception) -> ErrorInfo:
    return {"errorType": "git", "message": str(error)}


__all__ = ["Views", "changes_of", "failure"]
