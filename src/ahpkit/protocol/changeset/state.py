"""State of a changeset: changed files and what can be done with them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import ErrorInfo, FileEdit, JsonObject, StringOrMarkdown

ChangesetStatus = Literal["computing", "recomputing", "ready", "error"] | str

ChangesetOperationStatus = Literal["idle", "running", "error", "disabled"] | str

ChangesetOperationScope = Literal["changeset", "resource", "range"] | str


class ChangesetCapabilities(TypedDict):
    """What can be done with a changeset: a key that is there means yes."""

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


__all__ = [
    "Changeset",
    "ChangesetCapabilities",
    "ChangesetFile",
    "ChangesetOperation",
    "ChangesetOperationScope",
    "ChangesetOperationStatus",
    "ChangesetState",
    "ChangesetStatus",
]
