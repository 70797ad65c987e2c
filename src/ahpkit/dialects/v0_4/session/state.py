"""State of a session of 0.4.0: customizations, MCP servers, canvases, and the session itself."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.annotations import AnnotationsSummary
from ahpkit.dialects.v0_4.changeset import Changeset
from ahpkit.dialects.v0_4.chat.state import ChatSummary
from ahpkit.dialects.v0_4.common import (
    URI,
    AgentSelection,
    ConfigPropertySchema,
    ErrorInfo,
    Icon,
    JsonObject,
    JsonValue,
    ModelSelection,
    ProtectedResourceMetadata,
    TextRange,
)
from ahpkit.protocol.common.state import ChangesSummary
from ahpkit.protocol.session.canvases import (
    CanvasActionResult,
    CanvasActiveClientTarget,
    CanvasCancellationReason,
    CanvasCloseResult,
    CanvasErrorPayload,
    CanvasInstanceAvailability,
    CanvasOpenResult,
    CanvasProviderKind,
    CanvasRenderer,
    CanvasRequestKind,
    CanvasRequestTarget,
    CanvasResult,
    CanvasServerTarget,
    ClientCanvasDeclaration,
    SessionCanvasAction,
    SessionCanvasDeclaration,
    SessionOpenCanvas,
    SessionOpenCanvasUpdate,
)
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
from ahpkit.protocol.session.state import ProjectInfo, SessionStatus, ToolAnnotations, ToolDefinition

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


SessionLifecycle = Literal["creating", "ready", "creationFailed"]


class PartialSessionSummary(TypedDict):
    """Fields of a summary that changed."""

    resource: NotRequired[URI]
    provider: NotRequired[str]
    title: NotRequired[str]
    status: NotRequired[int]
    activity: NotRequired[str]
    createdAt: NotRequired[int | float]
    modifiedAt: NotRequired[int | float]
    project: NotRequired[ProjectInfo]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    workingDirectory: NotRequired[URI]
    changes: NotRequired[ChangesSummary]
    annotations: NotRequired[AnnotationsSummary]


class SessionSummary(TypedDict):
    """A session in a list. Times are milliseconds since the epoch."""

    resource: URI
    provider: str
    title: str
    status: int
    activity: NotRequired[str]
    createdAt: int | float
    modifiedAt: int | float
    project: NotRequired[ProjectInfo]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    workingDirectory: NotRequired[URI]
    changes: NotRequired[ChangesSummary]
    annotations: NotRequired[AnnotationsSummary]


class SessionActiveClient(TypedDict):
    """The one client that gives a session its tools, plugins and canvases."""

    clientId: str
    displayName: NotRequired[str]
    tools: list[ToolDefinition]
    customizations: NotRequired[list[ClientPluginCustomization]]
    canvasProviders: NotRequired[list[ClientCanvasDeclaration]]
    canRenderCanvases: NotRequired[bool]


class SessionConfigPropertySchema(ConfigPropertySchema):
    """A setting of a session. `enumDynamic`: ask `sessionConfigCompletions` for values."""

    enumDynamic: NotRequired[bool]
    sessionMutable: NotRequired[bool]


class SessionConfigSchema(TypedDict):
    """The settings of a session."""

    type: Literal["object"]
    properties: dict[str, SessionConfigPropertySchema]
    required: NotRequired[list[str]]


class SessionConfigState(TypedDict):
    """A session's settings and their values."""

    schema: SessionConfigSchema
    values: JsonObject


class SessionCanvasRequest(TypedDict):
    """A question to a canvas provider that is not answered yet. All else about canvases is as in 1.0.0."""

    requestId: str
    kind: CanvasRequestKind
    instanceId: str
    canvasId: str
    extensionId: str
    target: CanvasRequestTarget
    actionName: NotRequired[str]
    input: NotRequired[JsonValue]
    deadlineMs: NotRequired[int]


class SessionState(TypedDict):
    """State of `ahp-session:/<id>`."""

    summary: SessionSummary
    lifecycle: SessionLifecycle
    creationError: NotRequired[ErrorInfo]
    serverTools: NotRequired[list[ToolDefinition]]
    activeClient: NotRequired[SessionActiveClient]
    chats: list[ChatSummary]
    defaultChat: NotRequired[URI]
    config: NotRequired[SessionConfigState]
    customizations: NotRequired[list[Customization]]
    changesets: NotRequired[list[Changeset]]
    canvasRegistry: NotRequired[list[SessionCanvasDeclaration]]
    openCanvases: NotRequired[list[SessionOpenCanvas]]
    canvasRequests: NotRequired[list[SessionCanvasRequest]]
    _meta: NotRequired[JsonObject]


__all__ = [
    "AgentCustomization",
    "AhpMcpUiHostCapabilities",
    "CanvasActionResult",
    "CanvasActiveClientTarget",
    "CanvasCancellationReason",
    "CanvasCloseResult",
    "CanvasErrorPayload",
    "CanvasInstanceAvailability",
    "CanvasOpenResult",
    "CanvasProviderKind",
    "CanvasRenderer",
    "CanvasRequestKind",
    "CanvasRequestTarget",
    "CanvasResult",
    "CanvasServerTarget",
    "ChangesSummary",
    "ChildCustomization",
    "ChildCustomizationBase",
    "ChildCustomizationType",
    "ClientCanvasDeclaration",
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
    "PartialSessionSummary",
    "PluginCustomization",
    "ProjectInfo",
    "PromptCustomization",
    "RuleCustomization",
    "SessionActiveClient",
    "SessionCanvasAction",
    "SessionCanvasDeclaration",
    "SessionCanvasRequest",
    "SessionConfigPropertySchema",
    "SessionConfigSchema",
    "SessionConfigState",
    "SessionLifecycle",
    "SessionOpenCanvas",
    "SessionOpenCanvasUpdate",
    "SessionState",
    "SessionStatus",
    "SessionSummary",
    "SkillCustomization",
    "ToolAnnotations",
    "ToolDefinition",
]
