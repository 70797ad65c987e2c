"""The host itself (`ahp-root://`): state, actions, commands, notifications, reducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.reducing import Handler, apply, assign, merge_config
from ahpkit.protocol.common.state import (
    URI,
    BaseParams,
    ConfigSchema,
    JsonObject,
    PaginatedParams,
    PaginatedResult,
    ProtectedResourceMetadata,
    RootParams,
)
from ahpkit.protocol.session.state import Customization, PartialSessionSummary, SessionConfigSchema, SessionSummary
from ahpkit.protocol.terminal import TerminalInfo

PolicyState = Literal["enabled", "disabled", "unconfigured"]


class SessionModelInfo(TypedDict):
    """A model that an agent offers."""

    id: str
    provider: str
    name: str
    maxContextWindow: NotRequired[int]
    maxOutputTokens: NotRequired[int]
    maxPromptTokens: NotRequired[int]
    supportsVision: NotRequired[bool]
    policyState: NotRequired[PolicyState]
    configSchema: NotRequired[ConfigSchema]
    _meta: NotRequired[JsonObject]


class MultipleChatsCapability(TypedDict):
    """A session may have further chats, perhaps forked from others or beside them."""

    fork: NotRequired[bool]
    sideChat: NotRequired[bool]


class MultipleWorkingDirectoriesCapability(TypedDict):
    """A session may have several directories; whether the first one can be exchanged."""

    immutablePrimary: NotRequired[bool]
    primaryReplacement: NotRequired[bool]


class AgentCapabilities(TypedDict):
    """What an agent can do besides one chat in one directory: a key that is there means yes."""

    multipleChats: NotRequired[MultipleChatsCapability]
    multipleWorkingDirectories: NotRequired[MultipleWorkingDirectoriesCapability]


class AgentInfo(TypedDict):
    """An agent that sessions can run."""

    provider: str
    displayName: str
    description: str
    models: list[SessionModelInfo]
    protectedResources: NotRequired[list[ProtectedResourceMetadata]]
    customizations: NotRequired[list[Customization]]
    capabilities: NotRequired[AgentCapabilities]
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


def root_agents_changed(*, agents: list[AgentInfo]) -> RootAgentsChangedAction:
    """The agents were replaced."""
    return {"type": "root/agentsChanged", "agents": agents}


class RootActiveSessionsChangedAction(TypedDict):
    """The number of sessions changed."""

    type: Literal["root/activeSessionsChanged"]
    activeSessions: int


def root_active_sessions_changed(*, active_sessions: int) -> RootActiveSessionsChangedAction:
    """The number of sessions changed."""
    return {"type": "root/activeSessionsChanged", "activeSessions": active_sessions}


class RootTerminalsChangedAction(TypedDict):
    """The terminals were replaced."""

    type: Literal["root/terminalsChanged"]
    terminals: list[TerminalInfo]


def root_terminals_changed(*, terminals: list[TerminalInfo]) -> RootTerminalsChangedAction:
    """The terminals were replaced."""
    return {"type": "root/terminalsChanged", "terminals": terminals}


class RootConfigChangedAction(TypedDict):
    """Settings changed: merged, or with `replace` exchanged as a whole."""

    type: Literal["root/configChanged"]
    config: JsonObject
    replace: NotRequired[bool]


def root_config_changed(*, config: JsonObject, replace: bool | None = None) -> RootConfigChangedAction:
    """Settings changed: merged, or with `replace` exchanged as a whole."""
    action: RootConfigChangedAction = {"type": "root/configChanged", "config": config}
    if replace is not None:
        action["replace"] = replace
    return action


RootAction = (
    RootAgentsChangedAction | RootActiveSessionsChangedAction | RootTerminalsChangedAction | RootConfigChangedAction
)


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
    """The values, in the order in which to show them."""

    items: list[SessionConfigValueItem]


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


HANDLERS: Final[Mapping[str, Handler]] = {
    "root/agentsChanged": assign("agents"),
    "root/activeSessionsChanged": assign("activeSessions"),
    "root/terminalsChanged": assign("terminals"),
    "root/configChanged": merge_config,
}


def root_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The root state after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


__all__ = [
    "HANDLERS",
    "AgentCapabilities",
    "AgentInfo",
    "ListSessionsParams",
    "ListSessionsResult",
    "MultipleChatsCapability",
    "MultipleWorkingDirectoriesCapability",
    "PolicyState",
    "ProgressParams",
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
    "root_active_sessions_changed",
    "root_agents_changed",
    "root_config_changed",
    "root_reducer",
    "root_terminals_changed",
]
