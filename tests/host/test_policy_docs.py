"""The page about the policy names every action that clients may dispatch, and every limit."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from ahpkit.agents.acp import limits as acp_limits
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
    """Limits with the same number need as many rows."""
    rows = Counter(re.findall(r"(?<=[|;] )[\d,]+(?=[ ,;])", LIMITS))
    numbers = {
        f"{module.__name__}.{name}": f"{number:,}"
        for module in (limits, json_schema, acp_limits)
        for name, number in vars(module).items()
        if name.startswith("M") and name.isupper()
    }
    wanted = Counter(numbers.values())
    assert [name for name, number in numbers.items() if rows[number] < wanted[number]] == []


def test_the_methods_before_the_handshake_are_documented() -> None:
    for method in ("initialize", "ping", "reconnect"):
        assert f"`{method}`" in PAGE
