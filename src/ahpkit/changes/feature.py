"""Changesets of the host's sessions: offered, computed when somebody looks, kept current while a turn runs.

A changeset channel exists while somebody is subscribed to it. What a session changed is remembered beside the log, so
it survives restarts; git runs in processes of its own and never for a list of sessions.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ahpkit.changes import catalogue as wire
from ahpkit.changes import commit
from ahpkit.changes.catalogue import View
from ahpkit.changes.git import GitError, find, make
from ahpkit.changes.session import Record, SessionChanges, TurnRecord
from ahpkit.changes.work_tree import FileChange, WorkTree
from ahpkit.host.agent import Chat, TurnContext
from ahpkit.host.feature import Applied, Command, ConnectedClient, Feature, Registration, Services
from ahpkit.host.resources.access import file_path
from ahpkit.protocol.changeset.constructors import (
    changeset_cleared,
    changeset_content_changed,
    changeset_file_removed,
    changeset_file_set,
    changeset_operation_status_changed,
    changeset_status_changed,
)
from ahpkit.protocol.changeset.state import ChangesetFile, ChangesetOperationStatus
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import ErrorInfo, JsonObject
from ahpkit.protocol.errors import ContentNotFound, InternalError, InvalidParams, InvalidRequest, NotFound
from ahpkit.protocol.meta_keys import CHANGES
from ahpkit.protocol.session.constructors import session_changesets_changed, session_meta_changed

_log = logging.getLogger(__name__)

_ENDED = frozenset({"chat/turnComplete", "chat/turnCancelled", "chat/error"})

_KEY = "changes/"
"""Where the records are among the host's durable values."""

MESSAGE_KEY = "ahpkit/message"
"""In `_meta` of `invokeChangesetOperation`: the message of a commit."""

_PATIENCE = 5.0
"""Seconds a new session waits for git; one on a very slow disk starts without changesets."""

_ONE_BY_ONE = 20
"""Differences that are sent as single actions; more replace the list as a whole."""


@dataclass(slots=True)
class _Followed:
    """One session whose files are followed."""

    uri: str
    changes: SessionChanges
    root_uri: str
    prefix: str
    """The session's directory below the work tree's root; empty: the root itself."""
    in_git: bool
    shows: Callable[[Path], bool] = lambda _: True
    """Whether clients may see a file at all."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    running: set[str] = field(default_factory=set[str])
    reviewed: set[str] = field(default_factory=set[str])

    def running_turns(self) -> list[TurnRecord]:
        """The records of the turns that run; one that was truncated away has none."""
        turns = self.changes.record.turns
        return [turns[turn_id] for turn_id in self.running if turn_id in turns]

    def own(self, changes: Sequence[FileChange]) -> list[FileChange]:
        """Changes inside the session's directory, of files that clients may see."""
        return [change for change in changes if all(map(self._is_own, change.paths))]

    def _is_own(self, path: str) -> bool:
        return path.startswith(self.prefix) and self.shows(self.changes.tree.root / path)


