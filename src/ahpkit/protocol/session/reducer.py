"""The session channel's reducer: life cycle, chats, clients, directories, what waits. Turns belong to chats.

Customizations and canvases have tables of their own (`customization_reducer`, `canvas_reducer`), joined here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from ahpkit.protocol.common.reducing import (
    Handler,
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
    SessionInputNeededRemovedAction,
    SessionInputNeededSetAction,
    SessionReadyAction,
    SessionWorkingDirectoryReplacedAction,
)
from ahpkit.protocol.session.canvas_reducer import CANVAS_HANDLERS
from ahpkit.protocol.session.customization_reducer import CUSTOMIZATION_HANDLERS

__all__ = ["HANDLERS", "session_reducer"]


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
    after = list(dict.fromkeys(new if directory == old else directory for directory in directories))
    return {**state, "workingDirectories": after}


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
