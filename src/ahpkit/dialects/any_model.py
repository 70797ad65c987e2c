"""Adds a stand-in model to agents without models, for VS Code, which does not let people choose such agents. Pure.

Agents that report their models later, or never, are shown with it. In messages it is removed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from ahpkit.protocol.common.reducing import without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_own, encode

ACTION: Final = "root/agentsChanged"
"""The action that shows agents."""

ID: Final = "ahpkit-any-model"
_NAME: Final = "The agent's own choice"
_MESSAGES: Final = frozenset({"message", "draft", "initialMessage"})
"""Members of actions and params that hold a message."""


def envelope_with(envelope: bytes) -> bytes:
    """The envelope of an `ACTION`; nothing is decoded when every agent has models."""
    if b'"models":[]' not in envelope:
        return envelope
    told: JsonObject = decode_own(envelope)
    return encode({**told, "action": with_models(told["action"])})


def with_models(value: JsonObject) -> JsonObject:
    """Something with agents: the root's state, or an `ACTION`."""
    agents: Sequence[JsonObject] = value.get("agents") or ()
    return {**value, "agents": [_agent(one) for one in agents]} if agents else value


def _agent(agent: JsonObject) -> JsonObject:
    if agent.get("models"):
        return agent
    return {**agent, "models": [{"id": ID, "provider": agent["provider"], "name": _NAME}]}


def without_it(value: JsonObject) -> JsonObject:
    """An action or params without the stand-in model."""
    for key in () if _MESSAGES.isdisjoint(value) else _MESSAGES:
        message: Any = value.get(key)
        if isinstance(message, dict) and _is_it(cast("JsonObject", message)):
            value = {**value, key: without(cast("JsonObject", message), "model")}
    return value


def _is_it(message: JsonObject) -> bool:
    model: Any = message.get("model")
    return isinstance(model, dict) and cast("JsonObject", model).get("id") == ID


__all__ = ["ACTION", "ID", "envelope_with", "with_models", "without_it"]
