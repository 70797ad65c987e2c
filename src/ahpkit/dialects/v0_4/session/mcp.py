"""MCP servers as a session shows them: their life cycle and what of MCP Apps the host serves. Knows no MCP itself."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.state import ErrorInfo, JsonObject, ProtectedResourceMetadata

McpServerStatus = Literal["starting", "ready", "authRequired", "error", "stopped"]

McpAuthRequiredReason = Literal["required", "expired", "insufficientScope"]


class McpServerStartingState(TypedDict):
    """Known, not yet running."""

    kind: Literal["starting"]


class McpServerReadyState(TypedDict):
    """Running and serving."""

    kind: Literal["ready"]


class McpServerAuthRequiredState(TypedDict):
    """Reachable, but a client has to `authenticate` for `resource` first."""

    kind: Literal["authRequired"]
    reason: McpAuthRequiredReason
    resource: ProtectedResourceMetadata
    requiredScopes: NotRequired[list[str]]
    description: NotRequired[str]


class McpServerErrorState(TypedDict):
    """Failed to start, or crashed."""

    kind: Literal["error"]
    error: ErrorInfo


class McpServerStoppedState(TypedDict):
    """Shut down."""

    kind: Literal["stopped"]


McpServerState = (
    McpServerStartingState
    | McpServerReadyState
    | McpServerAuthRequiredState
    | McpServerErrorState
    | McpServerStoppedState
)


class McpListChangedCapability(TypedDict):
    """A family of MCP methods is proxied; with `listChanged` its change notifications too."""

    listChanged: NotRequired[bool]


class McpSamplingCapability(TypedDict):
    """`sampling/createMessage` is served; with `tools` also with tool use."""

    tools: NotRequired[JsonObject]


class AhpMcpUiHostCapabilities(TypedDict):
    """What of an MCP App's host capabilities the `mcp://` channel serves."""

    serverTools: NotRequired[McpListChangedCapability]
    serverResources: NotRequired[McpListChangedCapability]
    logging: NotRequired[JsonObject]
    sampling: NotRequired[McpSamplingCapability]


class McpServerCustomizationApps(TypedDict):
    """What a client needs to render the server's apps."""

    capabilities: AhpMcpUiHostCapabilities


__all__ = [
    "AhpMcpUiHostCapabilities",
    "McpAuthRequiredReason",
    "McpListChangedCapability",
    "McpSamplingCapability",
    "McpServerAuthRequiredState",
    "McpServerCustomizationApps",
    "McpServerErrorState",
    "McpServerReadyState",
    "McpServerStartingState",
    "McpServerState",
    "McpServerStatus",
    "McpServerStoppedState",
]
