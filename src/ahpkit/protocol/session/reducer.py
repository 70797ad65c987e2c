"""The session channel's reducer: life cycle, chats, clients, directories, customizations, canvases, what waits.

Turns belong to chats. Every customization is found by its id; what a disabled one means is decided in `enablement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ahpkit.protocol.common.reducing import (
    Handler,
    all_removed,
    amend,
    apply,
    assign,
    assign_optional,
    directory_added,
    directory_removed,
    index_of,
    merge_config,
    put,
    removed,
    replaced,
    unchanged,
    upserted,
    without,
)
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.common.status import INPUT_NEEDED, IS_ARCHIVED, IS_READ, WAITING, with_activity, with_flag
from ahpkit.protocol.session.actions import (
    SessionActiveClientRemovedAction,
    SessionActiveClientSetAction,
    SessionChatAddedAction,
    SessionChatRemovedAction,
    SessionChatsReorderedAction,
    SessionChatUpdatedAction,
    SessionCreationFailedAction,
    SessionCustomizationToggledAction,
    SessionInputNeededRemovedAction,
    SessionInputNeededSetAction,
    SessionMcpServerBackgroundRequestedAction,
    SessionMcpServerStartRequestedAction,
    SessionMcpServerStopRequestedAction,
    SessionReadyAction,
    SessionWorkingDirectoryReplacedAction,
)

__all__ = ["CANVAS_HANDLERS", "CUSTOMIZATION_HANDLERS", "HANDLERS", "edited", "session_reducer"]


def session_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The session after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


# Life cycle and flags


def _ready(state: JsonObject, action: SessionReadyAction) -> JsonObject:
    return {**state, "lifecycle": "ready"}


def _creation_failed(state: JsonObject, action: SessionCreationFailedAction) -> JsonObject:
    return {**state, "lifecycle": "failed", "creationError": action["error"]}


def _flag_changed(flag: int, field: str, state: JsonObject, action: Mapping[str, Any]) -> JsonObject:
    status = with_flag(state["status"], flag, action[field])
    return state if status == state["status"] else {**state, "status": status}


# Chats


def _chat_added(state: JsonObject, action: SessionChatAddedAction) -> JsonObject:
    return {**state, "chats": upserted(state["chats"], {**action["summary"]}, key="resource")}


def _chat_removed(state: JsonObject, action: SessionChatRemovedAction) -> JsonObject:
    """Remove a chat; it is no longer the default chat."""
    kept = removed(state["chats"], "resource", action["chat"])
    if kept is state["chats"]:
        return state
    after = {**state, "chats": kept}
    return without(after, "defaultChat") if state.get("defaultChat") == action["chat"] else after


def _chat_updated(state: JsonObject, action: SessionChatUpdatedAction) -> JsonObject:
    """Write the fields that the action carries, except the chat's URI."""
    changes = without({**action["changes"]}, "resource")
    index = index_of(state["chats"], "resource", action["chat"])
    if index < 0 or not changes:
        return state
    return {**state, "chats": replaced(state["chats"], index, amend(state["chats"][index], changes))}


def _chats_reordered(state: JsonObject, action: SessionChatsReorderedAction) -> JsonObject:
    """Reorder the chats, if the list names exactly these chats."""
    chats = {chat["resource"]: chat for chat in state["chats"]}
    order = action["chats"]
    if sorted(order) != sorted(chats) or list(chats) == order:
        return state
    return {**state, "chats": [chats[uri] for uri in order]}


# Active clients


def _active_client_set(state: JsonObject, action: SessionActiveClientSetAction) -> JsonObject:
    return {**state, "activeClients": upserted(state["activeClients"], {**action["activeClient"]}, key="clientId")}


def _active_client_removed(state: JsonObject, action: SessionActiveClientRemovedAction) -> JsonObject:
    kept = removed(state["activeClients"], "clientId", action["clientId"])
    return state if kept is state["activeClients"] else {**state, "activeClients": kept}


# Working directories


def _working_directory_replaced(state: JsonObject, action: SessionWorkingDirectoryReplacedAction) -> JsonObject:
    """The new directory is in the list once: at the old one's place, or at its own earlier place."""
    directories: list[str] = state.get("workingDirectories") or []
    old, new = action["directory"], action["replacement"]
    if old not in directories or old == new:
        return state
    index = directories.index(old)
    before, after = directories[:index], directories[index + 1 :]
    if new not in before:
        before, after = [*before, new], [directory for directory in after if directory != new]
    return {**state, "workingDirectories": [*before, *after]}