class Changesets(Feature):
    """The feature. `directory` holds our objects and indexes, one folder for each work tree."""

    name = "changesets"

    def __init__(
        self,
        directory: Path,
        *,
        default_directory: Path,
        trusts: Callable[[Path], bool] = lambda _: False,
        shows: Callable[[Path], bool] = lambda _: True,
    ) -> None:
        """`default_directory` is the working directory of sessions that name none.

        `trusts`: filters and hooks of a repository run. `shows`: clients may see a file; else its changes are left out.
        """
        self._shows = shows
        self._directory = directory
        self._default_directory = default_directory
        self._trusts = trusts
        self._followed: dict[str, _Followed] = {}
        self._finding: dict[str, asyncio.Lock] = {}
        self._trees: dict[Path, WorkTree] = {}
        self._views: dict[str, View] = {}

    def register(self, host: Registration, services: Services) -> None:
        self.services = services
        host.prepare_session(self._prepare_session)
        host.prepare_turn(self._prepare_turn)
        host.listen(self._heard)
        host.refuse(self._refuse)
        host.on_unsubscribed(self._unsubscribed)
        host.on_session_disposed(self._disposed)
        host.recover(self._recover)
        host.command(Command("invokeChangesetOperation", self._invoke, changes=True))
        host.open_channels(self._open)
        host.read_resources(wire.BLOB_SCHEME, self._read_blob)

    def _recover(self) -> None:
        """Channels of an earlier run: whoever subscribes again gets a fresh one."""
        for uri in self.services.channels("changeset"):
            self.services.close_channel(uri)

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def _prepare_session(self, session_uri: str) -> None:
        """Before the session is ready, so that whoever opens it knows its views; git gets a few seconds for it."""
        if "changesets" not in (self.services.state(session_uri) or {}):
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._announce(session_uri)

    async def _announce(self, session_uri: str) -> None:
        followed = await self._follow(session_uri)
        if followed is not None and self.services.state(session_uri) is not None:
            entries = wire.catalogue(session_uri, in_git=followed.in_git)
            self.services.dispatch(session_uri, session_changesets_changed(changesets=entries))

    async def _follow(self, session_uri: str) -> _Followed | None:
        """The session's work tree, found when it is first needed."""
        async with self._finding.setdefault(session_uri, asyncio.Lock()):
            if session_uri not in self._followed:
                state = self.services.state(session_uri)
                directory = None if state is None else session_directory(state, self._default_directory)
                tree = None if directory is None else await self._tree(directory)
                if directory is None or tree is None:
                    return None
                self._followed[session_uri] = await self._restored(session_uri, directory, tree)
        return self._followed[session_uri]

    async def _tree(self, directory: Path) -> WorkTree | None:
        if directory not in self._trees:
            place = self._directory / hashlib.sha256(str(directory).encode("utf-8", "surrogateescape")).hexdigest()[:20]
            try:
                git = await find(directory, objects=place, run_filters=self._trusts(directory))
                git = git or await make(directory, objects=place)
            except (GitError, OSError) as error:
                _log.warning("no changesets for %s: %s", directory, error)
                return None
            if git is None:
                return None
            self._trees[directory] = WorkTree(git)
        return self._trees[directory]

    async def _restored(self, session_uri: str, directory: Path, tree: WorkTree) -> _Followed:
        stored: JsonObject = self.services.values.get(_KEY + session_uri) or {}
        in_git = tree.git.git_dir != tree.git.objects.parent
        changes = SessionChanges(tree, Record.from_json(stored), edits_only=not in_git)
        real = await asyncio.to_thread(directory.resolve)
        below = real.relative_to(tree.root).as_posix() if real.is_relative_to(tree.root) else "."
        prefix = "" if below == "." else f"{below}/"
        followed = _Followed(session_uri, changes, tree.root.as_uri(), prefix, in_git, self._shows)
        followed.reviewed.update(stored.get("reviewed", ()))
        return followed

    def _remember(self, followed: _Followed) -> None:
        record = followed.changes.record.to_json() | {"reviewed": sorted(followed.reviewed)}
        self.services.values.set(_KEY + followed.uri, record)

    def _disposed(self, session_uri: str) -> None:
        for uri, view in list(self._views.items()):
            if view.session_key == wire.key_of(session_uri):
                self._end_channel(uri)
        self._followed.pop(session_uri, None)
        self._finding.pop(session_uri, None)
        self.services.values.set(_KEY + session_uri, None)

    def _end_channel(self, uri: str) -> None:
        self._views.pop(uri, None)
        if self.services.state(uri) is not None:
            self.services.dispatch(uri, changeset_cleared())
            self.services.close_channel(uri)

    # -- turns -------------------------------------------------------------------------------------------------------

    async def _prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        """Take a checkpoint before the agent can change anything."""
        followed = await self._follow(chat.session_uri)
        state: JsonObject = self.services.state(chat.uri) or {}
        active: JsonObject = state.get("activeTurn") or {}
        turn_id: str | None = active.get("id")
        if followed is not None and turn_id is not None:
            try:
                async with followed.lock:
                    await followed.changes.begin(turn_id)
            except (GitError, OSError) as error:
                _log.warning("what turn %s changes is not followed: %s", turn_id, error)
                return prompt
            followed.running.add(turn_id)
            self._mark_shared(followed)
            self._remember(followed)
        return prompt

    def _mark_shared(self, followed: _Followed) -> None:
        """Two sessions that work in one tree at once: what neither told of may be either's."""
        together = [other for other in self._followed.values() if other.changes.tree is followed.changes.tree]
        busy = [other for other in together if other.running]
        if len(busy) > 1:
            for other in busy:
                for turn in other.running_turns():
                    turn.shared = True

    def _heard(self, applied: Applied) -> None:
        kind = applied.action["type"]
        if kind == "changeset/filesReviewChanged":
            self._reviewed(applied)
        elif kind == "chat/truncated":
            self._forget_turns(applied)
        elif kind in _ENDED or kind == "chat/toolCallComplete":
            followed = self._followed.get(self.services.session_of(applied.channel) or "")
            turn_id = applied.action.get("turnId", "")
            if followed is None or turn_id not in followed.running:
                return
            if kind in _ENDED:
                self.services.spawn(self._end_turn(followed, turn_id), name="changes of a turn")
            else:
                edits = wire.edited_paths(applied.action.get("result") or {})
                self.services.spawn(self._refresh(followed, turn_id, edits), name="changes of a tool call")

    async def _refresh(self, followed: _Followed, turn_id: str, edits: Sequence[tuple[str, Any]]) -> None:
        """Look again after a tool call: at the files it told of, or at all where it told of none."""
        paths = [path for uri, _ in edits if (path := wire.path_in(followed.root_uri, uri)) is not None]
        self._claim(followed, paths)
        try:
            async with followed.lock:
                if turn_id not in followed.running:
                    return
                for path in paths:
                    await followed.changes.tell(turn_id, path, None)
                await followed.changes.refresh(turn_id, paths or None)
        except (GitError, OSError) as error:
            _log.warning("the changes of %s could not be read: %s", followed.uri, error)
            return
        await self._show(followed)

    def _claim(self, followed: _Followed, paths: Collection[str]) -> None:
        """What one session is known to have written is not another's that works there at the same time."""
        for other in self._followed.values():
            if other is not followed and other.changes.tree is followed.changes.tree:
                for turn in other.running_turns():
                    turn.foreign += [path for path in paths if path not in other.changes.told | set(turn.foreign)]

    async def _end_turn(self, followed: _Followed, turn_id: str) -> None:
        try:
            async with followed.lock:
                if turn_id in followed.running:
                    await followed.changes.end(turn_id)
        except (GitError, OSError) as error:
            _log.warning("the changes of %s could not be read: %s", followed.uri, error)
        followed.running.discard(turn_id)
        self._remember(followed)
        await self._show(followed)

    async def _show(self, followed: _Followed) -> None:
        """Bring everything that is looked at up to date, and the session's totals."""
        if self.services.state(followed.uri) is None:
            return
        for uri, view in list(self._views.items()):
            if view.session_key == wire.key_of(followed.uri):
                await self._compute(followed, uri, view)
        try:
            async with followed.lock:
                changes = followed.own(await followed.changes.session(followed.running))
        except (GitError, OSError):
            return
        self._publish_totals(followed.uri, wire.totals(changes))

    def _publish_totals(self, session_uri: str, totals: JsonObject) -> None:
        state = self.services.state(session_uri)
        meta: JsonObject = (state or {}).get("_meta") or {}
        if not totals["files"] and CHANGES not in meta:  # Most sessions never change a file.
            return
        if state is not None and meta.get(CHANGES) != totals:
            self.services.dispatch(session_uri, session_meta_changed(meta={**meta, CHANGES: totals}))

    def _forget_turns(self, applied: Applied) -> None:
        """Turns that were truncated away have no changeset any more."""
        gone = {turn["id"] for turn in applied.before.get("turns", ())} - {
            turn["id"] for turn in applied.after.get("turns", ())
        }
        key = wire.key_of(self.services.session_of(applied.channel) or "")
        for uri, view in list(self._views.items()):
            if view.session_key == key and gone & set(view.turns):
                self._end_channel(uri)
        followed = self._followed.get(self.services.session_of(applied.channel) or "")
        if followed is not None and gone & followed.changes.record.turns.keys():
            for turn_id in gone:
                followed.changes.record.turns.pop(turn_id, None)
            self._remember(followed)

    # -- channels ----------------------------------------------------------------------------------------------------

    async def _open(self, uri: str) -> bool:
        """Somebody subscribes: show that it is being computed, then compute it."""
        view = wire.read_uri(uri)
        session_uri = None if view is None else self._session_of(view)
        followed = None if session_uri is None else await self._follow(session_uri)
        if view is None or followed is None or not _offered(view, followed):
            return False
        if self.services.state(uri) is None:
            self._views[uri] = view
            self.services.open_channel(uri, {"status": "computing", "files": []})
            await self.services.durable()
            self.services.spawn(self._compute(followed, uri, view), name="a changeset")
        return True

    def _session_of(self, view: View) -> str | None:
        uris = self.services.session_uris()
        return next((uri for uri in uris if wire.key_of(uri) == view.session_key), None)

    def _unsubscribed(self, uri: str) -> None:
        if self._views.pop(uri, None) is not None:
            self.services.close_channel(uri)

    async def _compute(self, followed: _Followed, uri: str, view: View) -> None:
        state = self.services.state(uri)
        if state is None:
            return
        if state["status"] not in ("computing", "recomputing"):
            self.services.dispatch(uri, changeset_status_changed(status="recomputing"))
        try:
            async with followed.lock:
                changes = followed.own(await self._changes(followed, view))
        except (GitError, OSError, KeyError) as error:
            if self.services.state(uri) is not None:
                self.services.dispatch(uri, changeset_status_changed(status="error", error=_failure(error)))
            return
        self._send(followed, uri, view, changes)

    async def _changes(self, followed: _Followed, view: View) -> list[FileChange]:
        match view.kind:
            case "uncommitted":
                return await followed.changes.uncommitted()
            case "session":
                return await followed.changes.session(followed.running)
            case "turn":
                return await followed.changes.turn(view.turns[0])
            case "compare-turns":
                return await followed.changes.between(*view.turns)

    def _send(self, followed: _Followed, uri: str, view: View, changes: Sequence[FileChange]) -> None:
        """Only what differs from what is shown."""
        state = self.services.state(uri)
        if state is None:
            return
        entries = [
            wire.file_entry(change, view.session_key, followed.root_uri, followed.reviewed) for change in changes
        ]
        shown = {entry["id"]: entry for entry in state["files"]}
        wanted: dict[str, ChangesetFile] = {entry["id"]: entry for entry in entries}
        gone = [id for id in shown if id not in wanted]
        new = [entry for id, entry in wanted.items() if shown.get(id) != entry]
        operations = wire.operations(view.kind, in_git=followed.in_git)
        if state.get("operations") is None or len(gone) + len(new) > _ONE_BY_ONE:
            self.services.dispatch(uri, changeset_content_changed(files=list(wanted.values()), operations=operations))
        else:
            for id in gone:
                self.services.dispatch(uri, changeset_file_removed(file_id=id))
            for entry in new:
                self.services.dispatch(uri, changeset_file_set(file=entry))
        self.services.dispatch(uri, changeset_status_changed(status="ready"))

    # -- review ------------------------------------------------------------------------------------------------------

    def _refuse(self, client_id: str, channel: str, action: JsonObject, state: JsonObject) -> str | None:
        view = self._views.get(channel)
        if action["type"] == "changeset/filesReviewChanged" and view is not None and view.kind == "compare-turns":
            return "this changeset does not offer review"
        return None

    def _reviewed(self, applied: Applied) -> None:
        view = self._views.get(applied.channel)
        session_uri = None if view is None else self._session_of(view)
        followed = self._followed.get(session_uri or "")
        if followed is None or applied.client_id is None:
            return
        for entry in applied.after["files"]:
            if entry["id"] in applied.action["files"]:
                after: JsonObject = entry["edit"].get("after") or {"content": {"uri": ""}}
                blob = wire.read_blob_uri(after["content"]["uri"])
                path = wire.path_in(followed.root_uri, entry["id"]) or ""
                found = f"{path}\0{blob[1].oid if blob is not None else ''}"
                (followed.reviewed.add if applied.action["reviewed"] else followed.reviewed.discard)(found)
        self._remember(followed)

    # -- operations --------------------------------------------------------------------------------------------------

    async def _invoke(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        uri = params["channel"]
        view, state = self._views.get(uri), self.services.state(uri)
        followed = None if view is None else self._followed.get(self._session_of(view) or "")
        if view is None or state is None or followed is None:
            raise NotFound(f"there is no changeset {uri}")
        operation = next(
            (entry for entry in state.get("operations") or () if entry["id"] == params["operationId"]), None
        )
        if operation is None:
            raise InvalidParams(f"operationId: this changeset has no operation {params['operationId']!r}")
        if operation["status"] in ("running", "disabled"):
            raise InvalidRequest(f"{operation['label']} is {operation['status']}")
        only = _target(params.get("target"), operation, state, followed)
        self._operation_status(uri, operation["id"], "running")
        try:
            message = await self._run(followed, view, operation["id"], only, params)
        except (GitError, OSError) as error:
            self._operation_status(uri, operation["id"], "error", _failure(error))
            raise InternalError(str(error)) from error
        self._operation_status(uri, operation["id"], "idle")
        self._remember(followed)
        await self._show(followed)
        return {"message": message}

    def _operation_status(
        self, uri: str, id: str, status: ChangesetOperationStatus, error: ErrorInfo | None = None
    ) -> None:
        if self.services.state(uri) is not None:
            self.services.dispatch(uri, changeset_operation_status_changed(operation_id=id, status=status, error=error))

    async def _run(
        self, followed: _Followed, view: View, operation: str, only: set[str] | None, params: JsonObject
    ) -> str:
        async with followed.lock:
            changes = followed.own(await self._changes(followed, view))
            paths = {path for change in changes for path in change.paths if not change.note}
            chosen = paths if only is None else paths & only
            tree = followed.changes.tree
            match operation:
                case "undo":
                    return (await followed.changes.undo(changes, chosen)).describe()
                case "keep":
                    followed.changes.accept(chosen)
                    return f"Kept {len(chosen)} changed files."
                case "stage":
                    await commit.stage(tree, chosen)
                    return f"Staged {len(chosen)} files."
                case "commit":
                    message = self._commit_message(followed, params)
                    trusted = self._trusts(tree.root)
                    return f"Committed as {await commit.commit(tree, chosen, message, trusted=trusted)}."
                case _:
                    raise GitError(f"there is no operation {operation}")

    def _commit_message(self, followed: _Followed, params: JsonObject) -> str:
        meta: JsonObject = params.get("_meta") or {}
        given = meta.get(MESSAGE_KEY)
        if isinstance(given, str) and given.strip():
            return given
        state: JsonObject = self.services.state(followed.uri) or {}
        summary: JsonObject = state.get("summary") or state
        return str(summary.get("title") or "Changes of a session")

    # -- contents ----------------------------------------------------------------------------------------------------

    async def _read_blob(self, uri: str) -> tuple[bytes, str]:
        """The content of a changed file, before or after."""
        found = wire.read_blob_uri(uri)
        session_uri = None if found is None else self._session_of(View(found[0], "session"))
        followed = None if session_uri is None else await self._follow(session_uri)
        if found is None or followed is None or not found[1].path.startswith(followed.prefix):
            raise ContentNotFound(f"there is no content {uri}")
        try:
            return await followed.changes.tree.read(found[1]), wire.content_type(found[1].path)
        except GitError as error:
            raise ContentNotFound(f"the content is no longer there ({error})") from error


def session_directory(state: JsonObject, default: Path) -> Path | None:
    """The directory that a session works in; None: it is not on this machine."""
    summary: JsonObject = state.get("summary") or {}
    uri: str | None = next(iter(state.get("workingDirectories") or ()), None) or summary.get("workingDirectory")
    if uri is None:
        return default
    return file_path(uri) if uri.startswith("file:") else None


def _failure(error: Exception) -> ErrorInfo:
    return {"errorType": "git", "message": str(error)}


def _offered(view: View, followed: _Followed) -> bool:
    known = followed.changes.record.turns
    if view.kind in ("uncommitted", "compare-turns") and not followed.in_git:
        return False
    return all(turn in known for turn in view.turns)


def _target(target: Any, operation: JsonObject, state: JsonObject, followed: _Followed) -> set[str] | None:
    """The paths that were chosen; None: all. Raises where the target does not fit the operation."""
    scopes: Sequence[str] = operation["scopes"]
    if target is None:
        if "changeset" not in scopes:
            raise InvalidParams(f"target: {operation['label']} needs one of {', '.join(scopes)}")
        return None
    if target["kind"] not in scopes:
        raise InvalidParams(f"target.kind: {operation['label']} takes {', '.join(scopes)}, not {target['kind']}")
    for entry in state["files"]:
        sides = [entry["edit"].get(name) for name in ("before", "after")]
        uris = [side["uri"] for side in sides if side is not None]
        if target["resource"] in uris:
            return {path for uri in uris if (path := wire.path_in(followed.root_uri, uri)) is not None}
    raise NotFound(f"target.resource: {target['resource']} is not a file of this changeset")


__all__ = ["MESSAGE_KEY", "Changesets", "session_directory"]
