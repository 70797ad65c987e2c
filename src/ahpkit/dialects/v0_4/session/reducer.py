"""The reducer of sessions of 0.4.0: life cycle, summary, chats, tools, configuration, customizations, canvases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.protocol.common.reducing import (
    Handler,
    amend,
    apply,
    assign,
    assign_optional,
    index_of,
    merge_config,
    removed,
    replaced,
    upserted,
    without,
)
from ahpkit.protocol.common.status import IS_ARCHIVED, IS_READ, with_flag
from ahpkit.protocol.session.reducer import CANVAS_HANDLERS, edited
from ahpkit.protocol.session.reducer import CUSTOMIZATION_HANDLERS as CURRENT


def _toggled(state: JsonObject, action: JsonObject) -> JsonObject:
    enabled: bool = action["enabled"]
    return edited(state, action["id"], lambda e: e if e.get("enabled") is enabled else {**e, "enabled": enabled})


_SAME = (
    "session/customizationsChanged",
    "session/customizationUpdated",
    "session/customizationRemoved",
    "session/mcpServerStateChanged",
)
"""Actions that mean the same in later versions."""

CUSTOMIZATION_HANDLERS: Final[Mapping[str, Handler]] = {
    **{kind: CURRENT[kind] for kind in _SAME},
    "session/customizationToggled": _toggled,
}


STAMPED: Final = frozenset(
    {"session/titleChanged", "session/modelChanged", "session/agentChanged", "session/configChanged"}
)
"""The actions that set `summary.modifiedAt`: what a person changed in the session itself."""


def session_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The session after `action`; the same object when it does not apply."""

    def stamp(after: JsonObject) -> JsonObject:
        return {**after, "summary": {**after["summary"], "modifiedAt": now}}

    return apply(HANDLERS, state, action, stamped=STAMPED, stamp=stamp)


# Life cycle


def _ready(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "lifecycle": "ready"}


def _creation_failed(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "lifecycle": "creationFailed", "creationError": action["error"]}


# Summary


def _in_summary(change: Handler) -> Handler:
    """Turn a change of the summary into a handler of the state."""

    def handler(state: JsonObject, action: JsonObject) -> JsonObject:
        after = change(state["summary"], action)
        return state if after is state["summary"] else {**state, "summary": after}

    return handler


def _flag_changed(flag: int, field: str, summary: JsonObject, action: JsonObject) -> JsonObject:
    status = with_flag(summary["status"], flag, action[field])
    return summary if status == summary["status"] else {**summary, "status": status}


# Chats


def _chat_added(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "chats": upserted(state["chats"], action["summary"], key="resource")}


def _chat_removed(state: JsonObject, action: JsonObject) -> JsonObject:
    """Remove a chat. Input that is addressed to the session must not go to a chat that is gone."""
    kept = removed(state["chats"], "resource", action["chat"])
    if kept is state["chats"]:
        return state
    after = {**state, "chats": kept}
    return without(after, "defaultChat") if state.get("defaultChat") == action["chat"] else after


def _chat_updated(state: JsonObject, action: JsonObject) -> JsonObject:
    changes = without(action["changes"], "resource")
    index = index_of(state["chats"], "resource", action["chat"])
    if index < 0 or not changes:
        return state
    return {**state, "chats": replaced(state["chats"], index, amend(state["chats"][index], changes))}


# Active client


def _client_tools_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    client = state.get("activeClient")
    return state if client is None else {**state, "activeClient": {**client, "tools": action["tools"]}}


HANDLERS: Final[Mapping[str, Handler]] = {
    "session/ready": _ready,
    "session/creationFailed": _creation_failed,
    "session/chatAdded": _chat_added,
    "session/chatRemoved": _chat_removed,
    "session/chatUpdated": _chat_updated,
    "session/defaultChatChanged": assign_optional("defaultChat"),
    "session/titleChanged": _in_summary(assign("title")),
    "session/modelChanged": _in_summary(assign("model")),
    "session/agentChanged": _in_summary(assign_optional("agent")),
    "session/isReadChanged": _in_summary(partial(_flag_changed, IS_READ, "isRead")),
    "session/isArchivedChanged": _in_summary(partial(_flag_changed, IS_ARCHIVED, "isArchived")),
    "session/activityChanged": _in_summary(assign_optional("activity")),
    "session/changesetsChanged": assign_optional("changesets"),
    "session/serverToolsChanged": assign("serverTools", field="tools"),
    "session/activeClientChanged": assign_optional("activeClient"),
    "session/activeClientToolsChanged": _client_tools_changed,
    "session/configChanged": merge_config,
    "session/metaChanged": assign_optional("_meta"),
    **CUSTOMIZATION_HANDLERS,
    **CANVAS_HANDLERS,
}


__all__ = ["CUSTOMIZATION_HANDLERS", "HANDLERS", "STAMPED", "session_reducer"]
