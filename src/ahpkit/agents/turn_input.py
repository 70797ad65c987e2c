"""Puts into words what a turn gives an agent besides its text: attachments and customizations. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import cast

from ahpkit.agents.untrusted_json import text
from ahpkit.host.agent import SkillOffer, TurnContext
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject

GO_ON = "Your answer was interrupted. Go on where it stopped; do not repeat what you said."
"""The prompt of a turn that failed and is continued."""


def attachments(message: Message) -> list[JsonObject]:
    """The attachments that contain more than the message itself."""
    items = [cast("JsonObject", item) for item in message.get("attachments", ())]
    return [item for item in items if not _is_named_in(item, message["text"])]


def _is_named_in(item: JsonObject, words: str) -> bool:
    """Whether an attachment is only a name that the text contains too, such as a completed slash command."""
    bare = item.get("type") == "simple" and not text(item.get("modelRepresentation"))
    return bare and str(item.get("label", "")) in words


def instructions(context: TurnContext) -> str:
    """What customizations add, as text for an agent that has no other place for it. Empty if they add nothing."""
    sections = [context.system_prompt or "", *context.rules]
    sections.append(_offers(_skills(context), context.skills))
    sections.append(_offers("Agents you may delegate to:", context.agents))
    parts = [section.strip() for section in sections if section.strip()]
    return "\n\n".join(["Instructions for this conversation:", *parts]) if parts else ""


GivenInstructions = Sequence[tuple[str, str]]
"""Instructions that an agent got: the name of each for people, and a digest of it."""

MAX_REMEMBERED = 100
"""Instructions that are remembered one by one."""
_NAME = 80


def given_after(given: GivenInstructions, context: TurnContext) -> GivenInstructions:
    """The instructions that an agent has after it got those of `context`. Rules that wait for their files stay."""
    now, waiting = _named(context), _rules(context.other_rules)
    return [*now, *(one for one in given if one in waiting and one not in now)]


def changed_instructions(given: GivenInstructions, context: TurnContext) -> str:
    """The text for an agent that got `given` before: which instructions ended, and which hold now. Empty if nothing
    changed."""
    now, waiting = _named(context), _rules(context.other_rules)
    ended = [name for name, digest in given if (name, digest) not in (*now, *waiting)]
    if not ended:
        return instructions(context) if any(one not in given for one in now) else ""
    parts = ["Instructions given earlier in this conversation no longer hold:", *(f"- {name}" for name in ended)]
    follows = "What follows replaces them." if now else "There are no instructions now."
    parts.append(f"Do not follow them any more. {follows}")
    return "\n\n".join(filter(None, ["\n".join(parts), instructions(context)]))


def _named(context: TurnContext) -> GivenInstructions:
    offers = [("skill", one) for one in context.skills] + [("agent", one) for one in context.agents]
    parts = [("your role", context.system_prompt)] if context.system_prompt else []
    parts += [(f"the {kind} {one.name}", f"{one.description} {one.uri}") for kind, one in offers]
    named = [*_rules(context.rules), *((name, _digest(text)) for name, text in parts)]
    if len(named) <= MAX_REMEMBERED:
        return named
    rest = "".join(digest for _, digest in named[MAX_REMEMBERED:])
    return [*named[:MAX_REMEMBERED], ("other instructions", _digest(rest))]


def _rules(rules: Sequence[str]) -> GivenInstructions:
    return [(_first_line(rule), _digest(rule)) for rule in rules if rule.strip()]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _first_line(rule: str) -> str:
    lines = [line.strip(" #*-") for line in rule.splitlines()]
    first = next((line for line in lines if line), "a rule")
    return first if len(first) <= _NAME else f"{first[: _NAME - 1]}…"


def _skills(context: TurnContext) -> str:
    heading = "Skills you may use. Read a skill's file before you use it"
    virtual = any("://" in offer.uri and not offer.uri.startswith("file:") for offer in context.skills)
    return f"{heading}; if it is not a file, read it with the tool read_plugin_file:" if virtual else f"{heading}:"


def _offers(heading: str, offers: Sequence[SkillOffer]) -> str:
    lines = [f"- {offer.name}: {offer.description} ({offer.uri})" for offer in offers]
    return "\n".join([heading, *lines]) if lines else ""


__all__ = ["GO_ON", "GivenInstructions", "attachments", "changed_instructions", "given_after", "instructions"]
