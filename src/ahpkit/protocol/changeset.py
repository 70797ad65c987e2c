"""Changesets, changed files and what can be done with them: state, actions, commands, reducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

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
from ahpkit.protocol.common.state import (
    URI,
    BaseParams,
    ContentRef,
    ErrorInfo,
    FileEdit,
    JsonObject,
    StringOrMarkdown,
    TextRange,
)

ChangesetStatus = Literal["computing", "recomputing", "ready", "error"] | str

ChangesetOperationStatus = Literal["idle", "running", "error", "disabled"] | str

ChangesetOperationScope = Literal["changeset", "resource", "range"] | str


class ChangesetCapabilities(TypedDict):
    """What can be done with a changeset: a key that is present means yes."""

    review: NotRequired[JsonObject]


class Changeset(TypedDict):
    """A changeset in a session's or a chat's catalogue; expand `uriTemplate` (RFC 6570) to subscribe."""

    label: str
    uriTemplate: str
    description: NotRequired[str]
    changeKind: str
    capabilities: NotRequired[ChangesetCapabilities]


class ChangesetFile(TypedDict):
    """A changed file; `reviewed` says that somebody looked at it."""

    id: str
    edit: FileEdit
    reviewed: NotRequired[bool]
    _meta: NotRequired[JsonObject]


class ChangesetOperation(TypedDict):
    """Something the host can do with the changes."""

    id: str
    label: str
    description: NotRequired[str]
    scopes: list[ChangesetOperationScope]
    confirmation: NotRequired[StringOrMarkdown]
    icon: NotRequired[str]
    group: NotRequired[str]
    status: ChangesetOperationStatus
    error: NotRequired[ErrorInfo]


class ChangesetState(TypedDict):
    """State of `ahp-changeset:/<id>`."""

    status: ChangesetStatus
    error: NotRequired[ErrorInfo]
    files: list[ChangesetFile]
    operations: NotRequired[list[ChangesetOperation]]


class ChangesetStatusChangedAction(TypedDict):
    """The changeset is being computed, is ready, or failed."""

    type: Literal["changeset/statusChanged"]
    status: ChangesetStatus
    error: NotRequired[ErrorInfo]


def changeset_status_changed(
    *, status: ChangesetStatus, error: ErrorInfo | None = None
) -> ChangesetStatusChangedAction:
    """The changeset is being computed, is ready, or failed."""
    action: ChangesetStatusChangedAction = {"type": "changeset/statusChanged", "status": status}
    if error is not None:
        action["error"] = error
    return action


class ChangesetFileSetAction(TypedDict):
    """A file is new, or replaced as a whole."""

    type: Literal["changeset/fileSet"]
    file: ChangesetFile


def changeset_file_set(*, file: ChangesetFile) -> ChangesetFileSetAction:
    """A file is new, or replaced as a whole."""
    return {"type": "changeset/fileSet", "file": file}


class ChangesetFileRemovedAction(TypedDict):
    """A file is no longer changed."""

    type: Literal["changeset/fileRemoved"]
    fileId: str


def changeset_file_removed(*, file_id: str) -> ChangesetFileRemovedAction:
    """A file is no longer changed."""
    return {"type": "changeset/fileRemoved", "fileId": file_id}


class ChangesetFilesReviewChangedAction(TypedDict):
    """Files were reviewed, or must be reviewed again."""

    type: Literal["changeset/filesReviewChanged"]
    files: list[str]
    reviewed: bool


def changeset_files_review_changed(*, files: list[str], reviewed: bool) -> ChangesetFilesReviewChangedAction:
    """Files were reviewed, or must be reviewed again."""
    return {"type": "changeset/filesReviewChanged", "files": files, "reviewed": reviewed}


class ChangesetContentChangedAction(TypedDict):
    """Files, and operations if they are given, were replaced."""

    type: Literal["changeset/contentChanged"]
    files: list[ChangesetFile]
    operations: NotRequired[list[ChangesetOperation]]


def changeset_content_changed(
    *, files: list[ChangesetFile], operations: list[ChangesetOperation] | None = None
) -> ChangesetContentChangedAction:
    """Files, and operations if they are given, were replaced."""
    action: ChangesetContentChangedAction = {"type": "changeset/contentChanged", "files": files}
    if operations is not None:
        action["operations"] = operations
    return action


class ChangesetOperationsChangedAction(TypedDict):
    """The operations were replaced; absent: there are none."""

    type: Literal["changeset/operationsChanged"]
    operations: NotRequired[list[ChangesetOperation]]


def changeset_operations_changed(
    *, operations: list[ChangesetOperation] | None = None
) -> ChangesetOperationsChangedAction:
    """The operations were replaced; absent: there are none."""
    action: ChangesetOperationsChangedAction = {"type": "changeset/operationsChanged"}
    if operations is not None:
        action["operations"] = operations
    return action


class ChangesetOperationStatusChangedAction(TypedDict):
    """One operation runs, failed, or can be used again."""

    type: Literal["changeset/operationStatusChanged"]
    operationId: str
    status: ChangesetOperationStatus
    error: NotRequired[ErrorInfo]


def changeset_operation_status_changed(
    *, operation_id: str, status: ChangesetOperationStatus, error: ErrorInfo | None = None
) -> ChangesetOperationStatusChangedAction:
    """One operation runs, failed, or can be used again."""
    action: ChangesetOperationStatusChangedAction = {
        "type": "changeset/operationStatusChanged",
        "operationId": operation_id,
        "status": status,
    }
    if error is not None:
        action["error"] = error
    return action


class ChangesetClearedAction(TypedDict):
    """All files are gone."""

    type: Literal["changeset/cleared"]


def changeset_cleared() -> ChangesetClearedAction:
    """All files are gone."""
    return {"type": "changeset/cleared"}


ChangesetAction = (
    ChangesetStatusChangedAction
    | ChangesetFileSetAction
    | ChangesetFileRemovedAction
    | ChangesetFilesReviewChangedAction
    | ChangesetContentChangedAction
    | ChangesetOperationsChangedAction
    | ChangesetOperationStatusChangedAction
    | ChangesetClearedAction
)


ChangesetOperationTargetKind = Literal["resource", "range"] | str


class ChangesetResourceTarget(TypedDict):
    """A whole file."""

    kind: Literal["resource"]
    resource: URI
    side: NotRequired[Literal["before", "after"] | str]


class ChangesetRangeTarget(TypedDict):
    """Lines of a file."""

    kind: Literal["range"]
    resource: URI
    side: NotRequired[Literal["before", "after"] | str]
    range: TextRange


ChangesetOperationTarget = ChangesetResourceTarget | ChangesetRangeTarget


class InvokeChangesetOperationParams(BaseParams):
    """`invokeChangesetOperation`: without `target` on the whole changeset."""

    operationId: str
    target: NotRequired[ChangesetOperationTarget]


class ChangesetOperationFollowUp(TypedDict):
    """Something to look at afterwards."""

    content: ContentRef
    external: NotRequired[bool]


class InvokeChangesetOperationResult(TypedDict):
    """The operation was accepted."""

    message: NotRequired[StringOrMarkdown]
    followUp: NotRequired[ChangesetOperationFollowUp]


def changeset_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The changeset after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _status_changed(item: JsonObject, action: JsonObject) -> JsonObject:
    """Set the status; an error is kept only with the status `error`."""
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


__all__ = [
    "HANDLERS",
    "Changeset",
    "ChangesetAction",
    "ChangesetCapabilities",
    "ChangesetClearedAction",
    "ChangesetContentChangedAction",
    "ChangesetFile",
    "ChangesetFileRemovedAction",
    "ChangesetFileSetAction",
    "ChangesetFilesReviewChangedAction",
    "ChangesetOperation",
    "ChangesetOperationFollowUp",
    "ChangesetOperationScope",
    "ChangesetOperationStatus",
    "ChangesetOperationStatusChangedAction",
    "ChangesetOperationTarget",
    "ChangesetOperationTargetKind",
    "ChangesetOperationsChangedAction",
    "ChangesetRangeTarget",
    "ChangesetResourceTarget",
    "ChangesetState",
    "ChangesetStatus",
    "ChangesetStatusChangedAction",
    "InvokeChangesetOperationParams",
    "InvokeChangesetOperationResult",
    "changeset_cleared",
    "changeset_content_changed",
    "changeset_file_removed",
    "changeset_file_set",
    "changeset_files_review_changed",
    "changeset_operation_status_changed",
    "changeset_operations_changed",
    "changeset_reducer",
    "changeset_status_changed",
]
