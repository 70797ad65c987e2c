"""The root channel of 0.4.0: its state, actions, commands, notifications and reducer."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import (
    URI,
    BaseParams,
    ConfigSchema,
    JsonObject,
    ProtectedResourceMetadata,
    RootParams,
)
from ahpkit.dialects.v0_4.session.state import Customization, PartialSessionSummary, SessionConfigSchema, SessionSummary
from ahpkit.dialects.v0_4.terminal import TerminalInfo
from ahpkit.protocol.common.reducing import apply
from ahpkit.protocol.root import (
    HANDLERS,
    PolicyState,
    RootActiveSessionsChangedAction,
    RootConfigChangedAction,
    SessionConfigCompletionsResult,
    SessionConfigValueItem,
)


class SessionModelInfo(TypedDict):
    """A model that an agent offers."""

    id: str
    provider: str
    name: str
    maxContextWindow: NotRequired[int]
    supportsVision: NotRequired[bool]
    policyState: NotRequired[PolicyState]
    configSchema: NotRequired[ConfigSchema]
    _meta: NotRequired[JsonObject]


class AgentInfo(TypedDict):
    """An agent that sessions can run."""

    provider: str
    displayName: str
    description: str
    models: list[SessionModelInfo]
    protectedResources: NotRequired[list[ProtectedResourceMetadata]]
    customizations: NotRequired[list[Customization]]
    _meta: NotRequired[JsonObject]


class RootConfigState(TypedDict):
    """The host's settings and their values."""

    schema: ConfigSchema
    values: JsonObject


class RootState(TypedDict):
    """State of `ahp-root://`."""

    agents: list[AgentInfo]
    activeSessions: NotRequired[int]
    terminals: NotRequired[list[TerminalInfo]]
    config: NotRequired[RootConfigState]
    _meta: NotRequired[JsonObject]


class RootAgentsChangedAction(TypedDict):
    """The agents were replaced."""

    type: Literal["root/agentsChanged"]
    agents: list[AgentInfo]


class RootTerminalsChangedAction(TypedDict):
    """The terminals were replaced."""

    type: Literal["root/terminalsChanged"]
    terminals: list[TerminalInfo]


RootAction = (
    RootAgentsChangedAction | RootActiveSessionsChangedAction | RootTerminalsChangedAction | RootConfigChangedAction
)


class ListSessionsParams(RootParams):
    """`listSessions`."""

    filter: NotRequired[JsonObject]


class ListSessionsResult(TypedDict):
    """All sessions."""

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


def root_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The root state after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


__all__ = [
    "HANDLERS",
    "AgentInfo",
    "ListSessionsParams",
    "ListSessionsResult",
    "PolicyState",
    "ResolveSessionConfigParams",
    "ResolveSessionConfigResult",
    "RootAction",
    "RootActiveSessionsChangedAction",
    "RootAgentsChangedAction",
    "RootConfigChangedAction",
    "RootConfigState",
    "RootState",
    "RootTerminalsChangedAction",
    "SessionAddedParams",
    "SessionConfigCompletionsParams",
    "SessionConfigCompletionsResult",
    "SessionConfigValueItem",
    "SessionModelInfo",
    "SessionRemovedParams",
    "SessionSummaryChangedParams",
    "root_reducer",
]