# What waits


def _input_needed_set(state: JsonObject, action: SessionInputNeededSetAction) -> JsonObject:
    waiting = upserted(state.get("inputNeeded"), {**action["request"]}, key="id")
    return _with_waiting({**state, "inputNeeded": waiting})


def _input_needed_removed(state: JsonObject, action: SessionInputNeededRemovedAction) -> JsonObject:
    waiting: list[JsonObject] = state.get("inputNeeded") or []
    kept = removed(waiting, "id", action["id"])
    return state if kept is waiting else _with_waiting(put(state, "inputNeeded", kept or None))


def _with_waiting(state: JsonObject) -> JsonObject:
    """`state` with the status that follows from what waits. A tool call that a client runs does not wait for a
    person."""
    waiting: list[JsonObject] = state.get("inputNeeded") or []
    if any(request["kind"] != "toolClientExecution" for request in waiting):
        return {**state, "status": with_activity(state["status"], INPUT_NEEDED)}
    return {**state, "status": with_flag(state["status"], WAITING, False)}


# Canvases

_PATCHABLE = ("title", "status", "url", "availability")
"""What `canvasInstanceUpdated` may touch. Identity and renderer are fixed when the instance is opened."""


def _instance_opened(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "openCanvases": upserted(state.get("openCanvases"), action["instance"], key="instanceId")}


def _instance_updated(state: JsonObject, action: JsonObject) -> JsonObject:
    """Patch an instance: null removes a value, an absent key keeps it."""
    instances: list[JsonObject] = state.get("openCanvases") or []
    index = index_of(instances, "instanceId", action["instanceId"])
    changes = {key: action["changes"][key] for key in _PATCHABLE if key in action["changes"]}
    if index < 0 or not changes:
        return state
    return {**state, "openCanvases": replaced(instances, index, amend(instances[index], changes))}


def _instance_closed(state: JsonObject, action: JsonObject) -> JsonObject:
    """Remove an instance, and the requests that target it."""
    after = _without(state, "openCanvases", "instanceId", action["instanceId"])
    return _without(after, "canvasRequests", "instanceId", action["instanceId"])


def _request_created(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "canvasRequests": upserted(state.get("canvasRequests"), action["request"], key="requestId")}


def _request_ended(state: JsonObject, action: JsonObject) -> JsonObject:
    return _without(state, "canvasRequests", "requestId", action["requestId"])


def _without(state: JsonObject, name: str, key: str, value: str) -> JsonObject:
    """`state` without the entries of list `name` whose `key` is `value`; an absent list stays absent."""
    entries: list[JsonObject] = state.get(name) or []
    kept = all_removed(entries, key, value)
    return state if kept is entries else {**state, name: kept}


CANVAS_HANDLERS: Final[Mapping[str, Handler]] = {
    "session/canvasRegistryChanged": assign("canvasRegistry", field="canvases"),
    "session/canvasInstanceOpened": _instance_opened,
    "session/canvasInstanceUpdated": _instance_updated,
    "session/canvasInstanceClosed": _instance_closed,
    "session/canvasInstanceCloseRequested": unchanged,  # a wish of a client; the host answers with canvasInstanceClosed
    "session/canvasRequestCreated": _request_created,
    "session/canvasRequestCompleted": _request_ended,
    "session/canvasRequestCancelled": _request_ended,
}


# Customizations

_Change = Callable[[JsonObject], JsonObject]

_WITH_DECISIONS = ("plugin", "mcpServer")
"""The kinds of entries that keep decisions by scope; others have one `enabled`."""


def _updated(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "customizations": upserted(state.get("customizations"), action["customization"], key="id")}


def _toggled(state: JsonObject, action: SessionCustomizationToggledAction) -> JsonObject:
    """Replace the decisions about an entry. An entry without decisions by scope gets the first one as `enabled`."""
    decisions = action["enablement"]

    def change(entry: JsonObject) -> JsonObject:
        if entry.get("type") in _WITH_DECISIONS:
            return put(entry, "enablement", decisions or None)
        return {**entry, "enabled": decisions[0]["enabled"] if decisions else True}

    return edited(state, action["id"], change)


def _mcp_server_requested(
    status: str,
) -> Callable[[JsonObject, SessionMcpServerStartRequestedAction | SessionMcpServerStopRequestedAction], JsonObject]:
    """The state of a server that was asked to start or stop: it is starting or stopped, without a side channel."""

    def change(entry: JsonObject) -> JsonObject:
        is_server = entry.get("type") == "mcpServer"
        return {**without(entry, "channel"), "state": {"kind": status}} if is_server else entry

    return lambda state, action: edited(state, action["id"], change)


