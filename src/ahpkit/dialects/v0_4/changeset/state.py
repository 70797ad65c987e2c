"""State of a changeset: changed files and what can be done with them. Knows no version control."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.state import ErrorInfo, FileEdit, JsonObject, StringOrMarkdown

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


__all__ = [
    "Changeset",
    "ChangesetFile",
    "ChangesetOperation",
    "ChangesetOperationScope",
    "ChangesetOperationStatus",
    "ChangesetState",
    "ChangesetStatus",
]
