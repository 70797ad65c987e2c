from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.changeset.state import ChangesetFile, ChangesetOperation, ChangesetOperationStatus, ChangesetStatus
from ahpkit.protocol.common.state import ErrorInfo


class ChangesetStatusChangedAction(TypedDict):
    type: Literal["changeset/statusChanged"]
    status: ChangesetStatus
    error: NotRequired[ErrorInfo]


class ChangesetFileSetAction(TypedDict):
    type: Literal["changeset/fileSet"]
    file: ChangesetFile


class ChangesetFileRemovedAction(TypedDict):
    type: Literal["changeset/fileRemoved"]
    fileId: str


class ChangesetContentChangedAction(TypedDict):
    type: Literal["changeset/contentChanged"]
    files: list[ChangesetFile]
    operations: NotRequired[list[ChangesetOperation]]
    error: NotRequired[ErrorInfo]


class ChangesetOperationsChangedAction(TypedDict):
    type: Literal["changeset/operationsChanged"]
    operations: list[ChangesetOperation]


class ChangesetOperationStatusChangedAction(TypedDict):
    type: Literal["changeset/operationStatusChanged"]
    operationId: str
    status: ChangesetOperationStatus
    error: NotRequired[ErrorInfo]


class ChangesetClearedAction(TypedDict):
    type: Literal["changeset/cleared"]
