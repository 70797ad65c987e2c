from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import ErrorInfo, FileEdit, JsonObject, StringOrMarkdown

ChangesetStatus = Literal["computing", "ready", "error"]


ChangesetOperationStatus = Literal["idle", "running", "error", "disabled"]


ChangesetOperationScope = Literal["changeset", "resource", "range"]


class Changeset(TypedDict):
    label: str
    uriTemplate: str
    description: NotRequired[str]
    changeKind: str


class ChangesetState(TypedDict):
    status: ChangesetStatus
    error: NotRequired[ErrorInfo]
    files: list[ChangesetFile]
    operations: NotRequired[list[ChangesetOperation]]


class ChangesetFile(TypedDict):
    id: str
    edit: FileEdit
    _meta: NotRequired[JsonObject]


class ChangesetOperation(TypedDict):
    id: str
    label: str
    description: NotRequired[str]
    scopes: list[ChangesetOperationScope]
    confirmation: NotRequired[StringOrMarkdown]
    icon: NotRequired[str]
    group: NotRequired[str]
    status: ChangesetOperationStatus
    error: NotRequired[ErrorInfo]
