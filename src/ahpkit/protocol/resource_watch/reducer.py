"""The resource watch channel's reducer. It changes nothing: a watch's actions carry events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.common.reducing import Handler, apply, unchanged
from ahpkit.protocol.common.state import JsonObject

__all__ = ["HANDLERS", "resource_watch_reducer"]

HANDLERS: Final[Mapping[str, Handler]] = {"resourceWatch/changed": unchanged}


def resource_watch_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """Always the same state: subscribers read the changes off the actions."""
    return apply(HANDLERS, state, action)
