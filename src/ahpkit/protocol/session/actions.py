"""Actions on `ahp-session:/<id>`. `ahpkit.protocol.registry` says which of them a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.changeset.state import Changeset
from ahpkit.protocol.chat.state import ChatSummary, PartialChatSummary
from ahpkit.protocol.common.state import URI, ErrorInfo, JsonObject
from ahpkit.protocol.session.canvases import (
    CanvasCancellationReason,
    CanvasErrorPayload,
    CanvasResult,
    SessionCanvasDeclaration,
    SessionCanvasRequest,
    SessionOpenCanvas,
    SessionOpenCanvasUpdate,
)
from ahpkit.protocol.session.customizations import Customization, CustomizationEnablement
from ahpkit.protocol.session.mcp import McpServerState
from ahpkit.protocol.session.state import SessionActiveClient, SessionInputRequest, ToolDefinition


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


class SessionChatsReorderedAction(TypedDict):
    """The chats have another order; `chats` names each of them once."""

    type: Literal["session/chatsReordered"]
    chats: list[URI]


class SessionDefaultChatChangedAction(TypedDict):
    """Another chat takes input meant for the session; absent: none."""

    type: Literal["session/defaultChatChanged"]
    defaultChat: NotRequired[URI]


class SessionTitleChangedAction(TypedDict):
    """The session has a new title."""

    type: Literal["session/titleChanged"]
    title: str


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


class SessionActiveClientSetAction(TypedDict):
    """A client is active, or is so with other tools, plugins or canvases. The hint in `_meta` is for older clients."""

    type: Literal["session/activeClientSet"]
    activeClient: SessionActiveClient
    _meta: NotRequired[JsonObject]


class SessionActiveClientRemovedAction(TypedDict):
    """A client is active no longer. The hint in `_meta` is for older clients."""

    type: Literal["session/activeClientRemoved"]
    clientId: str
    _meta: NotRequired[JsonObject]


class SessionWorkingDirectorySetAction(TypedDict):
    """The session works in one more directory."""

    type: Literal["session/workingDirectorySet"]
    directory: URI


class SessionWorkingDirectoryRemovedAction(TypedDict):
    """The session works in a directory no longer."""

    type: Literal["session/workingDirectoryRemoved"]
    directory: URI


class SessionWorkingDirectoryReplacedAction(TypedDict):
    """The session works in another directory instead of one it had."""

    type: Literal["session/workingDirectoryReplaced"]
    directory: URI
    replacement: URI


class SessionInputNeededSetAction(TypedDict):
    """Something waits for a person, or what waits has changed."""

    type: Literal["session/inputNeededSet"]
    request: SessionInputRequest


class SessionInputNeededRemovedAction(TypedDict):
    """Something waits no longer."""

    type: Literal["session/inputNeededRemoved"]
    id: str


class SessionCustomizationsChangedAction(TypedDict):
    """All customizations were replaced."""

    type: Literal["session/customizationsChanged"]
    customizations: list[Customization]


class SessionCustomizationToggledAction(TypedDict):
    """The decisions about a container or one of its children were replaced. `_meta` may say that it was a switch."""

    type: Literal["session/customizationToggled"]
    id: str
    enablement: list[CustomizationEnablement]
    _meta: NotRequired[JsonObject]


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


class SessionMcpServerStartRequestedAction(TypedDict):
    """A client wants an MCP server started."""

    type: Literal["session/mcpServerStartRequested"]
    id: str


class SessionMcpServerStopRequestedAction(TypedDict):
    """A client wants an MCP server stopped."""

    type: Literal["session/mcpServerStopRequested"]
    id: str


class SessionMcpServerBackgroundRequestedAction(TypedDict):
    """A client wants messages to wait for an MCP server no longer."""

    type: Literal["session/mcpServerBackgroundRequested"]
    id: str


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
    | SessionChatsReorderedAction
    | SessionDefaultChatChangedAction
    | SessionTitleChangedAction
    | SessionIsReadChangedAction
    | SessionIsArchivedChangedAction
    | SessionActivityChangedAction
    | SessionChangesetsChangedAction
    | SessionServerToolsChangedAction
    | SessionActiveClientSetAction
    | SessionActiveClientRemovedAction
    | SessionWorkingDirectorySetAction
    | SessionWorkingDirectoryRemovedAction
    | SessionWorkingDirectoryReplacedAction
    | SessionInputNeededSetAction
    | SessionInputNeededRemovedAction
    | SessionCustomizationsChangedAction
    | SessionCustomizationToggledAction
    | SessionCustomizationUpdatedAction
    | SessionCustomizationRemovedAction
    | SessionMcpServerStateChangedAction
    | SessionMcpServerStartRequestedAction
    | SessionMcpServerStopRequestedAction
    | SessionMcpServerBackgroundRequestedAction
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


__all__ = [
    "SessionAction",
    "SessionActiveClientRemovedAction",
    "SessionActiveClientSetAction",
    "SessionActivityChangedAction",
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
    "SessionChatsReorderedAction",
    "SessionConfigChangedAction",
    "SessionCreationFailedAction",
    "SessionCustomizationRemovedAction",
    "SessionCustomizationToggledAction",
    "SessionCustomizationUpdatedAction",
    "SessionCustomizationsChangedAction",
    "SessionDefaultChatChangedAction",
    "SessionInputNeededRemovedAction",
    "SessionInputNeededSetAction",
    "SessionIsArchivedChangedAction",
    "SessionIsReadChangedAction",
    "SessionMcpServerBackgroundRequestedAction",
    "SessionMcpServerStartRequestedAction",
    "SessionMcpServerStateChangedAction",
    "SessionMcpServerStopRequestedAction",
    "SessionMetaChangedAction",
    "SessionReadyAction",
    "SessionServerToolsChangedAction",
    "SessionTitleChangedAction",
    "SessionWorkingDirectoryRemovedAction",
    "SessionWorkingDirectoryReplacedAction",
    "SessionWorkingDirectorySetAction",
]
