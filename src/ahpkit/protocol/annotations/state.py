from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, JsonObject, StringOrMarkdown, TextRange


class AnnotationsSummary(TypedDict):
    resource: URI
    annotationCount: int | float
    entryCount: int | float


class AnnotationsState(TypedDict):
    annotations: list[Annotation]


class Annotation(TypedDict):
    id: str
    turnId: str
    resource: URI
    range: NotRequired[TextRange]
    resolved: bool
    entries: list[AnnotationEntry]
    _meta: NotRequired[JsonObject]


class AnnotationEntry(TypedDict):
    id: str
    text: StringOrMarkdown
    _meta: NotRequired[JsonObject]
