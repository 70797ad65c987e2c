"""Is what a client says well formed in its own version? Knows the shapes that differ from version to version."""

from __future__ import annotations

from ahpkit.dialects.generations import Generation
from ahpkit.protocol import validation
from ahpkit.protocol.common.state import JsonObject


def check_params(method: str, params: JsonObject, *, by: Generation) -> None:
    """Raise `InvalidParams` when the params of a client's request are malformed in its version."""
    validation.check_params(method, params)


def check_action(action: JsonObject, *, by: Generation) -> None:
    """Raise `InvalidParams` when a client's action is malformed in its version."""
    validation.check_action(action)


__all__ = ["check_action", "check_params"]
