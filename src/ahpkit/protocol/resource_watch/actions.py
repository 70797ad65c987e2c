"""Actions on `ahp-resource-watch:/<id>`, each with its constructor. They carry events, and do not change the state."""

from __future__ import annotations

from typing import Literal, TypedDict

from ahpkit.protocol.resource_watch.state import ResourceChanges


class ResourceWatchChangedAction(TypedDict):
    """Resources changed."""

    type: Literal["resourceWatch/changed"]
    changes: ResourceChanges


def resource_watch_changed(*, changes: ResourceChanges) -> ResourceWatchChangedAction:
    """Resources changed."""
    return {"type": "resourceWatch/changed", "changes": changes}


ResourceWatchAction = ResourceWatchChangedAction


__all__ = ["ResourceWatchAction", "ResourceWatchChangedAction", "resource_watch_changed"]