def _mcp_server_background_requested(
    state: JsonObject, action: SessionMcpServerBackgroundRequestedAction
) -> JsonObject:
    """Messages no longer wait for a server that is starting."""

    def change(entry: JsonObject) -> JsonObject:
        before: JsonObject = entry.get("state") or {}
        waits = entry.get("type") == "mcpServer" and before.get("kind") == "starting" and before.get("blocking") is True
        return {**entry, "state": {**before, "blocking": False}} if waits else entry

    return edited(state, action["id"], change)


def _mcp_server_state_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    """Replace the state and the channel of an MCP server. Without a channel in the action the server has none."""

    def change(entry: JsonObject) -> JsonObject:
        if entry.get("type") != "mcpServer":
            return entry
        return put({**entry, "state": action["state"]}, "channel", action.get("channel"))

    return edited(state, action["id"], change)


def _removed(state: JsonObject, action: JsonObject) -> JsonObject:
    """A container goes with its children; a child goes alone."""
    entries: list[JsonObject] = state.get("customizations") or []
    kept = removed(entries, "id", action["id"])
    if kept is entries:
        kept = _each_container(entries, lambda children: removed(children, "id", action["id"]))
    return state if kept is entries else {**state, "customizations": kept}


def edited(state: JsonObject, customization_id: str, change: _Change) -> JsonObject:
    """`state` with `change` applied to the entry with that id, at top level or, when none is there, in a container."""

    def edit(entries: list[JsonObject]) -> list[JsonObject]:
        for index, entry in enumerate(entries):
            if entry.get("id") == customization_id:
                after = change(entry)
                return entries if after is entry else replaced(entries, index, after)
        return entries

    entries: list[JsonObject] = state.get("customizations") or []
    is_top_level = index_of(entries, "id", customization_id) >= 0
    after = edit(entries) if is_top_level else _each_container(entries, edit)
    return state if after is entries else {**state, "customizations": after}


def _each_container(
    entries: list[JsonObject], edit: Callable[[list[JsonObject]], list[JsonObject]]
) -> list[JsonObject]:
    """`entries` with `edit` applied to the children of the first container that it changes."""
    for index, entry in enumerate(entries):
        children: list[JsonObject] = entry.get("children") or []
        after = edit(children)
        if after is not children:
            return replaced(entries, index, {**entry, "children": after})
    return entries


CUSTOMIZATION_HANDLERS: Final[Mapping[str, Handler]] = {
    "session/customizationsChanged": assign("customizations"),
    "session/customizationToggled": _toggled,
    "session/customizationUpdated": _updated,
    "session/customizationRemoved": _removed,
    "session/mcpServerStateChanged": _mcp_server_state_changed,
    "session/mcpServerStartRequested": _mcp_server_requested("starting"),
    "session/mcpServerStopRequested": _mcp_server_requested("stopped"),
    "session/mcpServerBackgroundRequested": _mcp_server_background_requested,
}


HANDLERS: Final[Mapping[str, Handler]] = {
    "session/ready": _ready,
    "session/creationFailed": _creation_failed,
    "session/chatAdded": _chat_added,
    "session/chatRemoved": _chat_removed,
    "session/chatUpdated": _chat_updated,
    "session/chatsReordered": _chats_reordered,
    "session/defaultChatChanged": assign_optional("defaultChat"),
    "session/titleChanged": assign("title"),
    "session/isReadChanged": partial(_flag_changed, IS_READ, "isRead"),
    "session/isArchivedChanged": partial(_flag_changed, IS_ARCHIVED, "isArchived"),
    "session/activityChanged": assign_optional("activity"),
    "session/changesetsChanged": assign_optional("changesets"),
    "session/serverToolsChanged": assign("serverTools", field="tools"),
    "session/activeClientSet": _active_client_set,
    "session/activeClientRemoved": _active_client_removed,
    "session/workingDirectorySet": directory_added,
    "session/workingDirectoryRemoved": directory_removed,
    "session/workingDirectoryReplaced": _working_directory_replaced,
    "session/inputNeededSet": _input_needed_set,
    "session/inputNeededRemoved": _input_needed_removed,
    "session/configChanged": merge_config,
    "session/metaChanged": assign_optional("_meta"),
    **CUSTOMIZATION_HANDLERS,
    **CANVAS_HANDLERS,
}
