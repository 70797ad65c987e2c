"""Actions on `ahp-session:/<id>`, each with its constructor. The registry says which of them a client may dispatch.

It is long because the protocol has that many actions of sessions. An action and its constructor change together.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.changeset import Changeset
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


def session_ready() -> SessionReadyAction:
    """The session can be used."""
    return {"type": "session/ready"}


class SessionCreationFailedAction(TypedDict):
    """The session will never be ready."""

    type: Literal["session/creationFailed"]
    error: ErrorInfo


def session_creation_failed(*, error: ErrorInfo) -> SessionCreationFailedAction:
    """The session will never be ready."""
    return {"type": "session/creationFailed", "error": error}


class SessionChatAddedAction(TypedDict):
    """A chat is new, or replaced as a whole."""

    type: Literal["session/chatAdded"]
    summary: ChatSummary


def session_chat_added(*, summary: ChatSummary) -> SessionChatAddedAction:
    """A chat is new, or replaced as a whole."""
    return {"type": "session/chatAdded", "summary": summary}


class SessionChatRemovedAction(TypedDict):
    """A chat is gone."""

    type: Literal["session/chatRemoved"]
    chat: URI


def session_chat_removed(*, chat: URI) -> SessionChatRemovedAction:
    """A chat is gone."""
    return {"type": "session/chatRemoved", "chat": chat}


class SessionChatUpdatedAction(TypedDict):
    """Some fields of a chat's summary changed."""

    type: Literal["session/chatUpdated"]
    chat: URI
    changes: PartialChatSummary


def session_chat_updated(*, chat: URI, changes: PartialChatSummary) -> SessionChatUpdatedAction:
    """Some fields of a chat's summary changed."""
    return {"type": "session/chatUpdated", "chat": chat, "changes": changes}


class SessionChatsReorderedAction(TypedDict):
    """The chats were reordered; `chats` names each of them once."""

    type: Literal["session/chatsReordered"]
    chats: list[URI]


def session_chats_reordered(*, chats: list[URI]) -> SessionChatsReorderedAction:
    """The chats were reordered; `chats` names each of them once."""
    return {"type": "session/chatsReordered", "chats": chats}


class SessionDefaultChatChangedAction(TypedDict):
    """Another chat takes input meant for the session; absent: none."""

    type: Literal["session/defaultChatChanged"]
    defaultChat: NotRequired[URI]


def session_default_chat_changed(*, default_chat: URI | None = None) -> SessionDefaultChatChangedAction:
    """Another chat takes input meant for the session; absent: none."""
    action: SessionDefaultChatChangedAction = {"type": "session/defaultChatChanged"}
    if default_chat is not None:
        action["defaultChat"] = default_chat
    return action


class SessionTitleChangedAction(TypedDict):
    """The session has a new title."""

    type: Literal["session/titleChanged"]
    title: str


def session_title_changed(*, title: str) -> SessionTitleChangedAction:
    """The session has a new title."""
    return {"type": "session/titleChanged", "title": title}


class SessionIsReadChangedAction(TypedDict):
    """The session was read, or marked unread."""

    type: Literal["session/isReadChanged"]
    isRead: bool


def session_is_read_changed(*, is_read: bool) -> SessionIsReadChangedAction:
    """The session was read, or marked unread."""
    return {"type": "session/isReadChanged", "isRead": is_read}


class SessionIsArchivedChangedAction(TypedDict):
    """The session went to the archive, or came back."""

    type: Literal["session/isArchivedChanged"]
    isArchived: bool


def session_is_archived_changed(*, is_archived: bool) -> SessionIsArchivedChangedAction:
    """The session went to the archive, or came back."""
    return {"type": "session/isArchivedChanged", "isArchived": is_archived}


class SessionActivityChangedAction(TypedDict):
    """What the session is doing, in words; absent: nothing to report."""

    type: Literal["session/activityChanged"]
    activity: NotRequired[str]


def session_activity_changed(*, activity: str | None = None) -> SessionActivityChangedAction:
    """What the session is doing, in words; absent: nothing to report."""
    action: SessionActivityChangedAction = {"type": "session/activityChanged"}
    if activity is not None:
        action["activity"] = activity
    return action


class SessionChangesetsChangedAction(TypedDict):
    """The catalogue of changesets was replaced; absent: there is none."""

    type: Literal["session/changesetsChanged"]
    changesets: NotRequired[list[Changeset]]


