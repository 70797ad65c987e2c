"""Shared by the tests: the requirement marker. Fixtures that need a host live in the conftest beside their users."""

import pytest

requirement = pytest.mark.requirement
"""`@requirement("core:wire:ids")`: this test proves that sentence of the specification."""

__all__ = ["requirement"]
