"""How many examples a property gets. See `conftest.py` for the profiles."""

from __future__ import annotations

from hypothesis import settings


def examples(share: float) -> settings:
    """Use this share of the profile's examples, for properties that cost more than most."""
    return settings(max_examples=max(1, int(settings().max_examples * share)))


__all__ = ["examples"]
