"""Finds things in the active turn of a chat: the request that waits, the tool call with an id. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ahpkit.protocol.common.state import JsonObject


def _parts(chat: JsonObject | None) -> Sequence[JsonObject]:
    turn: JsonObject = (chat or {}).get("activeTurn") or {}
    return turn.get("responseParts") or ()


def open_request(chat: JsonObject | None, request_id: str) -> JsonObject | None:
    """The input request that waits for an answer."""
    for part in _parts(chat):
        if part.get("kind") == "inputRequest" and part.get("response") is None and part["request"]["id"] == request_id:
            return part["request"]
    return None


def find_tool_call(chat: JsonObject | None, tool_call_id: str) -> JsonObject | None:
    """A tool call, newest first."""
    for part in reversed(_parts(chat)):
        if part.get("kind") == "toolCall" and part["toolCall"]["toolCallId"] == tool_call_id:
            return part["toolCall"]
    return None


__all__ = ["find_tool_call", "open_request"]
