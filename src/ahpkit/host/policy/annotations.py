"""What clients may do to annotations: anything, as long as every annotation keeps an entry. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.policy.attempt import Attempt, Rule, check_names, find
from ahpkit.protocol.common.state import JsonObject


def _set(attempt: Attempt) -> str | None:
    annotation = attempt.action["annotation"]
    if not annotation["entries"]:
        return "an annotation has at least one entry"
    return check_names("annotation id", [annotation["id"]]) or check_names(
        "entry id", (entry["id"] for entry in annotation["entries"])
    )


def _known(attempt: Attempt) -> str | None:
    annotation = _annotation(attempt)
    return annotation if isinstance(annotation, str) else None


def _entry_set(attempt: Attempt) -> str | None:
    return _known(attempt) or check_names("entry id", [attempt.action["entry"]["id"]])


def _entry_removed(attempt: Attempt) -> str | None:
    annotation = _annotation(attempt)
    if isinstance(annotation, str):
        return annotation
    entry_id = attempt.action["entryId"]
    if not find(annotation["entries"], "id", entry_id):
        return f"annotation {annotation['id']!r} has no entry {entry_id!r}"
    if len(annotation["entries"]) == 1:
        return "an annotation keeps at least one entry; remove the annotation instead"
    return None


def _annotation(attempt: Attempt) -> JsonObject | str:
    annotation_id = attempt.action["annotationId"]
    return find(attempt.state["annotations"], "id", annotation_id) or f"there is no annotation {annotation_id!r}"


RULES: Mapping[str, Rule] = {
    "annotations/set": _set,
    "annotations/updated": _known,
    "annotations/removed": _known,
    "annotations/entrySet": _entry_set,
    "annotations/entryRemoved": _entry_removed,
}

__all__ = ["RULES"]
