"""The annotations channel of 0.4.0: its state, its actions and its reducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import URI, JsonObject, TextRange
from ahpkit.protocol.annotations import HANDLERS as CURRENT
from ahpkit.protocol.annotations import (
    AnnotationEntry,
    AnnotationsEntryRemovedAction,
    AnnotationsEntrySetAction,
    AnnotationsRemovedAction,
    AnnotationsSummary,
    updating,
)
from ahpkit.protocol.common.reducing import Handler, apply


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


AnnotationsAction = (
    AnnotationsSetAction
    | AnnotationsUpdatedAction
    | AnnotationsRemovedAction
    | AnnotationsEntrySetAction
    | AnnotationsEntryRemovedAction
)


_UPDATABLE = ("turnId", "resource", "range", "resolved")
"""The fields that `annotations/updated` may write. An absent field keeps its value."""


def annotations_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The annotations after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


HANDLERS: Final[Mapping[str, Handler]] = {**CURRENT, "annotations/updated": updating(*_UPDATABLE)}


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
