from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import ContentRef, StringOrMarkdown


class ChangesetOperationFollowUp(TypedDict):
    content: ContentRef
    external: NotRequired[bool]


class InvokeChangesetOperationParams(BaseParams):
    operationId: str
    target: NotRequired[ChangesetOperationTarget]


class InvokeChangesetOperationResult(TypedDict):
    message: NotRequired[StringOrMarkdown]
    followUp: NotRequired[ChangesetOperationFollowUp]
