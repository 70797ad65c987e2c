"""State of a session. Customizations, MCP servers and canvases have their own modules beside this one and are
re-exported here: every name of the specification's session state is found in this module.
"""

from __future__ import annotations

from enum import KEEP, IntFlag
from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.annotations import AnnotationsSummary
from ahpkit.protocol.changeset import Changeset
from ahpkit.protocol.chat.state import (
    ChatInputRequest,
    ChatInteractivity,
    ChatOrigin,
    ChatSummary,
    ToolCallAuthRequiredState,
    ToolCallConfirmationState,
    ToolCallRunningState,
)
from ahpkit.protocol.common import status
from ahpkit.protocol.common.state import (
    URI,
    ChangesSummary,
    ConfigPropertySchema,
    ErrorInfo,
    JsonObject,
)
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
    SessionCanvasRequest,
    SessionOpenCanvas,
    SessionOpenCanvasUpdate,
)
from ahpkit.protocol.session.customizations import (
    AgentCustomization,
    ChildCustomization,
    ChildCustomizationBase,
    ChildCustomizationType,
    ClientPluginCustomization,
    ContainerCustomizationBase,
    Customization,
    CustomizationBase,
    CustomizationDegradedState,
    CustomizationEnablement,
    CustomizationEnablementKind,
    CustomizationErrorState,
    CustomizationLoadedState,
    CustomizationLoadingState,
    CustomizationLoadState,
    CustomizationLoadStatus,
    CustomizationType,
    DirectoryCustomization,
    GlobalEnablement,
    HookCustomization,
    McpServerCustomization,
    PluginCustomization,
    PromptCustomization,
    RuleCustomization,
    SessionEnablement,
    SkillCustomization,
    WorkspaceEnablement,
)
from ahpkit.protocol.session.mcp import (
    AhpMcpUiHostCapabilities,
    McpAuthRequiredReason,
    McpAuthRequirement,
    McpListChangedCapability,
    McpOAuthClient,
    McpSamplingCapability,
    McpServerAuthRequiredState,
    McpServerCustomizationApps,
    McpServerErrorState,
    McpServerReadyState,
    McpServerStartingState,
    McpServerState,
    McpServerStatus,
    McpServerStoppedState,
)

SessionLifecycle = Literal["creating", "ready", "failed"] | str

SessionInputRequestKind = Literal["chatInput", "toolConfirmation", "toolClientExecution", "toolAuthentication"] | str


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


class AutomationSessionOrigin(TypedDict):
    """A run of an automation made the session."""

    kind: Literal["automation"]
    automation: URI
    run: URI


SessionOrigin = AutomationSessionOrigin


class SessionChatSummary(TypedDict):
    """A chat in the summary of its session."""

    resource: URI
    title: str
    origin: NotRequired[ChatOrigin]
    interactivity: NotRequired[ChatInteractivity]
    status: NotRequired[int]
    changes: NotRequired[ChangesSummary]


class PartialSessionSummary(TypedDict):
    """Fields of a summary that changed."""

    resource: NotRequired[URI]
    provider: NotRequired[str]
    title: NotRequired[str]
    status: NotRequired[int]
    activity: NotRequired[str]
    createdAt: NotRequired[str]
    modifiedAt: NotRequired[str]
    origin: NotRequired[SessionOrigin]
    project: NotRequired[ProjectInfo]
    workingDirectories: NotRequired[list[URI]]
    changes: NotRequired[ChangesSummary]
    annotations: NotRequired[AnnotationsSummary]
    chats: NotRequired[list[SessionChatSummary]]
    defaultChat: NotRequired[URI]
    _meta: NotRequired[JsonObject]


class SessionMetadata(TypedDict):
    """What a session's state and its entry in lists have in common."""

    provider: str
    title: str
    status: int
    activity: NotRequired[str]
    origin: NotRequired[SessionOrigin]
    project: NotRequired[ProjectInfo]
    workingDirectories: NotRequired[list[URI]]
    annotations: NotRequired[AnnotationsSummary]


class SessionSummary(SessionMetadata):
    """A session in a list. Times are ISO 8601 with milliseconds and Z."""

    resource: URI
    createdAt: str
    modifiedAt: str
    changes: NotRequired[ChangesSummary]
    chats: NotRequired[list[SessionChatSummary]]
    defaultChat: NotRequired[URI]
    _meta: NotRequired[JsonObject]


