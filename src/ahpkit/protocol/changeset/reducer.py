"""The changeset channel's reducer: files and operations, each found by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.changeset.actions import ChangesetFilesReviewChangedAction
from ahpkit.protocol.common.reducing import (
    Handler,
    amend,
    apply,
    assign_optional,
    index_of,
    removed,
    replaced,
    upserted,
)
from ahpkit.protocol.common.state import JsonObject

__all__ = ["HANDLERS", "changeset_reducer"]


def changeset_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The changeset after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _status_changed(item: JsonObject, action: JsonObject) -> JsonObject:
    """A status and its error go together: whoever is not in status `error` has none."""
    error = action.get("error") if action["status"] == "error" else None
    return amend(item, {"status": action["status"], "error": error})


def _operation_status_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    operations: list[JsonObject] = state.get("operations") or []
    index = index_of(operations, "id", action["operationId"])
    if index < 0:
        return state
    return {**state, "operations": replaced(operations, index, _status_changed(operations[index], action))}


def _file_set(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "files": upserted(state["files"], action["file"], key="id")}


def _file_removed(state: JsonObject, action: JsonObject) -> JsonObject:
    kept = removed(state["files"], "id", action["fileId"])
    return state if kept is state["files"] else {**state, "files": kept}


def _content_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    after = {**state, "files": action["files"]}
    return after if action.get("operations") is None else {**after, "operations": action["operations"]}


def _files_review_changed(state: JsonObject, action: ChangesetFilesReviewChangedAction) -> JsonObject:
    named, reviewed = set(action["files"]), action["reviewed"]
    files = [{**file, "reviewed": reviewed} if file["id"] in named else file for file in state["files"]]
    return state if files == state["files"] else {**state, "files": files}


def _cleared(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "files": []} if state["files"] else state


HANDLERS: Final[Mapping[str, Handler]] = {
    "changeset/statusChanged": _status_changed,
    "changeset/fileSet": _file_set,
    "changeset/fileRemoved": _file_removed,
    "changeset/filesReviewChanged": _files_review_changed,
    "changeset/contentChanged": _content_changed,
    "changeset/operationsChanged": assign_optional("operations"),
    "changeset/operationStatusChanged": _operation_status_changed,
    "changeset/cleared": _cleared,
}
