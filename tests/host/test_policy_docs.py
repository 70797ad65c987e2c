"""The page about the policy names every action that clients may dispatch, and every limit."""

from __future__ import annotations

from pathlib import Path

from ahpkit.host import limits
from ahpkit.host.policy import RULES
from ahpkit.protocol import json_schema

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "policy.md").read_text()
LIMITS = (REFERENCE / "limits.md").read_text()


def test_every_action_is_documented() -> None:
    for action_type in RULES:
        assert f"`{action_type}`" in PAGE, action_type


def test_every_limit_is_documented_with_its_number() -> None:
    for module in (limits, json_schema):
        for name, number in vars(module).items():
            if name.startswith("M") and name.isupper():
                assert f"| {number:,} |" in LIMITS, (module.__name__, name)


def test_the_methods_before_the_handshake_are_documented() -> None:
    for method in ("initialize", "ping", "reconnect"):
        assert f"`{method}`" in PAGE
