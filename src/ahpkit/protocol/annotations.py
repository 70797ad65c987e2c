"""Remarks on places in files (`ahp-session:/<id>/annotations`): state, actions, reducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.reducing import Handler, apply, index_of, removed, replaced, upserted
from ahpkit.protocol.common.state import URI, JsonObject, StringOrMarkdown, TextRange


class AnnotationsSummary(TypedDict):
    """The number of annotations and of their entries, for a session's summary."""

    resource: URI
    annotationCount: int
    entryCount: int


class AnnotationEntry(TypedDict):
    """One remark of a thread."""

    id: str
    text: StringOrMarkdown
    _meta: NotRequired[JsonObject]


class AnnotationOrigin(TypedDict):
    """Where an annotation was made: in a session, perhaps in one of its chats, perhaps about one turn."""

    session: URI
    chat: NotRequired[URI]
    turnId: NotRequired[str]


class Annotation(TypedDict):
    """A thread of remarks on a place."""

    id: str
    origin: AnnotationOrigin
    resource: URI
    range: NotRequired[TextRange]
    resolved: bool
    entries: list[AnnotationEntry]
    _meta: NotRequired[JsonObject]


class AnnotationsState(TypedDict):
    """State of `ahp-session:/<id>/annotations`."""

    annotations: list[Annotation]


class AnnotationsSetAction(TypedDict):
    """An annotation is new, or replaced as a whole."""

    type: Literal["annotations/set"]
    annotation: Annotation


def annotations_set(*, annotation: Annotation) -> AnnotationsSetAction:
    """An annotation is new, or replaced as a whole."""
    return {"type": "annotations/set", "annotation": annotation}


class AnnotationsUpdatedAction(TypedDict):
    """Some fields of an annotation changed; its entries did not."""

    type: Literal["annotations/updated"]
    annotationId: str
    origin: NotRequired[AnnotationOrigin]
    resource: NotRequired[URI]
    range: NotRequired[TextRange]
    resolved: NotRequired[bool]


def annotations_updated(
    *,
    annotation_id: str,
    origin: AnnotationOrigin | None = None,
    resource: URI | None = None,
    range_: TextRange | None = None,
    resolved: bool | None = None,
) -> AnnotationsUpdatedAction:
    """Some fields of an annotation changed; its entries did not."""
    action: AnnotationsUpdatedAction = {"type": "annotations/updated", "annotationId": annotation_id}
    if origin is not None:
        action["origin"] = origin
    if resource is not None:
        action["resource"] = resource
    if range_ is not None:
        action["range"] = range_
    if resolved is not None:
        action["resolved"] = resolved
    return action


class AnnotationsRemovedAction(TypedDict):
    """An annotation is gone."""

    type: Literal["annotations/removed"]
    annotationId: str


def annotations_removed(*, annotation_id: str) -> AnnotationsRemovedAction:
    """An annotation is gone."""
    return {"type": "annotations/removed", "annotationId": annotation_id}


class AnnotationsEntrySetAction(TypedDict):
    """A remark is new, or replaced as a whole."""

    type: Literal["annotations/entrySet"]
    annotationId: str
    entry: AnnotationEntry


def annotations_entry_set(*, annotation_id: str, entry: AnnotationEntry) -> AnnotationsEntrySetAction:
    """A remark is new, or replaced as a whole."""
    return {"type": "annotations/entrySet", "annotationId": annotation_id, "entry": entry}


class AnnotationsEntryRemovedAction(TypedDict):
    """A remark is gone."""

    type: Literal["annotations/entryRemoved"]
    annotationId: str
    entryId: str


def annotations_entry_removed(*, annotation_id: str, entry_id: str) -> AnnotationsEntryRemovedAction:
    """A remark is gone."""
    return {"type": "annotations/entryRemoved", "annotationId": annotation_id, "entryId": entry_id}


AnnotationsAction = (
    AnnotationsSetAction
    | AnnotationsUpdatedAction
    | AnnotationsRemovedAction
    | AnnotationsEntrySetAction
    | AnnotationsEntryRemovedAction
)


_UPDATABLE = ("origin", "resource", "range", "resolved")
"""The fields that `annotations/updated` may write. An absent field keeps its value."""


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
    """Turn a change of one annotation, found by `annotationId`, into a handler of the state."""

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


__all__ = [
    "HANDLERS",
    "Annotation",
    "AnnotationEntry",
    "AnnotationOrigin",
    "AnnotationsAction",
    "AnnotationsEntryRemovedAction",
    "AnnotationsEntrySetAction",
    "AnnotationsRemovedAction",
    "AnnotationsSetAction",
    "AnnotationsState",
    "AnnotationsSummary",
    "AnnotationsUpdatedAction",
    "annotations_entry_removed",
    "annotations_entry_set",
    "annotations_reducer",
    "annotations_removed",
    "annotations_set",
    "annotations_updated",
    "updating",
]
