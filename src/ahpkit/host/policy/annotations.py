"""What clients may do to annotations: anything, as long as each keeps an entry and names its session. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.limits import MAX_ANNOTATIONS
from ahpkit.host.policy.proposed_action import ProposedAction, Rule, check_names, find
from ahpkit.protocol.annotations import (
    Annotation,
    AnnotationOrigin,
    AnnotationsEntryRemovedAction,
    AnnotationsEntrySetAction,
    AnnotationsRemovedAction,
    AnnotationsSetAction,
    AnnotationsState,
    AnnotationsUpdatedAction,
)

_KnownAction = (
    AnnotationsUpdatedAction | AnnotationsRemovedAction | AnnotationsEntrySetAction | AnnotationsEntryRemovedAction
)
"""An action on an annotation that exists."""

MAX_ENTRIES = 2 * MAX_ANNOTATIONS
"""Entries of one annotation."""


def _set(proposed: ProposedAction[AnnotationsSetAction, AnnotationsState]) -> str | None:
    annotation = proposed.action["annotation"]
    if not annotation["entries"]:
        return "an annotation has at least one entry"
    if len(annotation["entries"]) > MAX_ENTRIES:
        return f"an annotation may have {MAX_ENTRIES} entries, not {len(annotation['entries'])}"
    if (reason := _check_origin(annotation.get("origin"), proposed.channel)) is not None:
        return reason
    remarks = proposed.state["annotations"]
    if len(remarks) >= MAX_ANNOTATIONS and not find(remarks, "id", annotation["id"]):
        return f"a session may have {MAX_ANNOTATIONS} annotations; remove some first"
    return check_names("annotation id", [annotation["id"]]) or check_names(
        "entry id", (entry["id"] for entry in annotation["entries"])
    )


def _known(proposed: ProposedAction[_KnownAction, AnnotationsState]) -> str | None:
    annotation = _annotation(proposed)
    return annotation if isinstance(annotation, str) else None


def _updated(proposed: ProposedAction[AnnotationsUpdatedAction, AnnotationsState]) -> str | None:
    return _known(proposed) or _check_origin(proposed.action.get("origin"), proposed.channel)


def _check_origin(origin: AnnotationOrigin | None, channel: str) -> str | None:
    """An annotation comes from the session in which it is."""
    if origin is None or origin["session"] == channel.removesuffix("/annotations"):
        return None
    return f"origin: this annotation belongs to the session of its channel, not to {origin['session']}"


def _entry_set(proposed: ProposedAction[AnnotationsEntrySetAction, AnnotationsState]) -> str | None:
    annotation, entry = _annotation(proposed), proposed.action["entry"]
    if isinstance(annotation, str):
        return annotation
    if len(annotation["entries"]) >= MAX_ENTRIES and not find(annotation["entries"], "id", entry["id"]):
        return f"an annotation may have {MAX_ENTRIES} entries; remove some first"
    return check_names("entry id", [entry["id"]])


def _entry_removed(proposed: ProposedAction[AnnotationsEntryRemovedAction, AnnotationsState]) -> str | None:
    annotation = _annotation(proposed)
    if isinstance(annotation, str):
        return annotation
    entry_id = proposed.action["entryId"]
    if not find(annotation["entries"], "id", entry_id):
        return f"annotation {annotation['id']!r} has no entry {entry_id!r}"
    if len(annotation["entries"]) == 1:
        return "an annotation keeps at least one entry; remove the annotation instead"
    return None


def _annotation(proposed: ProposedAction[_KnownAction, AnnotationsState]) -> Annotation | str:
    annotation_id = proposed.action["annotationId"]
    return find(proposed.state["annotations"], "id", annotation_id) or f"there is no annotation {annotation_id!r}"


RULES: Mapping[str, Rule] = {
    "annotations/set": _set,
    "annotations/updated": _updated,
    "annotations/removed": _known,
    "annotations/entrySet": _entry_set,
    "annotations/entryRemoved": _entry_removed,
}

__all__ = ["RULES"]
