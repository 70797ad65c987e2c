"""Changesets of 0.4.0: their state, actions, commands and reducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import (
    URI,
    BaseParams,
    ContentRef,
    ErrorInfo,
    FileEdit,
    JsonObject,
    StringOrMarkdown,
    TextRange,
)
from ahpkit.protocol.changeset import HANDLERS as CURRENT
from ahpkit.protocol.changeset import ChangesetClearedAction, ChangesetFileRemovedAction
from ahpkit.protocol.common.reducing import (
    Handler,
    apply,
    put,
)

ChangesetStatus = Literal["computing", "ready", "error"]

ChangesetOperationStatus = Literal["idle", "running", "error", "disabled"]

ChangesetOperationScope = Literal["changeset", "resource", "range"]


class Changeset(TypedDict):
    """A changeset in a session's catalogue; expand `uriTemplate` (RFC 6570) to subscribe."""

    label: str
    uriTemplate: str
    description: NotRequired[str]
    changeKind: str


class ChangesetFile(TypedDict):
    """A changed file."""

    id: str
    edit: FileEdit
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


class ChangesetFileSetAction(TypedDict):
    """A file is new, or replaced as a whole."""

    type: Literal["changeset/fileSet"]
    file: ChangesetFile


class ChangesetContentChangedAction(TypedDict):
    """Files, and what else is given, were replaced."""

    type: Literal["changeset/contentChanged"]
    files: list[ChangesetFile]
    operations: NotRequired[list[ChangesetOperation]]
    error: NotRequired[ErrorInfo]


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


ChangesetAction = (
    ChangesetStatusChangedAction
    | ChangesetFileSetAction
    | ChangesetFileRemovedAction
    | ChangesetContentChangedAction
    | ChangesetOperationsChangedAction
    | ChangesetOperationStatusChangedAction
    | ChangesetClearedAction
)


ChangesetOperationTargetKind = Literal["resource", "range"]


class ChangesetResourceTarget(TypedDict):
    """A whole file."""

    kind: Literal["resource"]
    resource: URI
    side: NotRequired[Literal["before", "after"]]


class ChangesetRangeTarget(TypedDict):
    """Lines of a file."""

    kind: Literal["range"]
    resource: URI
    side: NotRequired[Literal["before", "after"]]
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


def changeset_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The changeset after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _content_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    """Without operations in the action the operations stay; without an error in it the error is removed."""
    after = {**state, "files": action["files"]}
    if action.get("operations") is not None:
        after["operations"] = action["operations"]
    return put(after, "error", action.get("error"))


HANDLERS: Final[Mapping[str, Handler]] = {
    **{kind: handler for kind, handler in CURRENT.items() if kind != "changeset/filesReviewChanged"},
    "changeset/contentChanged": _content_changed,
}


__all__ = [
    "HANDLERS",
    "Changeset",
    "ChangesetAction",
    "ChangesetClearedAction",
    "ChangesetContentChangedAction",
    "ChangesetFile",
    "ChangesetFileRemovedAction",
    "ChangesetFileSetAction",
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
    "changeset_reducer",
]
