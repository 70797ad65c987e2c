"""What is attached to a message, for an agent: all but names that its text has already. Pure."""

from __future__ import annotations

from typing import cast

from ahpkit.agents.shape import text
from ahpkit.protocol_next.chat.state import Message
from ahpkit.protocol_next.common.state import JsonObject


def attachments(message: Message) -> list[JsonObject]:
    """The attachments that say more than the message itself."""
    items = [cast("JsonObject", item) for item in message.get("attachments", ())]
    return [item for item in items if not _is_said(item, message["text"])]


def _is_said(item: JsonObject, words: str) -> bool:
    """A name without content that is in the text: what the completion of a slash command attaches."""
    bare = item.get("type") == "simple" and not text(item.get("modelRepresentation"))
    return bare and str(item.get("label", "")) in words


__all__ = ["attachments"]
