"""State of a watch: what is watched."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI

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


__all__ = [
    "ResourceChange",
    "ResourceChangeType",
    "ResourceChanges",
    "ResourceWatchPatterns",
    "ResourceWatchState",
]
