"""Notifications on `ahp-root://`. They are never replayed: a client that reconnects lists the sessions again."""

from __future__ import annotations

from typing import NotRequired

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import URI
from ahpkit.protocol.session.state import PartialSessionSummary, SessionSummary


class SessionAddedParams(BaseParams):
    """`root/sessionAdded`."""

    summary: SessionSummary


class SessionRemovedParams(BaseParams):
    """`root/sessionRemoved`."""

    session: URI


class ProgressParams(BaseParams):
    """`root/progress`: how far the creation of a session is, for the connection that gave `progressToken`."""

    progressToken: str
    progress: int | float
    total: NotRequired[int | float]
    message: NotRequired[str]


class SessionSummaryChangedParams(BaseParams):
    """`root/sessionSummaryChanged`: only what changed."""

    session: URI
    changes: PartialSessionSummary


__all__ = [
    "ProgressParams",
    "SessionAddedParams",
    "SessionRemovedParams",
    "SessionSummaryChangedParams",
]
