"""Checks chats that are attached to a message, and turns them into text for the agent.

Pure. When the message is accepted, an attached chat is pinned to its latest finished turn, unless the message names a
turn. The agent gets the chat up to that turn, as text. Chats that are attached inside that chat are only named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ahpkit.host.limits import MAX_ATTACHED_CHATS, MAX_ATTACHMENTS
from ahpkit.host.states import NO_CHAT, States
from ahpkit.host.turns.new_state import turns_until
from ahpkit.protocol.chat.state import ChatState, Message, MessageAttachment, MessageChatAttachment, Turn

EMPTY: Final = "ahpkit.dev/empty"
"""Key in the `_meta` of an attached chat that had no finished turn when it was attached."""

_MAX_TRANSCRIPT = 256 * 1024
"""Characters that an agent gets of all chats attached to a message together. If they are longer, it gets their ends."""


def attached_chats(message: Message) -> list[str]:
    """The URIs of the chats that are attached to a message, up to the limit."""
    return [attached["resource"] for attached in _attached(message)[:MAX_ATTACHED_CHATS]]


def check_attached(message: Message, states: States) -> str | None:
    """Why the attachments of a message are refused, or None."""
    if (count := len(message.get("attachments") or ())) > MAX_ATTACHMENTS:
        return f"attachments: a message may have {MAX_ATTACHMENTS}, not {count}"
    chats = _attached(message)
    if len(chats) > MAX_ATTACHED_CHATS:
        return f"attachments: a message may have {MAX_ATTACHED_CHATS} chats attached, not {len(chats)}"
    for attached in chats:
        chat = _chat(attached, states)
        if chat is None:
            return f"attachments: there is no chat {attached['resource'][:200]}"
        end = attached.get("endTurn")
        if end is not None and turns_until(chat, end) is None:
            return f"attachments: {attached['resource']} has no finished turn {str(end)[:200]!r}"
    return None


def pinned(message: Message, states: States) -> Message:
    """The message with each attached chat pinned to the chat's latest finished turn."""
    return _with_attached(message, lambda attached: _pinned(attached, states))


def _pinned(attached: MessageChatAttachment, states: States) -> MessageChatAttachment:
    meta = attached.get("_meta") or {}
    if "endTurn" in attached or EMPTY in meta:
        return attached
    chat = _chat(attached, states)
    turns = chat["turns"] if chat else []
    return {**attached, "endTurn": turns[-1]["id"]} if turns else {**attached, "_meta": {**meta, EMPTY: True}}


def written_out(message: Message, states: States) -> Message:
    """The message for an agent: attached chats are replaced by their text."""
    count = len(_attached(message))
    return _with_attached(message, lambda attached: _written_out(attached, states, _MAX_TRANSCRIPT // count))


def _written_out(attached: MessageChatAttachment, states: States, most: int) -> MessageAttachment:
    chat = _chat(attached, states) or NO_CHAT
    turns = turns_until(chat, attached.get("endTurn", "")) or []
    label = str(attached.get("label") or chat.get("title") or "chat")
    conversation = _end_of(turns, most)
    text = f"The chat “{label}”:\n\n{conversation}" if conversation else f"The chat “{label}” is empty."
    return {"type": "simple", "label": label, "modelRepresentation": text}


def _end_of(turns: Sequence[Turn], most: int) -> str:
    """The end of the text of some turns, with at most this many characters."""
    exchanges: list[str] = []
    left = most
    for turn in reversed(turns):
        exchanges.append(f"User: {turn['message']['text']}\n\nAssistant: {_answer(turn)}")
        left -= len(exchanges[-1])
        if left <= 0:
            break
    return "\n\n".join(reversed(exchanges))[-most:]


def _answer(turn: Turn) -> str:
    return "".join(str(part["content"]) for part in turn["responseParts"] if part["kind"] == "markdown")


def _chat(attached: MessageChatAttachment, states: States) -> ChatState | None:
    state = states.chat(attached["resource"])
    return state if state is not None and "turns" in state else None


def _attached(message: Message) -> list[MessageChatAttachment]:
    return [item for item in message.get("attachments") or () if item["type"] == "chat"]


def _with_attached(message: Message, change: Callable[[MessageChatAttachment], MessageAttachment]) -> Message:
    if not _attached(message):
        return message
    items = message.get("attachments") or ()
    return {**message, "attachments": [change(item) if item["type"] == "chat" else item for item in items]}


__all__ = ["attached_chats", "check_attached", "pinned", "written_out"]
