"""The canvas part of the session reducer: the registry, the open instances, the requests in flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.common.reducing import Handler, amend, assign, index_of, removed, replaced, unchanged, upserted
from ahpkit.protocol.common.state import JsonObject

__all__ = ["CANVAS_HANDLERS"]

_PATCHABLE = ("title", "status", "url", "availability")
"""What `canvasInstanceUpdated` may touch. Identity and renderer are fixed when the instance is opened."""


def _instance_opened(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "openCanvases": upserted(state.get("openCanvases"), action["instance"], key="instanceId")}


def _instance_updated(state: JsonObject, action: JsonObject) -> JsonObject:
    """A narrow patch: null clears, absent keeps."""
    instances: list[JsonObject] = state.get("openCanvases") or []
    index = index_of(instances, "instanceId", action["instanceId"])
    changes = {key: action["changes"][key] for key in _PATCHABLE if key in action["changes"]}
    if index < 0 or not changes:
        return state
    return {**state, "openCanvases": replaced(instances, index, amend(instances[index], changes))}


def _instance_closed(state: JsonObject, action: JsonObject) -> JsonObject:
    """Remove an instance, and the requests that target it."""
    after = _without(state, "openCanvases", "instanceId", action["instanceId"])
    return _without(after, "canvasRequests", "instanceId", action["instanceId"])


def _request_created(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "canvasRequests": upserted(state.get("canvasRequests"), action["request"], key="requestId")}


def _request_ended(state: JsonObject, action: JsonObject) -> JsonObject:
    return _without(state, "canvasRequests", "requestId", action["requestId"])


def _without(state: JsonObject, name: str, key: str, value: str) -> JsonObject:
    """`state` without the entries of list `name` whose `key` is `value`; an absent list stays absent."""
    entries: list[JsonObject] = state.get(name) or []
    kept = removed(entries, key, value)
    return state if kept is entries else {**state, name: kept}


CANVAS_HANDLERS: Final[Mapping[str, Handler]] = {
    "session/canvasRegistryChanged": assign("canvasRegistry", field="canvases"),
    "session/canvasInstanceOpened": _instance_opened,
    "session/canvasInstanceUpdated": _instance_updated,
    "session/canvasInstanceClosed": _instance_closed,
    "session/canvasInstanceCloseRequested": unchanged,  # a wish of a client; the host answers with canvasInstanceClosed
    "session/canvasRequestCreated": _request_created,
    "session/canvasRequestCompleted": _request_ended,
    "session/canvasRequestCancelled": _request_ended,
}
