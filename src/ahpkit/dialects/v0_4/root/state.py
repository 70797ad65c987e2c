"""State of the host itself. Knows no connection."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.state import ConfigSchema, JsonObject, ProtectedResourceMetadata
from ahpkit.dialects.v0_4.session.state import Customization
from ahpkit.dialects.v0_4.terminal.state import TerminalInfo

PolicyState = Literal["enabled", "disabled", "unconfigured"]


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


__all__ = [
    "AgentInfo",
    "PolicyState",
    "RootConfigState",
    "RootState",
    "SessionModelInfo",
]
