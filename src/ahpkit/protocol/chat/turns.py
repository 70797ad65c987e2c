"""Finds turns, tool calls and open questions in a chat's state. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ahpkit.protocol.common.reducing import milliseconds
from ahpkit.protocol.meta_keys import SETTLED

STREAMED_TEXT = frozenset({"chat/delta", "chat/reasoning", "chat/toolCallDelta"})
"""Actions that only append text: they are the most frequent ones, and change no status and no summary."""

STREAMING_ACTIONS = STREAMED_TEXT | {"chat/toolCallContentChanged"}
"""Actions that only make a response longer: those that append text, and the growing result of a tool call."""


def find_turn(state: Mapping[str, Any], turn_id: str) -> Any | None:
    """The turn of a chat with that id, running or over."""
    active = state.get("activeTurn")
    if active is not None and active["id"] == turn_id:
        return active
    return next((turn for turn in reversed(state["turns"]) if turn["id"] == turn_id), None)


def elapsed(chat: Mapping[str, Any] | None, now: int) -> int:
    """Milliseconds since the active turn of a chat began. `now` is of the clock that wrote `startedAt`: the host's."""
    turn = (chat or {}).get("activeTurn")
    return max(0, now - milliseconds(turn["startedAt"])) if turn and turn.get("startedAt") else 0


def tool_calls(turn: Mapping[str, Any] | None) -> Iterator[Any]:
    """The tool calls of a turn, oldest first."""
    for part in (turn or {}).get("responseParts", ()):
        if part.get("kind") == "toolCall":
            yield part["toolCall"]


def text_of(turn: Mapping[str, Any]) -> str:
    """Everything a person could have read in a turn."""
    texts: list[Any] = [turn["message"]["text"]]
    for part in turn["responseParts"]:
        match part["kind"]:
            case "markdown" | "reasoning":
                texts.append(part["content"])
            case "systemNotification":
                content = part["content"]
                texts.append(content["markdown"] if isinstance(content, dict) else content)
            case "toolCall":
                call = part["toolCall"]
                given = call.get("toolInput", "")
                texts += [call["displayName"], given["uri"] if isinstance(given, dict) else given]
                texts += [one["text"] for one in call.get("content", ()) if one["type"] == "text"]
            case _:
                pass
    return "\n".join(map(str, texts))  # Text that still grows is a `Rope`.


def newest_part_index(parts: Sequence[Mapping[str, Any]], part_id: str) -> int:
    """Where the newest part with that id is, or -1. Streamed text goes to the end of a response that may be long."""
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].get("id") == part_id:
            return index
    return -1


def tool_call_index(turn: Mapping[str, Any] | None, tool_call_id: Any) -> int:
    """Where in a turn's response the tool call with that id is, or -1. Looks at the newest part first."""
    parts: Any = (turn or {}).get("responseParts", ())
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].get("kind") == "toolCall" and parts[index]["toolCall"]["toolCallId"] == tool_call_id:
            return index
    return -1


def find_tool_call(turn: Mapping[str, Any] | None, tool_call_id: str) -> Any | None:
    """The tool call of a turn with that id."""
    index = tool_call_index(turn, tool_call_id)
    return None if turn is None or index < 0 else turn["responseParts"][index]["toolCall"]


def waits_for_person(call: Mapping[str, Any]) -> bool:
    """Whether a person is asked about a tool call: before it runs, or about its result."""
    if call["status"] == "pending-confirmation":
        return SETTLED not in (call.get("_meta") or {})
    return call["status"] == "pending-result-confirmation"


def open_requests(chat: Mapping[str, Any] | None) -> list[Any]:
    """The input requests of a chat's running turn that wait for an answer."""
    turn: Mapping[str, Any] = (chat or {}).get("activeTurn") or {}
    parts: Sequence[Any] = turn.get("responseParts") or ()
    asked = (part for part in parts if part.get("kind") == "inputRequest")
    return [part["request"] for part in asked if part.get("response") is None]


def open_request(chat: Mapping[str, Any] | None, request_id: str) -> Any | None:
    """The input request with that id, if it waits for an answer."""
    return next((request for request in open_requests(chat) if request["id"] == request_id), None)


def is_resumable(turn: Mapping[str, Any]) -> bool:
    """Whether a turn failed and says that it can go on."""
    parts: Sequence[Any] = turn["responseParts"]
    last: Mapping[str, Any] = parts[-1] if parts else {}
    return turn["state"] == "error" and last.get("kind") == "error" and last.get("resumable") is True


__all__ = [
    "STREAMED_TEXT",
    "STREAMING_ACTIONS",
    "elapsed",
    "find_tool_call",
    "find_turn",
    "is_resumable",
    "newest_part_index",
    "open_request",
    "open_requests",
    "text_of",
    "tool_call_index",
    "tool_calls",
    "waits_for_person",
]
