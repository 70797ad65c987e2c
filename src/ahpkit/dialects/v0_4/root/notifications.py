"""Notifications on `ahp-root://`. They are never replayed: who reconnects lists the sessions again."""

from __future__ import annotations

from ahpkit.dialects.v0_4.common.commands import BaseParams
from ahpkit.dialects.v0_4.common.state import URI
from ahpkit.dialects.v0_4.session.state import PartialSessionSummary, SessionSummary


class SessionAddedParams(BaseParams):
    """`root/sessionAdded`."""

    summary: SessionSummary


class SessionRemovedParams(BaseParams):
    """`root/sessionRemoved`."""

    session: URI


class SessionSummaryChangedParams(BaseParams):
    """`root/sessionSummaryChanged`: only what changed."""

    session: URI
    changes: PartialSessionSummary


__all__ = [
    "SessionAddedParams",
    "SessionRemovedParams",
    "SessionSummaryChangedParams",
]
