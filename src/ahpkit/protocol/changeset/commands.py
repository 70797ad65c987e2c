"""Commands on changesets."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import URI, ContentRef, StringOrMarkdown, TextRange

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


__all__ = [
    "ChangesetOperationFollowUp",
    "ChangesetOperationTarget",
    "ChangesetOperationTargetKind",
    "ChangesetRangeTarget",
    "ChangesetResourceTarget",
    "InvokeChangesetOperationParams",
    "InvokeChangesetOperationResult",
]
