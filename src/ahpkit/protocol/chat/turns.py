"""Looking things up in the turns of a chat's state. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

STREAMING_ACTIONS = frozenset({"chat/delta", "chat/reasoning", "chat/toolCallDelta", "chat/toolCallContentChanged"})
"""Actions that only make something longer: they come by the thousand, and change no status and no summary."""


def find_turn(state: Mapping[str, Any], turn_id: str) -> Any | None:
    """The turn of a chat with that id, running or over."""
    active = state.get("activeTurn")
    if active is not None and active["id"] == turn_id:
        return active
    return next((turn for turn in reversed(state["turns"]) if turn["id"] == turn_id), None)


def tool_calls(turn: Mapping[str, Any] | None) -> Iterator[Any]:
    """The tool calls of a turn, oldest first."""
    for part in (turn or {}).get("responseParts", ()):
        if part.get("kind") == "toolCall":
            yield part["toolCall"]


def find_tool_call(turn: Mapping[str, Any] | None, tool_call_id: str) -> Any | None:
    """The tool call of a turn with that id. Looks at the newest first: that is the one most are about."""
    for part in reversed((turn or {}).get("responseParts", ())):
        if part.get("kind") == "toolCall" and part["toolCall"]["toolCallId"] == tool_call_id:
            return part["toolCall"]
    return None


__all__ = ["STREAMING_ACTIONS", "find_tool_call", "find_turn", "tool_calls"]
