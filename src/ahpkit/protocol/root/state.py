from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import ConfigSchema, JsonObject, ProtectedResourceMetadata
from ahpkit.protocol.session.state import Customization
from ahpkit.protocol.terminal.state import TerminalInfo

PolicyState = Literal["enabled", "disabled", "unconfigured"]


class RootState(TypedDict):
    agents: list[AgentInfo]
    activeSessions: NotRequired[int | float]
    terminals: NotRequired[list[TerminalInfo]]
    config: NotRequired[RootConfigState]
    _meta: NotRequired[JsonObject]


class AgentInfo(TypedDict):
    provider: str
    displayName: str
    description: str
    models: list[SessionModelInfo]
    protectedResources: NotRequired[list[ProtectedResourceMetadata]]
    customizations: NotRequired[list[Customization]]


class SessionModelInfo(TypedDict):
    id: str
    provider: str
    name: str
    maxContextWindow: NotRequired[int | float]
    supportsVision: NotRequired[bool]
    policyState: NotRequired[PolicyState]
    configSchema: NotRequired[ConfigSchema]
    _meta: NotRequired[JsonObject]


class RootConfigState(TypedDict):
    schema: ConfigSchema
    values: JsonObject
