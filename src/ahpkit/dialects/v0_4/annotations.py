"""The annotations channel of 0.4.0: its state, its actions and its reducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import URI, JsonObject, StringOrMarkdown, TextRange
from ahpkit.protocol.common.reducing import Handler, apply, index_of, removed, replaced, upserted


class AnnotationsSummary(TypedDict):
    """How many there are, for a session's summary."""

    resource: URI
    annotationCount: int
    entryCount: int


class AnnotationEntry(TypedDict):
    """One remark of a thread."""

    id: str
    text: StringOrMarkdown
    _meta: NotRequired[JsonObject]


class Annotation(TypedDict):
    """A thread of remarks on a place."""

    id: str
    turnId: str
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


class AnnotationsUpdatedAction(TypedDict):
    """Some fields of an annotation changed; its entries did not."""

    type: Literal["annotations/updated"]
    annotationId: str
    turnId: NotRequired[str]
    resource: NotRequired[URI]
    range: NotRequired[TextRange]
    resolved: NotRequired[bool]


class AnnotationsRemovedAction(TypedDict):
    """An annotation is gone."""

    type: Literal["annotations/removed"]
    annotationId: str


class AnnotationsEntrySetAction(TypedDict):
    """A remark is new, or replaced as a whole."""

    type: Literal["annotations/entrySet"]
    annotationId: str
    entry: AnnotationEntry


class AnnotationsEntryRemovedAction(TypedDict):
    """A remark is gone."""

    type: Literal["annotations/entryRemoved"]
    annotationId: str
    entryId: str


AnnotationsAction = (
    AnnotationsSetAction
    | AnnotationsUpdatedAction
    | AnnotationsRemovedAction
    | AnnotationsEntrySetAction
    | AnnotationsEntryRemovedAction
)


_UPDATABLE = ("turnId", "resource", "range", "resolved")
"""What `annotations/updated` may write. It clears nothing: an absent field stays as it was."""


def annotations_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The annotations after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _set(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "annotations": upserted(state["annotations"], action["annotation"], key="id")}


def _removed(state: JsonObject, action: JsonObject) -> JsonObject:
    kept = removed(state["annotations"], "id", action["annotationId"])
    return state if kept is state["annotations"] else {**state, "annotations": kept}


def _updated(annotation: JsonObject, action: JsonObject) -> JsonObject:
    changes = {key: action[key] for key in _UPDATABLE if action.get(key) is not None}
    return {**annotation, **changes} if changes else annotation


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
    "annotations/updated": _within(_updated),
    "annotations/removed": _removed,
    "annotations/entrySet": _within(_entry_set),
    "annotations/entryRemoved": _within(_entry_removed),
}


__all__ = [
    "HANDLERS",
    "Annotation",
    "AnnotationEntry",
    "AnnotationsAction",
    "AnnotationsEntryRemovedAction",
    "AnnotationsEntrySetAction",
    "AnnotationsRemovedAction",
    "AnnotationsSetAction",
    "AnnotationsState",
    "AnnotationsSummary",
    "AnnotationsUpdatedAction",
    "annotations_reducer",
]
