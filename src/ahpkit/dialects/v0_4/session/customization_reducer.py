"""Session reducer, customization arms: replace, upsert, toggle, remove, MCP state. Every target is found by its id.

Knows nothing of what a disabled customization means: that is `enablement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ahpkit.dialects.v0_4.common.state import JsonObject
from ahpkit.protocol.common.reducing import Handler, assign, put, removed, replaced, upserted

__all__ = ["CUSTOMIZATION_HANDLERS"]

_Change = Callable[[JsonObject], JsonObject]


def _updated(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "customizations": upserted(state.get("customizations"), action["customization"], key="id")}


def _toggled(state: JsonObject, action: JsonObject) -> JsonObject:
    enabled: bool = action["enabled"]
    return _edited(state, action["id"], lambda e: e if e.get("enabled") is enabled else {**e, "enabled": enabled})


def _mcp_server_state_changed(state: JsonObject, action: JsonObject) -> JsonObject:
    """Replaces state and channel of an MCP server: a channel that the action does not carry is gone."""

    def change(entry: JsonObject) -> JsonObject:
        if entry.get("type") != "mcpServer":
            return entry
        return put({**entry, "state": action["state"]}, "channel", action.get("channel"))

    return _edited(state, action["id"], change)


def _removed(state: JsonObject, action: JsonObject) -> JsonObject:
    """A container goes with its children; a child goes alone."""
    entries: list[JsonObject] = state.get("customizations") or []
    kept = removed(entries, "id", action["id"])
    if kept is entries:
        kept = _each_container(entries, lambda children: removed(children, "id", action["id"]))
    return state if kept is entries else {**state, "customizations": kept}


def _edited(state: JsonObject, customization_id: str, change: _Change) -> JsonObject:
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
}
