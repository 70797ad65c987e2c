"""Actions and commands of sessions of 0.4.0. The registry says which actions a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.changeset import Changeset
from ahpkit.dialects.v0_4.chat.state import ChatSummary, PartialChatSummary
from ahpkit.dialects.v0_4.common import URI, AgentSelection, BaseParams, ErrorInfo, JsonObject, ModelSelection
from ahpkit.dialects.v0_4.session.customizations import Customization, McpServerState
from ahpkit.dialects.v0_4.session.state import SessionActiveClient, SessionCanvasRequest, ToolDefinition
from ahpkit.protocol.session.canvases import (
    CanvasCancellationReason,
    CanvasErrorPayload,
    CanvasResult,
    SessionCanvasDeclaration,
    SessionOpenCanvas,
    SessionOpenCanvasUpdate,
)


class SessionReadyAction(TypedDict):
    """The session can be used."""

    type: Literal["session/ready"]


class SessionCreationFailedAction(TypedDict):
    """The session will never be ready."""

    type: Literal["session/creationFailed"]
    error: ErrorInfo


class SessionChatAddedAction(TypedDict):
    """A chat is new, or replaced as a whole."""

    type: Literal["session/chatAdded"]
    summary: ChatSummary


class SessionChatRemovedAction(TypedDict):
    """A chat is gone."""

    type: Literal["session/chatRemoved"]
    chat: URI


class SessionChatUpdatedAction(TypedDict):
    """Some fields of a chat's summary changed."""

    type: Literal["session/chatUpdated"]
    chat: URI
    changes: PartialChatSummary


class SessionDefaultChatChangedAction(TypedDict):
    """Another chat takes input meant for the session; absent: none."""

    type: Literal["session/defaultChatChanged"]
    defaultChat: NotRequired[URI]


class SessionTitleChangedAction(TypedDict):
    """The session has a new title."""

    type: Literal["session/titleChanged"]
    title: str


class SessionModelChangedAction(TypedDict):
    """Another model was chosen."""

    type: Literal["session/modelChanged"]
    model: ModelSelection


class SessionAgentChangedAction(TypedDict):
    """Another custom agent was chosen; absent: none."""

    type: Literal["session/agentChanged"]
    agent: NotRequired[AgentSelection]


class SessionIsReadChangedAction(TypedDict):
    """The session was read, or marked unread."""

    type: Literal["session/isReadChanged"]
    isRead: bool


class SessionIsArchivedChangedAction(TypedDict):
    """The session went to the archive, or came back."""

    type: Literal["session/isArchivedChanged"]
    isArchived: bool


class SessionActivityChangedAction(TypedDict):
    """What the session is doing, in words; absent: nothing to say."""

    type: Literal["session/activityChanged"]
    activity: NotRequired[str]


class SessionChangesetsChangedAction(TypedDict):
    """The catalogue of changesets was replaced; absent: there is none."""

    type: Literal["session/changesetsChanged"]
    changesets: NotRequired[list[Changeset]]


class SessionServerToolsChangedAction(TypedDict):
    """The host's tools were replaced."""

    type: Literal["session/serverToolsChanged"]
    tools: list[ToolDefinition]


class SessionActiveClientChangedAction(TypedDict):
    """A client took the active role, or (null) nobody has it."""

    type: Literal["session/activeClientChanged"]
    activeClient: SessionActiveClient | None


class SessionActiveClientToolsChangedAction(TypedDict):
    """The active client's tools were replaced."""

    type: Literal["session/activeClientToolsChanged"]
    tools: list[ToolDefinition]


class SessionCustomizationsChangedAction(TypedDict):
    """All customizations were replaced."""

    type: Literal["session/customizationsChanged"]
    customizations: list[Customization]


class SessionCustomizationToggledAction(TypedDict):
    """A container or one of its children was switched on or off."""

    type: Literal["session/customizationToggled"]
    id: str
    enabled: bool


class SessionCustomizationUpdatedAction(TypedDict):
    """One top-level customization is new, or replaced as a whole."""

    type: Literal["session/customizationUpdated"]
    customization: Customization


class SessionCustomizationRemovedAction(TypedDict):
    """A container or a child is gone."""

    type: Literal["session/customizationRemoved"]
    id: str


class SessionMcpServerStateChangedAction(TypedDict):
    """An MCP server changed state; without `channel` it has no side channel any more."""

    type: Literal["session/mcpServerStateChanged"]
    id: str
    state: McpServerState
    channel: NotRequired[URI]


class SessionConfigChangedAction(TypedDict):
    """Settings changed: merged, or with `replace` exchanged as a whole."""

    type: Literal["session/configChanged"]
    config: JsonObject
    replace: NotRequired[bool]


class SessionMetaChangedAction(TypedDict):
    """`_meta` was replaced; absent: removed."""

    type: Literal["session/metaChanged"]
    _meta: NotRequired[JsonObject]


