"""Chats that are attached to a message: checks them, and writes down what the agent reads of them. Pure.

A chat is attached as it is when the message is accepted: it is pinned to its latest finished turn, unless the message
names one. The agent gets what was said up to there, as text. Chats that are attached to its messages are only named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from ahpkit.host.turns.new_state import turns_until
from ahpkit.protocol.common.state import JsonObject

StateOf = Callable[[str], JsonObject | None]

EMPTY: Final = "ahpkit.dev/empty"
"""Key in the `_meta` of an attached chat that had no finished turn when it was attached."""

_MAX_TRANSCRIPT = 256 * 1024
"""Characters of an attached chat that an agent gets: its end."""


def check_attached(message: JsonObject, state_of: StateOf) -> str | None:
    """Why the attached chats of a message are refused, or None."""
    for attached in _attached(message):
        chat = _chat(attached, state_of)
        if chat is None:
            return f"attachments: there is no chat {str(attached.get('resource'))[:200]}"
        end = attached.get("endTurn")
        if end is not None and turns_until(chat, end) is None:
            return f"attachments: {attached['resource']} has no finished turn {str(end)[:200]!r}"
    return None


def pinned(message: JsonObject, state_of: StateOf) -> JsonObject:
    """The message with each attached chat pinned to its present end."""
    return _with_attached(message, lambda attached: _pinned(attached, state_of))


def _pinned(attached: JsonObject, state_of: StateOf) -> JsonObject:
    meta: JsonObject = attached.get("_meta") or {}
    if "endTurn" in attached or EMPTY in meta:
        return attached
    turns: Sequence[JsonObject] = (_chat(attached, state_of) or {}).get("turns") or ()
    return {**attached, "endTurn": turns[-1]["id"]} if turns else {**attached, "_meta": {**meta, EMPTY: True}}


def written_out(message: JsonObject, state_of: StateOf) -> JsonObject:
    """The message as an agent gets it: attached chats are replaced by their text."""
    return _with_attached(message, lambda attached: _written_out(attached, state_of))


def _written_out(attached: JsonObject, state_of: StateOf) -> JsonObject:
    chat = _chat(attached, state_of) or {"turns": []}
    turns = turns_until(chat, attached.get("endTurn", "")) or []
    label = str(attached.get("label") or chat.get("title") or "chat")
    said = "\n\n".join(f"User: {turn['message']['text']}\n\nAssistant: {_answer(turn)}" for turn in turns)
    told = f"The chat “{label}”:\n\n{said[-_MAX_TRANSCRIPT:]}" if said else f"The chat “{label}” is empty."
    return {"type": "simple", "label": label, "modelRepresentation": told}


def _answer(turn: JsonObject) -> str:
    parts: Iterable[JsonObject] = turn["responseParts"]
    return "".join(str(part["content"]) for part in parts if part.get("kind") == "markdown")


def _chat(attached: JsonObject, state_of: StateOf) -> JsonObject | None:
    uri = attached.get("resource")
    state = state_of(uri) if isinstance(uri, str) else None
    return state if state is not None and "turns" in state else None


def _attached(message: JsonObject) -> list[JsonObject]:
    found: Iterable[Any] = message.get("attachments") or ()
    return [cast("JsonObject", item) for item in found if isinstance(item, dict) and _is_chat(cast("JsonObject", item))]


def _is_chat(attachment: JsonObject) -> bool:
    return attachment.get("type") == "chat"


def _with_attached(message: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    if not _attached(message):
        return message
    items: Iterable[JsonObject] = message["attachments"]
    return {**message, "attachments": [change(item) if _is_chat(item) else item for item in items]}


__all__ = ["check_attached", "pinned", "written_out"]
