"""What sessions are called."""

import pytest

from ahpkit.host.turns.new_state import MAX_TITLE, agent_title, title_from


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("  Fix the   tests \nand then rest", "Fix the tests"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("word " * 20, "word " * 11 + "word…"),
        ("\x1b[31mred", "[31mred"),
        ("", ""),
    ],
)
def test_a_first_message_gives_its_first_line(message: str, title: str) -> None:
    assert title_from(message) == title


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("About\ncats\x07\x9b2J", "About cats 2J"),
        ("y" * (MAX_TITLE + 1), "y" * (MAX_TITLE - 1) + "…"),
        ("\n\t ", ""),
    ],
)
def test_an_agents_title_is_one_line_of_bounded_length(given: str, title: str) -> None:
    assert agent_title(given) == title


def test_a_title_without_end_costs_no_time() -> None:
    assert len(agent_title(" a" * 5_000_000)) <= MAX_TITLE
