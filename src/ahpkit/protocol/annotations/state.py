"""State of a session's annotations: remarks on places in files."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, JsonObject, StringOrMarkdown, TextRange


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


__all__ = [
    "Annotation",
    "AnnotationEntry",
    "AnnotationOrigin",
    "AnnotationsState",
    "AnnotationsSummary",
]
