"""Customizations of a session: containers (plugins, directories) and their children.

A child is effectively enabled when its container and itself are; an absent `enabled` means yes
(`ahpkit.protocol.session.enablement` answers that).
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import URI, Icon, JsonObject, ProtectedResourceMetadata, TextRange
from ahpkit.protocol.session.customizations import (
    CustomizationDegradedState,
    CustomizationErrorState,
    CustomizationLoadedState,
    CustomizationLoadingState,
    CustomizationLoadStatus,
)
from ahpkit.protocol.session.mcp import (
    AhpMcpUiHostCapabilities,
    McpListChangedCapability,
    McpSamplingCapability,
    McpServerCustomizationApps,
    McpServerErrorState,
    McpServerReadyState,
    McpServerStoppedState,
)

CustomizationType = Literal["plugin", "directory", "agent", "skill", "prompt", "rule", "hook", "mcpServer"]

ChildCustomizationType = Literal["agent", "skill", "prompt", "rule", "hook", "mcpServer"]


CustomizationLoadState = (
    CustomizationLoadingState | CustomizationLoadedState | CustomizationDegradedState | CustomizationErrorState
)


class CustomizationBase(TypedDict):
    """What all customizations have. `id` is unique in the session, `uri` says where it comes from."""

    id: str
    uri: URI
    name: str
    icons: NotRequired[list[Icon]]
    range: NotRequired[TextRange]
    _meta: NotRequired[JsonObject]


class ContainerCustomizationBase(CustomizationBase):
    """What holds children. No `children`: not read yet; an empty list: nothing in it."""

    enabled: bool
    clientId: NotRequired[str]
    load: NotRequired[CustomizationLoadState]
    children: NotRequired[list[ChildCustomization]]


class PluginCustomization(ContainerCustomizationBase):
    """An Open Plugins plugin."""

    type: Literal["plugin"]


class ClientPluginCustomization(PluginCustomization):
    """A plugin that a client publishes; a new `nonce` says that it changed."""

    nonce: NotRequired[str]


class DirectoryCustomization(ContainerCustomizationBase):
    """A directory the host watches for one kind of children."""

    type: Literal["directory"]
    contents: ChildCustomizationType
    writable: bool


class ChildCustomizationBase(CustomizationBase):
    """What every child but an MCP server has."""

    enabled: NotRequired[bool]


class AgentCustomization(ChildCustomizationBase):
    """A custom agent."""

    type: Literal["agent"]
    description: NotRequired[str]
    disableModelInvocation: NotRequired[bool]
    disableUserInvocation: NotRequired[bool]


class SkillCustomization(ChildCustomizationBase):
    """A skill or slash command."""

    type: Literal["skill"]
    description: NotRequired[str]
    disableModelInvocation: NotRequired[bool]
    disableUserInvocation: NotRequired[bool]


class PromptCustomization(ChildCustomizationBase):
    """A prompt."""

    type: Literal["prompt"]
    description: NotRequired[str]


class RuleCustomization(ChildCustomizationBase):
    """A rule or instruction."""

    type: Literal["rule"]
    description: NotRequired[str]
    alwaysApply: NotRequired[bool]
    globs: NotRequired[list[str]]


class HookCustomization(ChildCustomizationBase):
    """A hook; what it runs stays on the host."""

    type: Literal["hook"]
    event: NotRequired[str]
    matcher: NotRequired[str]


class McpServerCustomization(CustomizationBase):
    """An MCP server: a child, or at the top level when the host itself configures it."""

    type: Literal["mcpServer"]
    enabled: bool
    state: McpServerState
    channel: NotRequired[URI]
    mcpApp: NotRequired[McpServerCustomizationApps]


ChildCustomization = (
    AgentCustomization
    | SkillCustomization
    | PromptCustomization
    | RuleCustomization
    | HookCustomization
    | McpServerCustomization
)

Customization = PluginCustomization | DirectoryCustomization | McpServerCustomization


McpServerStatus = Literal["starting", "ready", "authRequired", "error", "stopped"]

McpAuthRequiredReason = Literal["required", "expired", "insufficientScope"]


class McpServerStartingState(TypedDict):
    """Known, not yet running."""

    kind: Literal["starting"]


class McpServerAuthRequiredState(TypedDict):
    """Reachable, but a client has to `authenticate` for `resource` first."""

    kind: Literal["authRequired"]
    reason: McpAuthRequiredReason
    resource: ProtectedResourceMetadata
    requiredScopes: NotRequired[list[str]]
    description: NotRequired[str]


McpServerState = (
    McpServerStartingState
    | McpServerReadyState
    | McpServerAuthRequiredState
    | McpServerErrorState
    | McpServerStoppedState
)


__all__ = [
    "AgentCustomization",
    "AhpMcpUiHostCapabilities",
    "ChildCustomization",
    "ChildCustomizationBase",
    "ChildCustomizationType",
    "ClientPluginCustomization",
    "ContainerCustomizationBase",
    "Customization",
    "CustomizationBase",
    "CustomizationDegradedState",
    "CustomizationErrorState",
    "CustomizationLoadState",
    "CustomizationLoadStatus",
    "CustomizationLoadedState",
    "CustomizationLoadingState",
    "CustomizationType",
    "DirectoryCustomization",
    "HookCustomization",
    "McpAuthRequiredReason",
    "McpListChangedCapability",
    "McpSamplingCapability",
    "McpServerAuthRequiredState",
    "McpServerCustomization",
    "McpServerCustomizationApps",
    "McpServerErrorState",
    "McpServerReadyState",
    "McpServerStartingState",
    "McpServerState",
    "McpServerStatus",
    "McpServerStoppedState",
    "PluginCustomization",
    "PromptCustomization",
    "RuleCustomization",
    "SkillCustomization",
]
