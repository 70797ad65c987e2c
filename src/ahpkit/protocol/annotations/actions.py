from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.annotations.state import Annotation, AnnotationEntry
from ahpkit.protocol.common.state import URI, TextRange


class AnnotationsSetAction(TypedDict):
    type: Literal["annotations/set"]
    annotation: Annotation


class AnnotationsUpdatedAction(TypedDict):
    type: Literal["annotations/updated"]
    annotationId: str
    turnId: NotRequired[str]
    resource: NotRequired[URI]
    range: NotRequired[TextRange]
    resolved: NotRequired[bool]


class AnnotationsRemovedAction(TypedDict):
    type: Literal["annotations/removed"]
    annotationId: str


class AnnotationsEntrySetAction(TypedDict):
    type: Literal["annotations/entrySet"]
    annotationId: str
    entry: AnnotationEntry


class AnnotationsEntryRemovedAction(TypedDict):
    type: Literal["annotations/entryRemoved"]
    annotationId: str
    entryId: str
