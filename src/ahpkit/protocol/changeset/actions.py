"""Actions on changesets, each with its constructor. Clients dispatch only the review of files."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.changeset.state import ChangesetFile, ChangesetOperation, ChangesetOperationStatus, ChangesetStatus
from ahpkit.protocol.common.state import ErrorInfo


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
    """Files were looked at, or are to be looked at again."""

    type: Literal["changeset/filesReviewChanged"]
    files: list[str]
    reviewed: bool


def changeset_files_review_changed(*, files: list[str], reviewed: bool) -> ChangesetFilesReviewChangedAction:
    """Files were looked at, or are to be looked at again."""
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


__all__ = [
    "ChangesetAction",
    "ChangesetClearedAction",
    "ChangesetContentChangedAction",
    "ChangesetFileRemovedAction",
    "ChangesetFileSetAction",
    "ChangesetFilesReviewChangedAction",
    "ChangesetOperationStatusChangedAction",
    "ChangesetOperationsChangedAction",
    "ChangesetStatusChangedAction",
    "changeset_cleared",
    "changeset_content_changed",
    "changeset_file_removed",
    "changeset_file_set",
    "changeset_files_review_changed",
    "changeset_operation_status_changed",
    "changeset_operations_changed",
    "changeset_status_changed",
]