class ToolAnnotations(TypedDict):
    """Hints about a tool's behaviour, as in MCP; they are not reliable."""

    title: NotRequired[str]
    readOnlyHint: NotRequired[bool]
    destructiveHint: NotRequired[bool]
    idempotentHint: NotRequired[bool]
    openWorldHint: NotRequired[bool]


class ToolDefinition(TypedDict):
    """A tool of the host or of a client. Its schemas are JSON Schema objects, as in MCP."""

    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    inputSchema: NotRequired[JsonObject]
    outputSchema: NotRequired[JsonObject]
    annotations: NotRequired[ToolAnnotations]
    _meta: NotRequired[JsonObject]


class SessionActiveClient(TypedDict):
    """A client that gives a session its tools, plugins and canvases."""

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


class SessionInputRequestBase(TypedDict):
    """Something that waits for somebody, in one chat. `id` is opaque."""

    id: str
    chat: URI


class SessionChatInputRequest(SessionInputRequestBase):
    """Questions wait for answers."""

    kind: Literal["chatInput"]
    request: ChatInputRequest


class SessionToolConfirmationRequest(SessionInputRequestBase):
    """A tool call, or its result, waits for approval."""

    kind: Literal["toolConfirmation"]
    turnId: str
    toolCall: ToolCallConfirmationState


class SessionToolClientExecutionRequest(SessionInputRequestBase):
    """A tool call waits for the client that runs it."""

    kind: Literal["toolClientExecution"]
    turnId: str
    clientId: str
    toolCall: ToolCallRunningState


class SessionToolAuthenticationRequest(SessionInputRequestBase):
    """A tool call waits for a token."""

    kind: Literal["toolAuthentication"]
    turnId: str
    toolCall: ToolCallAuthRequiredState


SessionInputRequest = (
    SessionChatInputRequest
    | SessionToolConfirmationRequest
    | SessionToolClientExecutionRequest
    | SessionToolAuthenticationRequest
)


class SessionState(SessionMetadata):
    """State of a session. Its canvases (`canvasRegistry`, `openCanvases`, `canvasRequests`) are additions of ours."""

    lifecycle: SessionLifecycle
    creationError: NotRequired[ErrorInfo]
    serverTools: NotRequired[list[ToolDefinition]]
    activeClients: list[SessionActiveClient]
    chats: list[ChatSummary]
    defaultChat: NotRequired[URI]
    config: NotRequired[SessionConfigState]
    customizations: NotRequired[list[Customization]]
    changesets: NotRequired[list[Changeset]]
    inputNeeded: NotRequired[list[SessionInputRequest]]
    canvasRegistry: NotRequired[list[SessionCanvasDeclaration]]
    openCanvases: NotRequired[list[SessionOpenCanvas]]
    canvasRequests: NotRequired[list[SessionCanvasRequest]]
    _meta: NotRequired[JsonObject]


__all__ = [
    "AgentCustomization",
    "AhpMcpUiHostCapabilities",
    "AutomationSessionOrigin",
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
    "ChildCustomization",
    "ChildCustomizationBase",
    "ChildCustomizationType",
    "ClientCanvasDeclaration",
    "ClientPluginCustomization",
    "ContainerCustomizationBase",
    "Customization",
    "CustomizationBase",
    "CustomizationDegradedState",
    "CustomizationEnablement",
    "CustomizationEnablementKind",
    "CustomizationErrorState",
    "CustomizationLoadState",
    "CustomizationLoadStatus",
    "CustomizationLoadedState",
    "CustomizationLoadingState",
    "CustomizationType",
    "DirectoryCustomization",
    "GlobalEnablement",
    "HookCustomization",
    "McpAuthRequiredReason",
    "McpAuthRequirement",
    "McpListChangedCapability",
    "McpOAuthClient",
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
    "SessionChatInputRequest",
    "SessionChatSummary",
    "SessionConfigPropertySchema",
    "SessionConfigSchema",
    "SessionConfigState",
    "SessionEnablement",
    "SessionInputRequest",
    "SessionInputRequestBase",
    "SessionInputRequestKind",
    "SessionLifecycle",
    "SessionMetadata",
    "SessionOpenCanvas",
    "SessionOpenCanvasUpdate",
    "SessionOrigin",
    "SessionState",
    "SessionStatus",
    "SessionSummary",
    "SessionToolAuthenticationRequest",
    "SessionToolClientExecutionRequest",
    "SessionToolConfirmationRequest",
    "SkillCustomization",
    "ToolAnnotations",
    "ToolDefinition",
    "WorkspaceEnablement",
]
