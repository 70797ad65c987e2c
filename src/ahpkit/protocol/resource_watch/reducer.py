"""The resource_watch reducer: pure, copy on write. Knows no sequence numbers, clients or clock."""

from __future__ import annotations

from ahpkit.protocol.common.state import JsonObject

__all__ = ["resource_watch_reducer"]


def resource_watch_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The state after `action`; the same object when the action does not apply."""
    return state
