"""State of the host itself."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import ConfigSchema, JsonObject, ProtectedResourceMetadata
from ahpkit.protocol.session.state import Customization
from ahpkit.protocol.terminal.state import TerminalInfo

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


__all__ = [
    "AgentCapabilities",
    "AgentInfo",
    "MultipleChatsCapability",
    "MultipleWorkingDirectoriesCapability",
    "PolicyState",
    "RootConfigState",
    "RootState",
    "SessionModelInfo",
]
