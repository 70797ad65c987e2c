"""State of a session's annotations: remarks on places in files. Knows no session."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.state import URI, JsonObject, StringOrMarkdown, TextRange


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


__all__ = [
    "Annotation",
    "AnnotationEntry",
    "AnnotationsState",
    "AnnotationsSummary",
]
