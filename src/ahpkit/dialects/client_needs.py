"""Adapts messages to what a client can show, independent of its version. Pure.

VS Code offers only agents that have models. For it, an agent that reports its models later, or never, gets a stand-in
model. The stand-in is removed from the messages that the client sends.

A client that does not render MCP Apps gets no `mcpApp` and no `mcp://` channel of a server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ahpkit.protocol.common.reducing import without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_own, encode

AGENTS_CHANGED: Final = "root/agentsChanged"
"""The action that carries agents, and so their models."""

APP_ACTIONS: Final = frozenset(
    {"session/customizationsChanged", "session/customizationUpdated", "session/mcpServerStateChanged"}
)
"""Actions that may carry `mcpApp` or the channel of a server."""

STAND_IN_MODEL: Final = "ahpkit-any-model"
_MODEL_NAME: Final = "The agent's own choice"
_NO_MODELS: Final = b'"models":[]'
MESSAGES: Final = frozenset({"message", "draft", "initialMessage"})
"""Members of actions and params that hold a message."""

_APP_FIELDS: Final = ("mcpApp", "channel")
_APP_MARKS: Final = (b'"mcpApp"', b'"mcp://')


def _edit(envelope: bytes, edit: Callable[[JsonObject], JsonObject]) -> bytes:
    """An envelope whose action was changed by `edit`."""
    decoded: JsonObject = decode_own(envelope)
    return encode({**decoded, "action": edit(decoded["action"])})


# -- a model for every agent ---------------------------------------------------------------------------------------


def envelope_with_models(envelope: bytes) -> bytes:
    """Give every agent in an envelope of `AGENTS_CHANGED` a model. It is not decoded when all agents have models."""
    return _edit(envelope, with_models) if _NO_MODELS in envelope else envelope


def with_models(value: JsonObject) -> JsonObject:
    """The root's state, or the action `AGENTS_CHANGED`, with a model for every agent."""
    agents: Sequence[JsonObject] = value.get("agents") or ()
    return {**value, "agents": [_agent_with_models(agent) for agent in agents]} if agents else value


def _agent_with_models(agent: JsonObject) -> JsonObject:
    if agent.get("models"):
        return agent
    return {**agent, "models": [{"id": STAND_IN_MODEL, "provider": agent["provider"], "name": _MODEL_NAME}]}


def without_stand_in(value: JsonObject) -> JsonObject:
    """An action or params without the stand-in model in its messages."""
    for key in () if MESSAGES.isdisjoint(value) else MESSAGES:
        message: Any = value.get(key)
        if isinstance(message, dict) and _names_stand_in(cast("JsonObject", message)):
            value = {**value, key: without(cast("JsonObject", message), "model")}
    return value


def _names_stand_in(message: JsonObject) -> bool:
    model: Any = message.get("model")
    return isinstance(model, dict) and cast("JsonObject", model).get("id") == STAND_IN_MODEL


# -- MCP Apps ------------------------------------------------------------------------------------------------------


def envelope_without_apps(envelope: bytes) -> bytes:
    """Remove the apps from an envelope of one of `APP_ACTIONS`. Most have none, and are not decoded."""
    return _edit(envelope, action_without_apps) if any(mark in envelope for mark in _APP_MARKS) else envelope


def action_without_apps(action: JsonObject) -> JsonObject:
    match action["type"]:
        case "session/mcpServerStateChanged" if "channel" in action:
            return {key: value for key, value in action.items() if key != "channel"}
        case "session/customizationUpdated":
            return {**action, "customization": _entry_without_apps(action["customization"])}
        case "session/customizationsChanged":
            return {**action, "customizations": [_entry_without_apps(entry) for entry in action["customizations"]]}
        case _:
            return action


def state_without_apps(state: JsonObject) -> JsonObject:
    """A session's state without the apps and channels of its servers."""
    entries: list[JsonObject] = state.get("customizations") or []
    shown = [_entry_without_apps(entry) for entry in entries]
    return state if shown == entries else {**state, "customizations": shown}


def _entry_without_apps(entry: JsonObject) -> JsonObject:
    if entry.get("type") == "mcpServer":
        return {key: value for key, value in entry.items() if key not in _APP_FIELDS}
    children: list[JsonObject] = entry.get("children") or []
    shown = [_entry_without_apps(child) if child.get("type") == "mcpServer" else child for child in children]
    return entry if shown == children else {**entry, "children": shown}


__all__ = [
    "AGENTS_CHANGED",
    "APP_ACTIONS",
    "MESSAGES",
    "STAND_IN_MODEL",
    "action_without_apps",
    "envelope_with_models",
    "envelope_without_apps",
    "state_without_apps",
    "with_models",
    "without_stand_in",
]
