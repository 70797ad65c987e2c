"""Finds things in the turns of a chat: the request that waits, the tool call with an id, what can be resumed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ahpkit.protocol.common.state import JsonObject


def _parts(chat: JsonObject | None) -> Sequence[JsonObject]:
    turn: JsonObject = (chat or {}).get("activeTurn") or {}
    return turn.get("responseParts") or ()


def open_requests(chat: JsonObject | None) -> list[JsonObject]:
    """The input requests that wait for an answer."""
    asked = (part for part in _parts(chat) if part.get("kind") == "inputRequest")
    return [part["request"] for part in asked if part.get("response") is None]


def open_request(chat: JsonObject | None, request_id: str) -> JsonObject | None:
    """The input request with an id, if it waits for an answer."""
    return next((request for request in open_requests(chat) if request["id"] == request_id), None)


def find_tool_call(chat: JsonObject | None, tool_call_id: str) -> JsonObject | None:
    """A tool call, newest first."""
    for part in reversed(_parts(chat)):
        if part.get("kind") == "toolCall" and part["toolCall"]["toolCallId"] == tool_call_id:
            return part["toolCall"]
    return None


def is_resumable(turn: Mapping[str, Any]) -> bool:
    """Whether a turn failed and says that it can go on."""
    parts: Sequence[Any] = turn["responseParts"]
    last: JsonObject = parts[-1] if parts else {}
    return turn["state"] == "error" and last.get("kind") == "error" and last.get("resumable") is True


__all__ = ["find_tool_call", "is_resumable", "open_request", "open_requests"]
