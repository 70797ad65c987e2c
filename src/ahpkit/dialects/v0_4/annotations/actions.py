"""Actions on `ahp-session:/<id>/annotations`; clients may dispatch all of them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.annotations.state import Annotation, AnnotationEntry
from ahpkit.dialects.v0_4.common.state import URI, TextRange


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


__all__ = [
    "AnnotationsAction",
    "AnnotationsEntryRemovedAction",
    "AnnotationsEntrySetAction",
    "AnnotationsRemovedAction",
    "AnnotationsSetAction",
    "AnnotationsUpdatedAction",
]
