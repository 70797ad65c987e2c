"""MCP servers in a session's state: their life cycle, and which parts of MCP Apps the host serves."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import ErrorInfo, JsonObject, ProtectedResourceMetadata

McpServerStatus = Literal["starting", "ready", "authRequired", "error", "stopped"] | str

McpAuthRequiredReason = Literal["required", "expired", "insufficientScope"] | str


class McpServerStartingState(TypedDict):
    """The server is known and not running yet. With `blocking`, messages wait for it."""

    kind: Literal["starting"]
    blocking: NotRequired[bool]


class McpServerReadyState(TypedDict):
    """Running and serving."""

    kind: Literal["ready"]


class McpOAuthClient(TypedDict):
    """The OAuth client to use instead of registering one; without a secret a public one."""

    clientId: str
    clientSecret: NotRequired[str]


class McpAuthRequirement(TypedDict):
    """What a client has to get a token for."""

    reason: McpAuthRequiredReason
    oauthClient: NotRequired[McpOAuthClient]
    resource: ProtectedResourceMetadata
    requiredScopes: NotRequired[list[str]]
    description: NotRequired[str]


class McpServerAuthRequiredState(McpAuthRequirement):
    """Reachable, but a client has to `authenticate` for `resource` first."""

    kind: Literal["authRequired"]


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
    """Which of an MCP App's host capabilities the `mcp://` channel serves."""

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
    "McpAuthRequirement",
    "McpListChangedCapability",
    "McpOAuthClient",
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
