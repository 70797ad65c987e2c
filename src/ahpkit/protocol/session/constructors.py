"""Makes actions on sessions: one function for each, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.changeset.state import Changeset
from ahpkit.protocol.chat.state import ChatSummary, PartialChatSummary
from ahpkit.protocol.common.state import URI, ErrorInfo, JsonObject
from ahpkit.protocol.session.actions import (
    SessionActiveClientRemovedAction,
    SessionActiveClientSetAction,
    SessionActivityChangedAction,
    SessionCanvasInstanceClosedAction,
    SessionCanvasInstanceCloseRequestedAction,
    SessionCanvasInstanceOpenedAction,
    SessionCanvasInstanceUpdatedAction,
    SessionCanvasRegistryChangedAction,
    SessionCanvasRequestCancelledAction,
    SessionCanvasRequestCompletedAction,
    SessionCanvasRequestCreatedAction,
    SessionChangesetsChangedAction,
    SessionChatAddedAction,
    SessionChatRemovedAction,
    SessionChatsReorderedAction,
    SessionChatUpdatedAction,
    SessionConfigChangedAction,
    SessionCreationFailedAction,
    SessionCustomizationRemovedAction,
    SessionCustomizationsChangedAction,
    SessionCustomizationToggledAction,
    SessionCustomizationUpdatedAction,
    SessionDefaultChatChangedAction,
    SessionInputNeededRemovedAction,
    SessionInputNeededSetAction,
    SessionIsArchivedChangedAction,
    SessionIsReadChangedAction,
    SessionMcpServerBackgroundRequestedAction,
    SessionMcpServerStartRequestedAction,
    SessionMcpServerStateChangedAction,
    SessionMcpServerStopRequestedAction,
    SessionMetaChangedAction,
    SessionReadyAction,
    SessionServerToolsChangedAction,
    SessionTitleChangedAction,
    SessionWorkingDirectoryRemovedAction,
    SessionWorkingDirectoryReplacedAction,
    SessionWorkingDirectorySetAction,
)
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

__all__ = [
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


def session_ready() -> SessionReadyAction:
    """The session can be used."""
    return {"type": "session/ready"}


def session_creation_failed(*, error: ErrorInfo) -> SessionCreationFailedAction:
    """The session will never be ready."""
    return {"type": "session/creationFailed", "error": error}


def session_chat_added(*, summary: ChatSummary) -> SessionChatAddedAction:
    """A chat is new, or replaced as a whole."""
    return {"type": "session/chatAdded", "summary": summary}


def session_chat_removed(*, chat: URI) -> SessionChatRemovedAction:
    """A chat is gone."""
    return {"type": "session/chatRemoved", "chat": chat}


def session_chat_updated(*, chat: URI, changes: PartialChatSummary) -> SessionChatUpdatedAction:
    """Some fields of a chat's summary changed."""
    return {"type": "session/chatUpdated", "chat": chat, "changes": changes}


def session_chats_reordered(*, chats: list[URI]) -> SessionChatsReorderedAction:
    """The chats have another order; `chats` names each of them once."""
    return {"type": "session/chatsReordered", "chats": chats}


def session_default_chat_changed(*, default_chat: URI | None = None) -> SessionDefaultChatChangedAction:
    """Another chat takes input meant for the session; absent: none."""
    action: SessionDefaultChatChangedAction = {"type": "session/defaultChatChanged"}
    if default_chat is not None:
        action["defaultChat"] = default_chat
    return action


def session_title_changed(*, title: str) -> SessionTitleChangedAction:
    """The session has a new title."""
    return {"type": "session/titleChanged", "title": title}


def session_is_read_changed(*, is_read: bool) -> SessionIsReadChangedAction:
    """The session was read, or marked unread."""
    return {"type": "session/isReadChanged", "isRead": is_read}


def session_is_archived_changed(*, is_archived: bool) -> SessionIsArchivedChangedAction:
    """The session went to the archive, or came back."""
    return {"type": "session/isArchivedChanged", "isArchived": is_archived}


def session_activity_changed(*, activity: str | None = None) -> SessionActivityChangedAction:
    """What the session is doing, in words; absent: nothing to say."""
    action: SessionActivityChangedAction = {"type": "session/activityChanged"}
    if activity is not None:
        action["activity"] = activity
    return action


def session_changesets_changed(*, changesets: list[Changeset] | None = None) -> SessionChangesetsChangedAction:
    """The catalogue of changesets was replaced; absent: there is none."""
    action: SessionChangesetsChangedAction = {"type": "session/changesetsChanged"}
    if changesets is not None:
        action["changesets"] = changesets
    return action


def session_server_tools_changed(*, tools: list[ToolDefinition]) -> SessionServerToolsChangedAction:
    """The host's tools were replaced."""
    return {"type": "session/serverToolsChanged", "tools": tools}


def session_active_client_set(
    *, active_client: SessionActiveClient, meta: JsonObject | None = None
) -> SessionActiveClientSetAction:
    """A client is active, or is so with other tools, plugins or canvases. The hint in `_meta` is for older clients."""
    action: SessionActiveClientSetAction = {"type": "session/activeClientSet", "activeClient": active_client}
    if meta is not None:
        action["_meta"] = meta
    return action