def session_changesets_changed(*, changesets: list[Changeset] | None = None) -> SessionChangesetsChangedAction:
    """The catalogue of changesets was replaced; absent: there is none."""
    action: SessionChangesetsChangedAction = {"type": "session/changesetsChanged"}
    if changesets is not None:
        action["changesets"] = changesets
    return action


class SessionServerToolsChangedAction(TypedDict):
    """The host's tools were replaced."""

    type: Literal["session/serverToolsChanged"]
    tools: list[ToolDefinition]


def session_server_tools_changed(*, tools: list[ToolDefinition]) -> SessionServerToolsChangedAction:
    """The host's tools were replaced."""
    return {"type": "session/serverToolsChanged", "tools": tools}


class SessionActiveClientSetAction(TypedDict):
    """A client became active, or changed its tools, plugins or canvases. The hint in `_meta` is for older clients."""

    type: Literal["session/activeClientSet"]
    activeClient: SessionActiveClient
    _meta: NotRequired[JsonObject]


def session_active_client_set(
    *, active_client: SessionActiveClient, meta: JsonObject | None = None
) -> SessionActiveClientSetAction:
    """A client became active, or changed its tools, plugins or canvases. The hint in `_meta` is for older clients."""
    action: SessionActiveClientSetAction = {"type": "session/activeClientSet", "activeClient": active_client}
    if meta is not None:
        action["_meta"] = meta
    return action


class SessionActiveClientRemovedAction(TypedDict):
    """A client is no longer active. The hint in `_meta` is for older clients."""

    type: Literal["session/activeClientRemoved"]
    clientId: str
    _meta: NotRequired[JsonObject]


def session_active_client_removed(
    *, client_id: str, meta: JsonObject | None = None
) -> SessionActiveClientRemovedAction:
    """A client is no longer active. The hint in `_meta` is for older clients."""
    action: SessionActiveClientRemovedAction = {"type": "session/activeClientRemoved", "clientId": client_id}
    if meta is not None:
        action["_meta"] = meta
    return action


class SessionWorkingDirectorySetAction(TypedDict):
    """The session works in one more directory."""

    type: Literal["session/workingDirectorySet"]
    directory: URI


def session_working_directory_set(*, directory: URI) -> SessionWorkingDirectorySetAction:
    """The session works in one more directory."""
    return {"type": "session/workingDirectorySet", "directory": directory}


class SessionWorkingDirectoryRemovedAction(TypedDict):
    """The session no longer works in a directory."""

    type: Literal["session/workingDirectoryRemoved"]
    directory: URI


def session_working_directory_removed(*, directory: URI) -> SessionWorkingDirectoryRemovedAction:
    """The session no longer works in a directory."""
    return {"type": "session/workingDirectoryRemoved", "directory": directory}


class SessionWorkingDirectoryReplacedAction(TypedDict):
    """The session works in another directory instead of one it had."""

    type: Literal["session/workingDirectoryReplaced"]
    directory: URI
    replacement: URI


def session_working_directory_replaced(*, directory: URI, replacement: URI) -> SessionWorkingDirectoryReplacedAction:
    """The session works in another directory instead of one it had."""
    return {"type": "session/workingDirectoryReplaced", "directory": directory, "replacement": replacement}


class SessionInputNeededSetAction(TypedDict):
    """Something waits for a person, or what waits has changed."""

    type: Literal["session/inputNeededSet"]
    request: SessionInputRequest


def session_input_needed_set(*, request: SessionInputRequest) -> SessionInputNeededSetAction:
    """Something waits for a person, or what waits has changed."""
    return {"type": "session/inputNeededSet", "request": request}


class SessionInputNeededRemovedAction(TypedDict):
    """Something no longer waits for a person."""

    type: Literal["session/inputNeededRemoved"]
    id: str


def session_input_needed_removed(*, id: str) -> SessionInputNeededRemovedAction:
    """Something no longer waits for a person."""
    return {"type": "session/inputNeededRemoved", "id": id}


class SessionCustomizationsChangedAction(TypedDict):
    """All customizations were replaced."""

    type: Literal["session/customizationsChanged"]
    customizations: list[Customization]


def session_customizations_changed(*, customizations: list[Customization]) -> SessionCustomizationsChangedAction:
    """All customizations were replaced."""
    return {"type": "session/customizationsChanged", "customizations": customizations}


class SessionCustomizationToggledAction(TypedDict):
    """The decisions about a container or one of its children were replaced. `_meta` may say that it was a switch."""

    type: Literal["session/customizationToggled"]
    id: str
    enablement: list[CustomizationEnablement]
    _meta: NotRequired[JsonObject]


