"""Watches (`ahp-resource-watch:/<id>`): state, actions, commands, reducer. Actions carry events and change no state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.reducing import Handler, apply, unchanged
from ahpkit.protocol.common.state import URI, JsonObject, RootParams

ResourceChangeType = Literal["added", "updated", "deleted"]


class ResourceWatchPatterns(TypedDict):
    """Globs or paths, relative to the root of the watch."""

    items: list[str]


class ResourceWatchState(TypedDict):
    """State of `ahp-resource-watch:/<id>`."""

    root: URI
    recursive: bool
    excludes: NotRequired[ResourceWatchPatterns]
    includes: NotRequired[ResourceWatchPatterns]


class ResourceChange(TypedDict):
    """Something happened to a resource."""

    uri: URI
    type: ResourceChangeType


class ResourceChanges(TypedDict):
    """What happened since the last time; never empty."""

    items: list[ResourceChange]


class ResourceWatchChangedAction(TypedDict):
    """Resources changed."""

    type: Literal["resourceWatch/changed"]
    changes: ResourceChanges


def resource_watch_changed(*, changes: ResourceChanges) -> ResourceWatchChangedAction:
    """Resources changed."""
    return {"type": "resourceWatch/changed", "changes": changes}


ResourceWatchAction = ResourceWatchChangedAction


class CreateResourceWatchParams(RootParams):
    """`createResourceWatch`, in both directions."""

    uri: URI
    recursive: NotRequired[bool]
    excludes: NotRequired[ResourceWatchPatterns]
    includes: NotRequired[ResourceWatchPatterns]


class CreateResourceWatchResult(TypedDict):
    """The channel to subscribe to; the watch ends with its last subscriber."""

    channel: URI


HANDLERS: Final[Mapping[str, Handler]] = {"resourceWatch/changed": unchanged}


def resource_watch_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
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
    "resource_watch_changed",
    "resource_watch_reducer",
]
