"""What a turn gives to an agent besides its text: attachments, and what customizations say. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ahpkit.agents.untrusted_json import text
from ahpkit.host.agent import SkillOffer, TurnContext
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject

GO_ON = "Your answer was interrupted. Go on where it stopped; do not repeat what you said."
"""What an agent is told when a turn goes on that failed."""


def attachments(message: Message) -> list[JsonObject]:
    """The attachments that say more than the message itself."""
    items = [cast("JsonObject", item) for item in message.get("attachments", ())]
    return [item for item in items if not _is_said(item, message["text"])]


def _is_said(item: JsonObject, words: str) -> bool:
    """A name without content that is in the text: what the completion of a slash command attaches."""
    bare = item.get("type") == "simple" and not text(item.get("modelRepresentation"))
    return bare and str(item.get("label", "")) in words


def instructions(context: TurnContext) -> str:
    """What customizations add, as words for an agent that has no other place for it; empty when there is nothing."""
    sections = [context.system_prompt or "", *context.rules]
    sections.append(_offers("Skills you may use. Read a skill's file before you use it:", context.skills))
    sections.append(_offers("Agents you may delegate to:", context.agents))
    said = [section.strip() for section in sections if section.strip()]
    return "\n\n".join(["Instructions for this conversation:", *said]) if said else ""


def _offers(heading: str, offers: Sequence[SkillOffer]) -> str:
    lines = [f"- {offer.name}: {offer.description} ({offer.uri})" for offer in offers]
    return "\n".join([heading, *lines]) if lines else ""


__all__ = ["GO_ON", "attachments", "instructions"]
