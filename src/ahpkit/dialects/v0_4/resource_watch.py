"""File watches of 0.4.0: the same as in 1.0.0."""

from __future__ import annotations

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.protocol.common.reducing import apply
from ahpkit.protocol.resource_watch import (
    HANDLERS,
    CreateResourceWatchParams,
    CreateResourceWatchResult,
    ResourceChange,
    ResourceChanges,
    ResourceChangeType,
    ResourceWatchAction,
    ResourceWatchChangedAction,
    ResourceWatchPatterns,
    ResourceWatchState,
)


def resource_watch_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """Always the same state: subscribers read the changes off the actions."""
    return apply(HANDLERS, state, action)


__all__ = [
    "HANDLERS",
    "CreateResourceWatchParams",
    "CreateResourceWatchResult",
    "ResourceChange",
    "ResourceChangeType",
    "ResourceChanges",
    "ResourceWatchAction",
    "ResourceWatchChangedAction",
    "ResourceWatchPatterns",
    "ResourceWatchState",
    "resource_watch_reducer",
]
