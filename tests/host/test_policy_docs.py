"""The page about the policy names every action that clients may dispatch, and every limit."""

from __future__ import annotations

from pathlib import Path

from ahpkit.host import limits
from ahpkit.host.policy import BEFORE_HANDSHAKE, RULES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "policy.md").read_text()


def test_every_action_is_documented() -> None:
    for action_type in RULES:
        assert f"`{action_type}`" in PAGE, action_type


def test_every_limit_is_documented_with_its_number() -> None:
    numbers = [value for name, value in vars(limits).items() if name.isupper()]
    assert len(numbers) == 5
    for number in numbers:
        assert f"| {number:,} |" in PAGE, number


def test_the_methods_before_the_handshake_are_documented() -> None:
    for method in BEFORE_HANDSHAKE:
        assert f"`{method}`" in PAGE