def session_active_client_removed(
    *, client_id: str, meta: JsonObject | None = None
) -> SessionActiveClientRemovedAction:
    """A client is active no longer. The hint in `_meta` is for older clients."""
    action: SessionActiveClientRemovedAction = {"type": "session/activeClientRemoved", "clientId": client_id}
    if meta is not None:
        action["_meta"] = meta
    return action


def session_working_directory_set(*, directory: URI) -> SessionWorkingDirectorySetAction:
    """The session works in one more directory."""
    return {"type": "session/workingDirectorySet", "directory": directory}


def session_working_directory_removed(*, directory: URI) -> SessionWorkingDirectoryRemovedAction:
    """The session works in a directory no longer."""
    return {"type": "session/workingDirectoryRemoved", "directory": directory}


def session_working_directory_replaced(*, directory: URI, replacement: URI) -> SessionWorkingDirectoryReplacedAction:
    """The session works in another directory instead of one it had."""
    return {"type": "session/workingDirectoryReplaced", "directory": directory, "replacement": replacement}


def session_input_needed_set(*, request: SessionInputRequest) -> SessionInputNeededSetAction:
    """Something waits for a person, or what waits has changed."""
    return {"type": "session/inputNeededSet", "request": request}


def session_input_needed_removed(*, id: str) -> SessionInputNeededRemovedAction:
    """Something waits no longer."""
    return {"type": "session/inputNeededRemoved", "id": id}


def session_customizations_changed(*, customizations: list[Customization]) -> SessionCustomizationsChangedAction:
    """All customizations were replaced."""
    return {"type": "session/customizationsChanged", "customizations": customizations}


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


def session_customization_updated(*, customization: Customization) -> SessionCustomizationUpdatedAction:
    """One top-level customization is new, or replaced as a whole."""
    return {"type": "session/customizationUpdated", "customization": customization}


def session_customization_removed(*, id: str) -> SessionCustomizationRemovedAction:
    """A container or a child is gone."""
    return {"type": "session/customizationRemoved", "id": id}


def session_mcp_server_state_changed(
    *, id: str, state: McpServerState, channel: URI | None = None
) -> SessionMcpServerStateChangedAction:
    """An MCP server changed state; without `channel` it has no side channel any more."""
    action: SessionMcpServerStateChangedAction = {"type": "session/mcpServerStateChanged", "id": id, "state": state}
    if channel is not None:
        action["channel"] = channel
    return action


def session_mcp_server_start_requested(*, id: str) -> SessionMcpServerStartRequestedAction:
    """A client wants an MCP server started."""
    return {"type": "session/mcpServerStartRequested", "id": id}


def session_mcp_server_stop_requested(*, id: str) -> SessionMcpServerStopRequestedAction:
    """A client wants an MCP server stopped."""
    return {"type": "session/mcpServerStopRequested", "id": id}


def session_mcp_server_background_requested(*, id: str) -> SessionMcpServerBackgroundRequestedAction:
    """A client wants messages to wait for an MCP server no longer."""
    return {"type": "session/mcpServerBackgroundRequested", "id": id}


def session_config_changed(*, config: JsonObject, replace: bool | None = None) -> SessionConfigChangedAction:
    """Settings changed: merged, or with `replace` exchanged as a whole."""
    action: SessionConfigChangedAction = {"type": "session/configChanged", "config": config}
    if replace is not None:
        action["replace"] = replace
    return action


def session_meta_changed(*, meta: JsonObject | None = None) -> SessionMetaChangedAction:
    """`_meta` was replaced; absent: removed."""
    action: SessionMetaChangedAction = {"type": "session/metaChanged"}
    if meta is not None:
        action["_meta"] = meta
    return action


def session_canvas_registry_changed(*, canvases: list[SessionCanvasDeclaration]) -> SessionCanvasRegistryChangedAction:
    """The canvases an agent may open were replaced."""
    return {"type": "session/canvasRegistryChanged", "canvases": canvases}


def session_canvas_instance_opened(*, instance: SessionOpenCanvas) -> SessionCanvasInstanceOpenedAction:
    """An instance is open, or open again."""
    return {"type": "session/canvasInstanceOpened", "instance": instance}


def session_canvas_instance_updated(
    *, instance_id: str, changes: SessionOpenCanvasUpdate
) -> SessionCanvasInstanceUpdatedAction:
    """Some fields of an open instance changed."""
    return {"type": "session/canvasInstanceUpdated", "instanceId": instance_id, "changes": changes}


def session_canvas_instance_closed(*, instance_id: str) -> SessionCanvasInstanceClosedAction:
    """An instance is gone, and with it what was asked of it."""
    return {"type": "session/canvasInstanceClosed", "instanceId": instance_id}


def session_canvas_instance_close_requested(*, instance_id: str) -> SessionCanvasInstanceCloseRequestedAction:
    """A client asks for an instance to be closed."""
    return {"type": "session/canvasInstanceCloseRequested", "instanceId": instance_id}


def session_canvas_request_created(*, request: SessionCanvasRequest) -> SessionCanvasRequestCreatedAction:
    """A provider is asked something."""
    return {"type": "session/canvasRequestCreated", "request": request}


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


def session_canvas_request_cancelled(
    *, request_id: str, reason: CanvasCancellationReason
) -> SessionCanvasRequestCancelledAction:
    """The host waits for an answer no longer."""
    return {"type": "session/canvasRequestCancelled", "requestId": request_id, "reason": reason}
