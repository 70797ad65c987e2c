"""Commands on the host."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.commands import PaginatedParams, PaginatedResult, RootParams
from ahpkit.protocol.common.state import URI, JsonObject
from ahpkit.protocol.session.state import SessionConfigSchema, SessionSummary


class ListSessionsParams(RootParams, PaginatedParams):
    """`listSessions`: the sessions changed last come first. Without `limit` and `cursor`: all of them."""


class ListSessionsResult(PaginatedResult):
    """Sessions."""

    items: list[SessionSummary]


class ResolveSessionConfigParams(RootParams):
    """`resolveSessionConfig`: which settings a new session would have, given what is chosen so far."""

    provider: NotRequired[str]
    workingDirectory: NotRequired[URI]
    config: NotRequired[JsonObject]


class ResolveSessionConfigResult(TypedDict):
    """The settings and their values."""

    schema: SessionConfigSchema
    values: JsonObject


class SessionConfigCompletionsParams(RootParams):
    """`sessionConfigCompletions`: values for one setting that fit `query`."""

    provider: NotRequired[str]
    workingDirectory: NotRequired[URI]
    config: NotRequired[JsonObject]
    property: str
    query: NotRequired[str]


class SessionConfigValueItem(TypedDict):
    """A possible value."""

    value: str
    label: str
    description: NotRequired[str]


class SessionConfigCompletionsResult(TypedDict):
    """In the order to show them."""

    items: list[SessionConfigValueItem]


__all__ = [
    "ListSessionsParams",
    "ListSessionsResult",
    "ResolveSessionConfigParams",
    "ResolveSessionConfigResult",
    "SessionConfigCompletionsParams",
    "SessionConfigCompletionsResult",
    "SessionConfigValueItem",
]
