"""Actions on `ahp-session:/<id>/annotations`, each with its constructor. Clients may dispatch all of them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.annotations.state import Annotation, AnnotationEntry, AnnotationOrigin
from ahpkit.protocol.common.state import URI, TextRange


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


__all__ = [
    "AnnotationsAction",
    "AnnotationsEntryRemovedAction",
    "AnnotationsEntrySetAction",
    "AnnotationsRemovedAction",
    "AnnotationsSetAction",
    "AnnotationsUpdatedAction",
    "annotations_entry_removed",
    "annotations_entry_set",
    "annotations_removed",
    "annotations_set",
    "annotations_updated",
]
