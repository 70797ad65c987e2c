from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.annotations.state import AnnotationsSummary
from ahpkit.protocol.changeset.state import Changeset
from ahpkit.protocol.chat.state import ChatSummary
from ahpkit.protocol.common.state import (
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

ChildCustomizationType = Literal["agent", "skill", "prompt", "rule", "hook", "mcpServer"]


SessionLifecycle = Literal["creating", "ready", "creationFailed"]


CustomizationType = Literal["plugin", "directory", "agent", "skill", "prompt", "rule", "hook", "mcpServer"]


CustomizationLoadStatus = Literal["loading", "loaded", "degraded", "error"]


McpServerStatus = Literal["starting", "ready", "authRequired", "error", "stopped"]


McpAuthRequiredReason = Literal["required", "expired", "insufficientScope"]


class SessionState(TypedDict):
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
    _meta: NotRequired[JsonObject]


class SessionActiveClient(TypedDict):
    clientId: str
    displayName: NotRequired[str]
    tools: list[ToolDefinition]
    customizations: NotRequired[list[ClientPluginCustomization]]


class ProjectInfo(TypedDict):
    uri: URI
    displayName: str


class SessionSummary(TypedDict):
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


class ChangesSummary(TypedDict):
    additions: NotRequired[int | float]
    deletions: NotRequired[int | float]
    files: NotRequired[int | float]


class SessionConfigPropertySchema(TypedDict):
    type: Literal["string", "number", "boolean", "array", "object"]
    title: str
    description: NotRequired[str]
    default: NotRequired[JsonValue]
    enum: NotRequired[list[str]]
    enumLabels: NotRequired[list[str]]
    enumDescriptions: NotRequired[list[str]]
    readOnly: NotRequired[bool]
    items: NotRequired[ConfigPropertySchema]
    properties: NotRequired[dict[str, ConfigPropertySchema]]
    required: NotRequired[list[str]]
    additionalProperties: NotRequired[ConfigPropertySchema]
    enumDynamic: NotRequired[bool]
    sessionMutable: NotRequired[bool]


class SessionConfigSchema(TypedDict):
    type: Literal["object"]
    properties: dict[str, SessionConfigPropertySchema]
    required: NotRequired[list[str]]


class SessionConfigState(TypedDict):
    schema: SessionConfigSchema
    values: JsonObject


class ToolDefinition(TypedDict):
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    inputSchema: NotRequired[
        JsonObject
    ]  # INLINE {"type": ["str", true], "properties": ["str", false], "required": ["str", false]}
    outputSchema: NotRequired[
        JsonObject
    ]  # INLINE {"type": ["str", true], "properties": ["str", false], "required": ["str", false]}
    annotations: NotRequired[ToolAnnotations]
    _meta: NotRequired[JsonObject]


class ToolAnnotations(TypedDict):
    title: NotRequired[str]
    readOnlyHint: NotRequired[bool]
    destructiveHint: NotRequired[bool]
    idempotentHint: NotRequired[bool]
    openWorldHint: NotRequired[bool]


class CustomizationBase(TypedDict):
    id: str
    uri: URI
    name: str
    icons: NotRequired[list[Icon]]
    range: NotRequired[TextRange]


class CustomizationLoadingState(TypedDict):
    kind: Literal["loading"]


class CustomizationLoadedState(TypedDict):
    kind: Literal["loaded"]


class CustomizationDegradedState(TypedDict):
    kind: Literal["degraded"]
    message: str


class CustomizationErrorState(TypedDict):
    kind: Literal["error"]
    message: str


class ContainerCustomizationBase(CustomizationBase):
    enabled: bool
    clientId: NotRequired[str]
    load: NotRequired[CustomizationLoadState]
    children: NotRequired[list[ChildCustomization]]


class PluginCustomization(ContainerCustomizationBase):
    type: Literal["plugin"]


class ClientPluginCustomization(ContainerCustomizationBase):
    type: Literal["plugin"]
    nonce: NotRequired[str]


class DirectoryCustomization(ContainerCustomizationBase):
    type: Literal["directory"]
    contents: ChildCustomizationType
    writable: bool


class AgentCustomization(CustomizationBase):
    type: Literal["agent"]
    description: NotRequired[str]
    _meta: NotRequired[JsonObject]


class SkillCustomization(CustomizationBase):
    type: Literal["skill"]
    description: NotRequired[str]
    disableModelInvocation: NotRequired[bool]


class PromptCustomization(CustomizationBase):
    type: Literal["prompt"]
    description: NotRequired[str]


class RuleCustomization(CustomizationBase):
    type: Literal["rule"]
    description: NotRequired[str]
    alwaysApply: NotRequired[bool]
    globs: NotRequired[list[str]]


class HookCustomization(CustomizationBase):
    type: Literal["hook"]


class McpServerCustomization(CustomizationBase):
    type: Literal["mcpServer"]
    enabled: bool
    state: McpServerState
    channel: NotRequired[URI]
    mcpApp: NotRequired[McpServerCustomizationApps]


class McpServerCustomizationApps(TypedDict):
    capabilities: AhpMcpUiHostCapabilities


class AhpMcpUiHostCapabilities(TypedDict):
    serverTools: NotRequired[JsonObject]  # INLINE {"listChanged": ["bool", false]}
    serverResources: NotRequired[JsonObject]  # INLINE {"listChanged": ["bool", false]}
    logging: NotRequired[JsonObject]
    sampling: NotRequired[JsonObject]  # INLINE {"tools": ["str", false]}


class McpServerStartingState(TypedDict):
    kind: Literal["starting"]


class McpServerReadyState(TypedDict):
    kind: Literal["ready"]


class McpServerAuthRequiredState(TypedDict):
    kind: Literal["authRequired"]
    reason: McpAuthRequiredReason
    resource: ProtectedResourceMetadata
    requiredScopes: NotRequired[list[str]]
    description: NotRequired[str]


class McpServerErrorState(TypedDict):
    kind: Literal["error"]
    error: ErrorInfo


class McpServerStoppedState(TypedDict):
    kind: Literal["stopped"]


CustomizationLoadState = (
    CustomizationLoadingState | CustomizationLoadedState | CustomizationDegradedState | CustomizationErrorState
)


ChildCustomization = (
    AgentCustomization
    | SkillCustomization
    | PromptCustomization
    | RuleCustomization
    | HookCustomization
    | McpServerCustomization
)


Customization = PluginCustomization | DirectoryCustomization | McpServerCustomization


McpServerState = (
    McpServerStartingState
    | McpServerReadyState
    | McpServerAuthRequiredState
    | McpServerErrorState
    | McpServerStoppedState
)
