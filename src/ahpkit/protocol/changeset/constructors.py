"""Makes actions on changesets: one function for each, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.changeset.actions import (
    ChangesetClearedAction,
    ChangesetContentChangedAction,
    ChangesetFileRemovedAction,
    ChangesetFileSetAction,
    ChangesetFilesReviewChangedAction,
    ChangesetOperationsChangedAction,
    ChangesetOperationStatusChangedAction,
    ChangesetStatusChangedAction,
)
from ahpkit.protocol.changeset.state import (
    ChangesetFile,
    ChangesetOperation,
    ChangesetOperationStatus,
    ChangesetStatus,
)
from ahpkit.protocol.common.state import ErrorInfo

__all__ = [
    "changeset_cleared",
    "changeset_content_changed",
    "changeset_file_removed",
    "changeset_file_set",
    "changeset_files_review_changed",
    "changeset_operation_status_changed",
    "changeset_operations_changed",
    "changeset_status_changed",
]


def changeset_status_changed(
    *, status: ChangesetStatus, error: ErrorInfo | None = None
) -> ChangesetStatusChangedAction:
    """The changeset is being computed, is ready, or failed."""
    action: ChangesetStatusChangedAction = {"type": "changeset/statusChanged", "status": status}
    if error is not None:
        action["error"] = error
    return action


def changeset_file_set(*, file: ChangesetFile) -> ChangesetFileSetAction:
    """A file is new, or replaced as a whole."""
    return {"type": "changeset/fileSet", "file": file}


def changeset_file_removed(*, file_id: str) -> ChangesetFileRemovedAction:
    """A file is no longer changed."""
    return {"type": "changeset/fileRemoved", "fileId": file_id}


def changeset_files_review_changed(*, files: list[str], reviewed: bool) -> ChangesetFilesReviewChangedAction:
    """Files were looked at, or are to be looked at again."""
    return {"type": "changeset/filesReviewChanged", "files": files, "reviewed": reviewed}


def changeset_content_changed(
    *, files: list[ChangesetFile], operations: list[ChangesetOperation] | None = None
) -> ChangesetContentChangedAction:
    """Files, and operations if they are given, were replaced."""
    action: ChangesetContentChangedAction = {"type": "changeset/contentChanged", "files": files}
    if operations is not None:
        action["operations"] = operations
    return action


def changeset_operations_changed(
    *, operations: list[ChangesetOperation] | None = None
) -> ChangesetOperationsChangedAction:
    """The operations were replaced; absent: there are none."""
    action: ChangesetOperationsChangedAction = {"type": "changeset/operationsChanged"}
    if operations is not None:
        action["operations"] = operations
    return action


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


def changeset_cleared() -> ChangesetClearedAction:
    """All files are gone."""
    return {"type": "changeset/cleared"}
