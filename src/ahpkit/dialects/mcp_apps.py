"""Hides a server's `mcpApp` and `mcp://` channel from clients that do not render MCP Apps. Pure."""

from __future__ import annotations

from typing import Final

from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_own, encode

ACTIONS: Final = frozenset(
    {"session/customizationsChanged", "session/customizationUpdated", "session/mcpServerStateChanged"}
)
"""Actions that may carry it."""

_FIELDS: Final = ("mcpApp", "channel")
_MARKS: Final = (b'"mcpApp"', b'"mcp://')


def without(envelope: bytes) -> bytes:
    """The envelope of one of `ACTIONS` without it. Most do not contain it, and are not decoded."""
    if not any(mark in envelope for mark in _MARKS):
        return envelope
    told: JsonObject = decode_own(envelope)
    return encode({**told, "action": action_without(told["action"])})


def action_without(action: JsonObject) -> JsonObject:
    match action["type"]:
        case "session/mcpServerStateChanged" if "channel" in action:
            return {key: value for key, value in action.items() if key != "channel"}
        case "session/customizationUpdated":
            return {**action, "customization": _entry(action["customization"])}
        case "session/customizationsChanged":
            return {**action, "customizations": [_entry(entry) for entry in action["customizations"]]}
        case _:
            return action


def state_without(state: JsonObject) -> JsonObject:
    """A session's state without it."""
    entries: list[JsonObject] = state.get("customizations") or []
    shown = [_entry(entry) for entry in entries]
    return state if shown == entries else {**state, "customizations": shown}


def _entry(entry: JsonObject) -> JsonObject:
    if entry.get("type") == "mcpServer":
        return {key: value for key, value in entry.items() if key not in _FIELDS}
    children: list[JsonObject] = entry.get("children") or []
    shown = [_entry(child) if child.get("type") == "mcpServer" else child for child in children]
    return entry if shown == children else {**entry, "children": shown}


__all__ = ["ACTIONS", "action_without", "state_without", "without"]
