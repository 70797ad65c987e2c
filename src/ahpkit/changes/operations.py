"""Serves `invokeChangesetOperation`: checks the request, runs the operation, and shows that it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ahpkit.changes import catalogue as wire
from ahpkit.changes import commit
from ahpkit.changes.catalogue import View
from ahpkit.changes.followed_directories import Followed
from ahpkit.changes.git import GitError
from ahpkit.changes.own_tree import OwnTrees
from ahpkit.changes.sides import FileChange
from ahpkit.changes.undo import count_files
from ahpkit.changes.views import Views, changes_of, failure
from ahpkit.host.feature import Services
from ahpkit.host.states import NO_SESSION
from ahpkit.protocol.changeset import ChangesetOperation, ChangesetState
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InternalError, InvalidParams, InvalidRequest, NotFound, PermissionDenied

MESSAGE_KEY = "ahpkit/message"
"""In `_meta` of `invokeChangesetOperation`: the message of a commit."""


class Operations:
    """Serves the command."""

    def __init__(
        self,
        services: Services,
        views: Views,
        own_trees: OwnTrees,
        *,
        trusts: Callable[[Path], bool],
        store: Callable[[Followed], Awaitable[None]],
    ) -> None:
        """`store` makes the record of a directory durable."""
        self.services = services
        self._views = views
        self._own_trees = own_trees
        self._trusts = trusts
        self._store = store

    async def invoke(self, params: JsonObject) -> tuple[Followed, str]:
        """Run the operation; returns the directory it ran in, and a sentence for the person."""
        uri = params["channel"]
        await self._check_inside(uri)
        found = self._views.find(uri)
        if found is None:
            raise NotFound(f"there is no changeset {uri}")
        followed, view, state = found
        operation = _operation(state, params["operationId"])
        only = _target(params.get("target"), operation, state, followed)
        self._views.operation_status(uri, operation["id"], "running")
        try:
            message = await self._run(followed, view, operation["id"], only, params)
        except (GitError, OSError) as error:
            self._views.operation_status(uri, operation["id"], "error", failure(error))
            raise InternalError(str(error)) from error
        except BaseException:  # Otherwise the operation would seem to run for ever, and nobody could start it again.
            self._views.operation_status(uri, operation["id"], "idle")
            raise
        self._views.operation_status(uri, operation["id"], "idle")
        return followed, message

    async def _check_inside(self, uri: str) -> None:
        found = self._views.find(uri)
        if found is not None and not await self._views.is_inside(found[0]):
            raise PermissionDenied(f"{found[0].directory} is outside the directories this host works in")

    async def _run(
        self, followed: Followed, view: View, operation: str, only: set[str] | None, params: JsonObject
    ) -> str:
        if operation == "merge":
            return await self._own_trees.merge(followed.session, self._message(followed, params))
        if operation == "remove":
            if followed.running:
                raise GitError(f"a turn works in {followed.directory}; cancel it first, or wait until it is over")
            return await self._own_trees.remove(followed.session)
        async with followed.lock:
            changes = await followed.own(await changes_of(followed, view))
            chosen, noted = await asyncio.to_thread(_chosen, changes, only)  # There may be very many.
            tree = followed.changes.tree
            match operation:
                case "undo":
                    [turn_id] = view.turns if view.kind == "turn" else [None]
                    outcome = await followed.changes.undo(
                        turn_id, only={*chosen, *noted}, running=followed.running, store=partial(self._store, followed)
                    )
                    if only is None:
                        outcome.left |= followed.changes.left_to_others(turn_id)
                    return outcome.describe()
                case "redo":
                    return (await followed.changes.redo()).describe("Brought back", "Nothing was brought back.")
                case "keep":
                    followed.changes.accept({*chosen, *noted})
                    return f"Kept {count_files(len(chosen) + len(noted))}."
                case "stage":
                    taken, left = await commit.takable(tree, chosen)
                    await commit.stage(tree, taken)
                    return f"Staged {count_files(len(taken))}.{_left_out(noted | left)}"
                case "commit":
                    taken, left = await commit.takable(tree, chosen)
                    message, trusted = self._message(followed, params), self._trusts(tree.root)
                    done = await commit.commit(tree, taken, message, trusted=trusted)
                    return f"Committed as {done}.{_left_out(noted | left)}"
                case _:
                    raise GitError(f"there is no operation {operation}")

    def _message(self, followed: Followed, params: JsonObject) -> str:
        """The message of a commit: the client's, or else the session's title."""
        meta: JsonObject = params.get("_meta") or {}
        given = meta.get(MESSAGE_KEY)
        if isinstance(given, str) and given.strip():
            return given
        state = self.services.session(followed.session) or NO_SESSION
        return str(state["title"] or "Changes of a session")


def _chosen(changes: Sequence[FileChange], only: set[str] | None) -> tuple[set[str], dict[str, str]]:
    """The paths to which an operation applies; and the paths whose content is not known, with the reasons."""
    meant = [change for change in changes if only is None or change.paths & only]
    paths = {path for change in meant if not change.note for path in change.paths if only is None or path in only}
    return paths, {change.path: change.note for change in meant if change.note}


def _left_out(noted: Mapping[str, str]) -> str:
    """The files that an operation left out, with the reasons."""
    listed = "; ".join(f"{path}: {why}" for path, why in sorted(noted.items())[:10])
    return f" Left out: {listed}{' and more' if len(noted) > 10 else ''}." if noted else ""


def _operation(state: ChangesetState, wanted: str) -> ChangesetOperation:
    operation = next((entry for entry in state.get("operations") or () if entry["id"] == wanted), None)
    if operation is None:
        raise InvalidParams(f"operationId: this changeset has no operation {wanted!r}")
    if operation["status"] == "running":
        raise InvalidRequest(f"{operation['label']} is running already; wait until it is done")
    if operation["status"] == "disabled":
        raise InvalidRequest(f"{operation['label']} is disabled: there is nothing to do")
    return operation


def _target(target: Any, operation: ChangesetOperation, state: ChangesetState, followed: Followed) -> set[str] | None:
    """The paths that the client chose; None: all. Raises if the target does not fit the operation."""
    scopes = operation["scopes"]
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


__all__ = ["MESSAGE_KEY", "Operations", "OwnTrees"]
