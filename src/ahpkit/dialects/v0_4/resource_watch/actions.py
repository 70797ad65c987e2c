"""Actions on `ahp-resource-watch:/<id>`: they deliver, the state does not change."""

from __future__ import annotations

from typing import Literal, TypedDict

from ahpkit.dialects.v0_4.resource_watch.state import ResourceChanges


class ResourceWatchChangedAction(TypedDict):
    """Resources changed."""

    type: Literal["resourceWatch/changed"]
    changes: ResourceChanges


ResourceWatchAction = ResourceWatchChangedAction


__all__ = [
    "ResourceWatchAction",
    "ResourceWatchChangedAction",
]
