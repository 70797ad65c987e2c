"""What a turn gives to an agent besides its text: attachments, and what customizations say."""

from typing import Any, cast

import pytest

from ahpkit.agents.turn_input import attachments, instructions
from ahpkit.host.agent import SkillOffer, TurnContext
from ahpkit.protocol.chat.state import Message
from ahpkit.testing.recording import user_message


def of(text: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    return attachments(cast("Message", {**user_message(text), "attachments": list(items)}))


def test_a_completed_slash_command_is_not_said_twice() -> None:
    assert of("/plan the day", {"type": "simple", "label": "/plan", "_meta": {"description": "Make a plan"}}) == []


@pytest.mark.parametrize(
    "item",
    [
        {"type": "simple", "label": "a selection"},
        {"type": "simple", "label": "day", "modelRepresentation": "Monday"},
        {"type": "resource", "label": "day", "uri": "file:///day"},
    ],
)
def test_whatever_says_more_than_the_text_is_told(item: dict[str, Any]) -> None:
    assert of("plan the day", item) == [item]


def test_a_message_needs_no_attachments() -> None:
    assert attachments(user_message("hi")) == []


def test_instructions_name_rules_skills_and_agents() -> None:
    context = TurnContext(
        system_prompt="Be brief.",
        rules=["Use tabs."],
        skills=[SkillOffer("pdf", "Reads PDFs", "file:///pdf/SKILL.md")],
        agents=[SkillOffer("reviewer", "Reviews", "file:///r.md")],
    )

    told = instructions(context)

    assert "Be brief." in told
    assert "Use tabs." in told
    assert "- pdf: Reads PDFs (file:///pdf/SKILL.md)" in told
    assert "- reviewer: Reviews" in told
    assert instructions(TurnContext()) == ""
