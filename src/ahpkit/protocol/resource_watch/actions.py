"""Actions on `ahp-resource-watch:/<id>`: they carry events, and do not change the state."""

from __future__ import annotations

from typing import Literal, TypedDict

from ahpkit.protocol.resource_watch.state import ResourceChanges


class ResourceWatchChangedAction(TypedDict):
    """Resources changed."""

    type: Literal["resourceWatch/changed"]
    changes: ResourceChanges


ResourceWatchAction = ResourceWatchChangedAction


__all__ = [
    "ResourceWatchAction",
    "ResourceWatchChangedAction",
]
