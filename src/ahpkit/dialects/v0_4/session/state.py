"""State of a session. Customizations, MCP servers and canvases have modules of their own beside this one and are
re-exported here: every name of the specification's session state is found in this module.
"""

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
from ahpkit.protocol.session.state import ProjectInfo, SessionStatus, ToolAnnotations, ToolDefinition

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