def session_customization_toggled(
    *, id: str, enablement: list[CustomizationEnablement], meta: JsonObject | None = None
) -> SessionCustomizationToggledAction:
    """The decisions about a container or one of its children were replaced. `_meta` may say that it was a switch."""
    action: SessionCustomizationToggledAction = {
        "type": "session/customizationToggled",
        "id": id,
        "enablement": enablement,
    }
    if meta is not None:
        action["_meta"] = meta
    return action


class SessionCustomizationUpdatedAction(TypedDict):
    """One top-level customization is new, or replaced as a whole."""

    type: Literal["session/customizationUpdated"]
    customization: Customization


def session_customization_updated(*, customization: Customization) -> SessionCustomizationUpdatedAction:
    """One top-level customization is new, or replaced as a whole."""
    return {"type": "session/customizationUpdated", "customization": customization}


class SessionCustomizationRemovedAction(TypedDict):
    """A container or a child is gone."""

    type: Literal["session/customizationRemoved"]
    id: str


def session_customization_removed(*, id: str) -> SessionCustomizationRemovedAction:
    """A container or a child is gone."""
    return {"type": "session/customizationRemoved", "id": id}


class SessionMcpServerStateChangedAction(TypedDict):
    """An MCP server changed state; without `channel` it has no side channel any more."""

    type: Literal["session/mcpServerStateChanged"]
    id: str
    state: McpServerState
    channel: NotRequired[URI]


def session_mcp_server_state_changed(
    *, id: str, state: McpServerState, channel: URI | None = None
) -> SessionMcpServerStateChangedAction:
    """An MCP server changed state; without `channel` it has no side channel any more."""
    action: SessionMcpServerStateChangedAction = {"type": "session/mcpServerStateChanged", "id": id, "state": state}
    if channel is not None:
        action["channel"] = channel
    return action


class SessionMcpServerStartRequestedAction(TypedDict):
    """A client wants an MCP server started."""

    type: Literal["session/mcpServerStartRequested"]
    id: str


def session_mcp_server_start_requested(*, id: str) -> SessionMcpServerStartRequestedAction:
    """A client wants an MCP server started."""
    return {"type": "session/mcpServerStartRequested", "id": id}


class SessionMcpServerStopRequestedAction(TypedDict):
    """A client wants an MCP server stopped."""

    type: Literal["session/mcpServerStopRequested"]
    id: str


def session_mcp_server_stop_requested(*, id: str) -> SessionMcpServerStopRequestedAction:
    """A client wants an MCP server stopped."""
    return {"type": "session/mcpServerStopRequested", "id": id}


class SessionMcpServerBackgroundRequestedAction(TypedDict):
    """A client wants messages to stop waiting for an MCP server."""

    type: Literal["session/mcpServerBackgroundRequested"]
    id: str


def session_mcp_server_background_requested(*, id: str) -> SessionMcpServerBackgroundRequestedAction:
    """A client wants messages to stop waiting for an MCP server."""
    return {"type": "session/mcpServerBackgroundRequested", "id": id}


class SessionConfigChangedAction(TypedDict):
    """Settings changed: merged, or with `replace` exchanged as a whole."""

    type: Literal["session/configChanged"]
    config: JsonObject
    replace: NotRequired[bool]


def session_config_changed(*, config: JsonObject, replace: bool | None = None) -> SessionConfigChangedAction:
    """Settings changed: merged, or with `replace` exchanged as a whole."""
    action: SessionConfigChangedAction = {"type": "session/configChanged", "config": config}
    if replace is not None:
        action["replace"] = replace
    return action


class SessionMetaChangedAction(TypedDict):
    """`_meta` was replaced; absent: removed."""

    type: Literal["session/metaChanged"]
    _meta: NotRequired[JsonObject]


def session_meta_changed(*, meta: JsonObject | None = None) -> SessionMetaChangedAction:
    """`_meta` was replaced; absent: removed."""
    action: SessionMetaChangedAction = {"type": "session/metaChanged"}
    if meta is not None:
        action["_meta"] = meta
    return action


class SessionCanvasRegistryChangedAction(TypedDict):
    """The canvases an agent may open were replaced."""

    type: Literal["session/canvasRegistryChanged"]
    canvases: list[SessionCanvasDeclaration]


def session_canvas_registry_changed(*, canvases: list[SessionCanvasDeclaration]) -> SessionCanvasRegistryChangedAction:
    """The canvases an agent may open were replaced."""
    return {"type": "session/canvasRegistryChanged", "canvases": canvases}


class SessionCanvasInstanceOpenedAction(TypedDict):
    """An instance is open, or open again."""

    type: Literal["session/canvasInstanceOpened"]
    instance: SessionOpenCanvas


