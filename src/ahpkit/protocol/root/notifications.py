from __future__ import annotations

from typing import Literal, NotRequired

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import URI, JsonObject
from ahpkit.protocol.session.state import SessionSummary

AuthRequiredReason = Literal["required", "expired"]


class AuthRequiredParams(BaseParams):
    resource: str
    reason: NotRequired[AuthRequiredReason]


class SessionAddedParams(BaseParams):
    summary: SessionSummary


class SessionRemovedParams(BaseParams):
    session: URI


class SessionSummaryChangedParams(BaseParams):
    session: URI
    changes: JsonObject  # INLINE {"resource": ["URI", false], "provider": ["str", false], "title": ["str", false], "status": ["int", false], "activity": ["str", false], "createdAt": ["int | float", false], "modifiedAt": ["int | float", false], "project": ["ProjectInfo", false], "model": ["ModelSelection", false], "agent": ["AgentSelection", false], "workingDirectory": ["URI", false], "changes": ["ChangesSummary", false], "annotations": ["AnnotationsSummary", false]}