class SessionCanvasRegistryChangedAction(TypedDict):
    """The canvases an agent may open were replaced."""

    type: Literal["session/canvasRegistryChanged"]
    canvases: list[SessionCanvasDeclaration]


class SessionCanvasInstanceOpenedAction(TypedDict):
    """An instance is open, or open again."""

    type: Literal["session/canvasInstanceOpened"]
    instance: SessionOpenCanvas


class SessionCanvasInstanceUpdatedAction(TypedDict):
    """Some fields of an open instance changed."""

    type: Literal["session/canvasInstanceUpdated"]
    instanceId: str
    changes: SessionOpenCanvasUpdate


class SessionCanvasInstanceClosedAction(TypedDict):
    """An instance is gone, and with it what was asked of it."""

    type: Literal["session/canvasInstanceClosed"]
    instanceId: str


class SessionCanvasInstanceCloseRequestedAction(TypedDict):
    """A client asks for an instance to be closed."""

    type: Literal["session/canvasInstanceCloseRequested"]
    instanceId: str


class SessionCanvasRequestCreatedAction(TypedDict):
    """A provider is asked something."""

    type: Literal["session/canvasRequestCreated"]
    request: SessionCanvasRequest


class SessionCanvasRequestCompletedAction(TypedDict):
    """A provider answered: either `result` or `error`."""

    type: Literal["session/canvasRequestCompleted"]
    requestId: str
    result: NotRequired[CanvasResult]
    error: NotRequired[CanvasErrorPayload]


class SessionCanvasRequestCancelledAction(TypedDict):
    """The host waits for an answer no longer."""

    type: Literal["session/canvasRequestCancelled"]
    requestId: str
    reason: CanvasCancellationReason


SessionAction = (
    SessionReadyAction
    | SessionCreationFailedAction
    | SessionChatAddedAction
    | SessionChatRemovedAction
    | SessionChatUpdatedAction
    | SessionDefaultChatChangedAction
    | SessionTitleChangedAction
    | SessionModelChangedAction
    | SessionAgentChangedAction
    | SessionIsReadChangedAction
    | SessionIsArchivedChangedAction
    | SessionActivityChangedAction
    | SessionChangesetsChangedAction
    | SessionServerToolsChangedAction
    | SessionActiveClientChangedAction
    | SessionActiveClientToolsChangedAction
    | SessionCustomizationsChangedAction
    | SessionCustomizationToggledAction
    | SessionCustomizationUpdatedAction
    | SessionCustomizationRemovedAction
    | SessionMcpServerStateChangedAction
    | SessionConfigChangedAction
    | SessionMetaChangedAction
    | SessionCanvasRegistryChangedAction
    | SessionCanvasInstanceOpenedAction
    | SessionCanvasInstanceUpdatedAction
    | SessionCanvasInstanceClosedAction
    | SessionCanvasInstanceCloseRequestedAction
    | SessionCanvasRequestCreatedAction
    | SessionCanvasRequestCompletedAction
    | SessionCanvasRequestCancelledAction
)


class SessionForkSource(TypedDict):
    """The session to copy, up to and including the response of `turnId`."""

    session: URI
    turnId: str


class CreateSessionParams(BaseParams):
    """`createSession`: `channel` is the URI that the client chooses. Answered with null, at once."""

    provider: NotRequired[str]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    workingDirectory: NotRequired[URI]
    fork: NotRequired[SessionForkSource]
    config: NotRequired[JsonObject]
    activeClient: NotRequired[SessionActiveClient]


class DisposeSessionParams(BaseParams):
    """`disposeSession`. Answered with null."""


__all__ = [
    "CreateSessionParams",
    "DisposeSessionParams",
    "SessionAction",
    "SessionActiveClientChangedAction",
    "SessionActiveClientToolsChangedAction",
    "SessionActivityChangedAction",
    "SessionAgentChangedAction",
    "SessionCanvasInstanceCloseRequestedAction",
    "SessionCanvasInstanceClosedAction",
    "SessionCanvasInstanceOpenedAction",
    "SessionCanvasInstanceUpdatedAction",
    "SessionCanvasRegistryChangedAction",
    "SessionCanvasRequestCancelledAction",
    "SessionCanvasRequestCompletedAction",
    "SessionCanvasRequestCreatedAction",
    "SessionChangesetsChangedAction",
    "SessionChatAddedAction",
    "SessionChatRemovedAction",
    "SessionChatUpdatedAction",
    "SessionConfigChangedAction",
    "SessionCreationFailedAction",
    "SessionCustomizationRemovedAction",
    "SessionCustomizationToggledAction",
    "SessionCustomizationUpdatedAction",
    "SessionCustomizationsChangedAction",
    "SessionDefaultChatChangedAction",
    "SessionForkSource",
    "SessionIsArchivedChangedAction",
    "SessionIsReadChangedAction",
    "SessionMcpServerStateChangedAction",
    "SessionMetaChangedAction",
    "SessionModelChangedAction",
    "SessionReadyAction",
    "SessionServerToolsChangedAction",
    "SessionTitleChangedAction",
]
