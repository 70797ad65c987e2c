"""The annotations channel's reducer: annotations and their entries, each found by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.common.reducing import Handler, apply, index_of, removed, replaced, upserted
from ahpkit.protocol.common.state import JsonObject

__all__ = ["HANDLERS", "annotations_reducer", "updating"]

_UPDATABLE = ("origin", "resource", "range", "resolved")
"""What `annotations/updated` may write. It clears nothing: an absent field stays as it was."""


def annotations_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The annotations after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _set(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "annotations": upserted(state["annotations"], action["annotation"], key="id")}


def _removed(state: JsonObject, action: JsonObject) -> JsonObject:
    kept = removed(state["annotations"], "id", action["annotationId"])
    return state if kept is state["annotations"] else {**state, "annotations": kept}


def updating(*keys: str) -> Handler:
    """The handler of `annotations/updated` that writes these keys."""

    def change(annotation: JsonObject, action: JsonObject) -> JsonObject:
        changes = {key: action[key] for key in keys if action.get(key) is not None}
        return {**annotation, **changes} if changes else annotation

    return _within(change)


def _entry_set(annotation: JsonObject, action: JsonObject) -> JsonObject:
    return {**annotation, "entries": upserted(annotation["entries"], action["entry"], key="id")}


def _entry_removed(annotation: JsonObject, action: JsonObject) -> JsonObject:
    kept = removed(annotation["entries"], "id", action["entryId"])
    return annotation if kept is annotation["entries"] else {**annotation, "entries": kept}


def _within(change: Handler) -> Handler:
    """Make a change of one annotation a handler of the state: find it by `annotationId`."""

    def handler(state: JsonObject, action: JsonObject) -> JsonObject:
        annotations: list[JsonObject] = state["annotations"]
        index = index_of(annotations, "id", action["annotationId"])
        if index < 0:
            return state
        after = change(annotations[index], action)
        if after is annotations[index]:
            return state
        return {**state, "annotations": replaced(annotations, index, after)}

    return handler


HANDLERS: Final[Mapping[str, Handler]] = {
    "annotations/set": _set,
    "annotations/updated": updating(*_UPDATABLE),
    "annotations/removed": _removed,
    "annotations/entrySet": _within(_entry_set),
    "annotations/entryRemoved": _within(_entry_removed),
}
