"""Builds the content blocks of `session/prompt` from a turn: text and attachments that the agent supports. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from ahpkit.agents.turn_input import attachments
from ahpkit.agents.untrusted_json import obj, objects, text
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.state import JsonObject

MAX_TRANSCRIPT = 64 * 1024
"""Characters of an earlier conversation that are sent to an agent that cannot restore it: its end."""


def blocks(prompt: str, message: Message, capabilities: JsonObject) -> list[JsonObject]:
    """The user's message; `capabilities` are the agent's `promptCapabilities`."""
    attached = [_attachment(item, capabilities) for item in attachments(message)]
    return [{"type": "text", "text": prompt}, *attached]


def transcript(turns: Sequence[TurnRecord]) -> str:
    """An earlier conversation as text, for an agent that cannot restore it."""
    conversation = "\n\n".join(f"User: {turn['message']['text']}\n\nAssistant: {_answer_text(turn)}" for turn in turns)
    return (
        f"This conversation began earlier. What was said so far:\n\n{conversation[-MAX_TRANSCRIPT:]}"
        if conversation
        else ""
    )


def _answer_text(turn: TurnRecord) -> str:
    parts = objects(list(turn["responseParts"]))
    return "".join(str(part.get("content", "")) for part in parts if part.get("kind") == "markdown")


def _attachment(item: JsonObject, capabilities: JsonObject) -> JsonObject:
    block = _embedded(item, capabilities) if item.get("type") == "embeddedResource" else _reference(item)
    meta = dict(obj(item.get("_meta")))
    if "selection" in item:
        meta["ahpkit/selection"] = item["selection"]
    return block | ({"_meta": meta} if meta else {})


def _reference(item: JsonObject) -> JsonObject:
    """A simple attachment in its words, anything with a URI as the link that every agent takes."""
    label = str(item.get("label", ""))
    uri = text(item.get("uri")) or text(item.get("resource"))
    if uri is None:
        return {"type": "text", "text": text(item.get("modelRepresentation")) or label}
    link: JsonObject = {"type": "resource_link", "uri": uri, "name": label or uri}
    link |= {"mimeType": item["contentType"]} if text(item.get("contentType")) else {}
    return link | ({"size": item["sizeHint"]} if isinstance(item.get("sizeHint"), int) else {})


def _embedded(item: JsonObject, capabilities: JsonObject) -> JsonObject:
    label, data = str(item.get("label", "")), str(item.get("data", ""))
    content_type = text(item.get("contentType")) or "application/octet-stream"
    family = content_type.partition("/")[0]
    if family in ("image", "audio") and capabilities.get(family):
        return {"type": family, "data": data, "mimeType": content_type}
    plain = _plain_text(data, content_type)
    if capabilities.get("embeddedContext"):
        resource: JsonObject = {"uri": f"attachment:///{label}", "mimeType": content_type}
        return {"type": "resource", "resource": resource | ({"blob": data} if plain is None else {"text": plain})}
    if plain is not None:
        return {"type": "text", "text": f"{label}:\n{plain}"}
    return {"type": "text", "text": f"[{label}: this agent takes no attachments of type {content_type}]"}


def _plain_text(data: str, content_type: str) -> str | None:
    if not content_type.startswith("text/") and not content_type.endswith(("json", "xml", "yaml")):
        return None
    try:
        return base64.b64decode(data, validate=True).decode()
    except (UnicodeDecodeError, ValueError, binascii.Error):
        return None


__all__ = ["MAX_TRANSCRIPT", "blocks", "transcript"]
