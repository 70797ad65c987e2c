"""State of a session. Customizations, MCP servers and canvases have modules of their own beside this one and are
re-exported here: every name of the specification's session state is found in this module.
"""

from __future__ import annotations

from enum import KEEP, IntFlag
from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.annotations import AnnotationsSummary
from ahpkit.dialects.v0_4.changeset import Changeset
from ahpkit.dialects.v0_4.chat.state import ChatSummary
from ahpkit.dialects.v0_4.common import (
    URI,
    AgentSelection,
    ConfigPropertySchema,
    ErrorInfo,
    JsonObject,
    JsonValue,
    ModelSelection,
)
from ahpkit.dialects.v0_4.session.customizations import (
    AgentCustomization,
    AhpMcpUiHostCapabilities,
    ChildCustomization,
    ChildCustomizationBase,
    ChildCustomizationType,
    ClientPluginCustomization,
    ContainerCustomizationBase,
    Customization,
    CustomizationBase,
    CustomizationDegradedState,
    CustomizationErrorState,
    CustomizationLoadedState,
    CustomizationLoadingState,
    CustomizationLoadState,
    CustomizationLoadStatus,
    CustomizationType,
    DirectoryCustomization,
    HookCustomization,
    McpAuthRequiredReason,
    McpListChangedCapability,
    McpSamplingCapability,
    McpServerAuthRequiredState,
    McpServerCustomization,
    McpServerCustomizationApps,
    McpServerErrorState,
    McpServerReadyState,
    McpServerStartingState,
    McpServerState,
    McpServerStatus,
    McpServerStoppedState,
    PluginCustomization,
    PromptCustomization,
    RuleCustomization,
    SkillCustomization,
)
from ahpkit.protocol.common import status
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

SessionLifecycle = Literal["creating", "ready", "creationFailed"]


class SessionStatus(IntFlag, boundary=KEEP):
    """Bits of `status`. States hold the plain int: unknown bits stay. Idle to InputNeeded exclude each other."""

    Idle = status.IDLE
    Error = status.ERROR
    InProgress = status.IN_PROGRESS
    InputNeeded = status.INPUT_NEEDED
    IsRead = status.IS_READ
    IsArchived = status.IS_ARCHIVED


class ProjectInfo(TypedDict):
    """The project a session works on."""

    uri: URI
    displayName: str


class ChangesSummary(TypedDict):
    """How much a session changed."""

    additions: NotRequired[int]
    deletions: NotRequired[int]
    files: NotRequired[int]


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


class ToolAnnotations(TypedDict):
    """Hints about a tool's behaviour, as in MCP; nothing to rely on."""

    title: NotRequired[str]
    readOnlyHint: NotRequired[bool]
    destructiveHint: NotRequired[bool]
    idempotentHint: NotRequired[bool]
    openWorldHint: NotRequired[bool]


class ToolDefinition(TypedDict):
    """A tool of the host or of the active client. Its schemas are JSON Schema objects, as in MCP."""

    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    inputSchema: NotRequired[JsonObject]
    outputSchema: NotRequired[JsonObject]
    annotations: NotRequired[ToolAnnotations]
    _meta: NotRequired[JsonObject]


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
