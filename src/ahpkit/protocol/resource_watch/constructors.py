"""Makes actions on resource watches: one function for each, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.resource_watch.actions import ResourceWatchChangedAction
from ahpkit.protocol.resource_watch.state import ResourceChanges

__all__ = ["resource_watch_changed"]


def resource_watch_changed(*, changes: ResourceChanges) -> ResourceWatchChangedAction:
    """Resources changed."""
    return {"type": "resourceWatch/changed", "changes": changes}
