"""The customization part of the session reducer: replace, upsert, toggle, remove, MCP state. Every target is found by
its id.

What a disabled customization means is decided in `enablement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ahpkit.protocol.common.reducing import Handler, assign, put, removed, replaced, upserted, without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.actions import (
    SessionCustomizationToggledAction,
    SessionMcpServerBackgroundRequestedAction,
    SessionMcpServerStartRequestedAction,
    SessionMcpServerStopRequestedAction,
)

__all__ = ["CUSTOMIZATION_HANDLERS", "edited"]

_Change = Callable[[JsonObject], JsonObject]

_WITH_DECISIONS = ("plugin", "mcpServer")
"""The kinds of entries that keep decisions by scope; others have one `enabled`."""


def _updated(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "customizations": upserted(state.get("customizations"), action["customization"], key="id")}


def _toggled(state: JsonObject, action: SessionCustomizationToggledAction) -> JsonObject:
    """Replaces what was decided: all decisions where an entry keeps them, else the first of them."""
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
    """Replaces state and channel of an MCP server: a channel that the action does not carry is gone."""

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
    """`state` with `change` applied to the entry with that id, at top level or in a container."""

    def edit(entries: list[JsonObject]) -> list[JsonObject]:
        for index, entry in enumerate(entries):
            if entry.get("id") == customization_id:
                after = change(entry)
                return entries if after is entry else replaced(entries, index, after)
        return entries

    entries: list[JsonObject] = state.get("customizations") or []
    after = edit(entries)
    if after is entries:
        after = _each_container(entries, edit)
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
