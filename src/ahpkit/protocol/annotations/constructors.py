"""Makes actions on annotations: one function for each, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.annotations.actions import (
    AnnotationsEntryRemovedAction,
    AnnotationsEntrySetAction,
    AnnotationsRemovedAction,
    AnnotationsSetAction,
    AnnotationsUpdatedAction,
)
from ahpkit.protocol.annotations.state import Annotation, AnnotationEntry, AnnotationOrigin
from ahpkit.protocol.common.state import URI, TextRange

__all__ = [
    "annotations_entry_removed",
    "annotations_entry_set",
    "annotations_removed",
    "annotations_set",
    "annotations_updated",
]


def annotations_set(*, annotation: Annotation) -> AnnotationsSetAction:
    """An annotation is new, or replaced as a whole."""
    return {"type": "annotations/set", "annotation": annotation}


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


def annotations_removed(*, annotation_id: str) -> AnnotationsRemovedAction:
    """An annotation is gone."""
    return {"type": "annotations/removed", "annotationId": annotation_id}


def annotations_entry_set(*, annotation_id: str, entry: AnnotationEntry) -> AnnotationsEntrySetAction:
    """A remark is new, or replaced as a whole."""
    return {"type": "annotations/entrySet", "annotationId": annotation_id, "entry": entry}


def annotations_entry_removed(*, annotation_id: str, entry_id: str) -> AnnotationsEntryRemovedAction:
    """A remark is gone."""
    return {"type": "annotations/entryRemoved", "annotationId": annotation_id, "entryId": entry_id}
