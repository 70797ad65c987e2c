"""What customizations add to a turn, in words: for agents that have no other place for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ahpkit.host.agent import SkillOffer, TurnContext


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


__all__ = ["instructions"]