def session_canvas_instance_opened(*, instance: SessionOpenCanvas) -> SessionCanvasInstanceOpenedAction:
    """An instance is open, or open again."""
    return {"type": "session/canvasInstanceOpened", "instance": instance}


class SessionCanvasInstanceUpdatedAction(TypedDict):
    """Some fields of an open instance changed."""

    type: Literal["session/canvasInstanceUpdated"]
    instanceId: str
    changes: SessionOpenCanvasUpdate


def session_canvas_instance_updated(
    *, instance_id: str, changes: SessionOpenCanvasUpdate
) -> SessionCanvasInstanceUpdatedAction:
    """Some fields of an open instance changed."""
    return {"type": "session/canvasInstanceUpdated", "instanceId": instance_id, "changes": changes}


class SessionCanvasInstanceClosedAction(TypedDict):
    """An instance was closed; the requests about it are gone too."""

    type: Literal["session/canvasInstanceClosed"]
    instanceId: str


def session_canvas_instance_closed(*, instance_id: str) -> SessionCanvasInstanceClosedAction:
    """An instance was closed; the requests about it are gone too."""
    return {"type": "session/canvasInstanceClosed", "instanceId": instance_id}


class SessionCanvasInstanceCloseRequestedAction(TypedDict):
    """A client asks for an instance to be closed."""

    type: Literal["session/canvasInstanceCloseRequested"]
    instanceId: str


def session_canvas_instance_close_requested(*, instance_id: str) -> SessionCanvasInstanceCloseRequestedAction:
    """A client asks for an instance to be closed."""
    return {"type": "session/canvasInstanceCloseRequested", "instanceId": instance_id}


class SessionCanvasRequestCreatedAction(TypedDict):
    """A provider is asked something."""

    type: Literal["session/canvasRequestCreated"]
    request: SessionCanvasRequest


def session_canvas_request_created(*, request: SessionCanvasRequest) -> SessionCanvasRequestCreatedAction:
    """A provider is asked something."""
    return {"type": "session/canvasRequestCreated", "request": request}


class SessionCanvasRequestCompletedAction(TypedDict):
    """A provider answered: either `result` or `error`."""

    type: Literal["session/canvasRequestCompleted"]
    requestId: str
    result: NotRequired[CanvasResult]
    error: NotRequired[CanvasErrorPayload]


def session_canvas_request_completed(
    *, request_id: str, result: CanvasResult | None = None, error: CanvasErrorPayload | None = None
) -> SessionCanvasRequestCompletedAction:
    """A provider answered: either `result` or `error`."""
    action: SessionCanvasRequestCompletedAction = {"type": "session/canvasRequestCompleted", "requestId": request_id}
    if result is not None:
        action["result"] = result
    if error is not None:
        action["error"] = error
    return action


class SessionCanvasRequestCancelledAction(TypedDict):
    """The host no longer waits for an answer."""

    type: Literal["session/canvasRequestCancelled"]
    requestId: str
    reason: CanvasCancellationReason


def session_canvas_request_cancelled(
    *, request_id: str, reason: CanvasCancellationReason
) -> SessionCanvasRequestCancelledAction:
    """The host no longer waits for an answer."""
    return {"type": "session/canvasRequestCancelled", "requestId": request_id, "reason": reason}


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
    "session_active_client_removed",
    "session_active_client_set",
    "session_activity_changed",
    "session_canvas_instance_close_requested",
    "session_canvas_instance_closed",
    "session_canvas_instance_opened",
    "session_canvas_instance_updated",
    "session_canvas_registry_changed",
    "session_canvas_request_cancelled",
    "session_canvas_request_completed",
    "session_canvas_request_created",
    "session_changesets_changed",
    "session_chat_added",
    "session_chat_removed",
    "session_chat_updated",
    "session_chats_reordered",
    "session_config_changed",
    "session_creation_failed",
    "session_customization_removed",
    "session_customization_toggled",
    "session_customization_updated",
    "session_customizations_changed",
    "session_default_chat_changed",
    "session_input_needed_removed",
    "session_input_needed_set",
    "session_is_archived_changed",
    "session_is_read_changed",
    "session_mcp_server_background_requested",
    "session_mcp_server_start_requested",
    "session_mcp_server_state_changed",
    "session_mcp_server_stop_requested",
    "session_meta_changed",
    "session_ready",
    "session_server_tools_changed",
    "session_title_changed",
    "session_working_directory_removed",
    "session_working_directory_replaced",
    "session_working_directory_set",
]
