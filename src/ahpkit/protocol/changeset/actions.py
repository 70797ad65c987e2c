"""Actions on changesets. All but the review of files are the host's."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.changeset.state import (
    ChangesetFile,
    ChangesetOperation,
    ChangesetOperationStatus,
    ChangesetStatus,
)
from ahpkit.protocol.common.state import ErrorInfo


class ChangesetStatusChangedAction(TypedDict):
    """The changeset is being computed, is ready, or failed."""

    type: Literal["changeset/statusChanged"]
    status: ChangesetStatus
    error: NotRequired[ErrorInfo]


class ChangesetFileSetAction(TypedDict):
    """A file is new, or replaced as a whole."""

    type: Literal["changeset/fileSet"]
    file: ChangesetFile


class ChangesetFileRemovedAction(TypedDict):
    """A file is no longer changed."""

    type: Literal["changeset/fileRemoved"]
    fileId: str


class ChangesetFilesReviewChangedAction(TypedDict):
    """Files were looked at, or are to be looked at again."""

    type: Literal["changeset/filesReviewChanged"]
    files: list[str]
    reviewed: bool


class ChangesetContentChangedAction(TypedDict):
    """Files, and operations if they are given, were replaced."""

    type: Literal["changeset/contentChanged"]
    files: list[ChangesetFile]
    operations: NotRequired[list[ChangesetOperation]]


class ChangesetOperationsChangedAction(TypedDict):
    """The operations were replaced; absent: there are none."""

    type: Literal["changeset/operationsChanged"]
    operations: NotRequired[list[ChangesetOperation]]


class ChangesetOperationStatusChangedAction(TypedDict):
    """One operation runs, failed, or can be used again."""

    type: Literal["changeset/operationStatusChanged"]
    operationId: str
    status: ChangesetOperationStatus
    error: NotRequired[ErrorInfo]


class ChangesetClearedAction(TypedDict):
    """All files are gone."""

    type: Literal["changeset/cleared"]


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
]
