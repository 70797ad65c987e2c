"""What clients may do to annotations: anything, as long as every annotation keeps an entry. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ahpkit.host.limits import MAX_REMARK
from ahpkit.host.policy.attempt import Attempt, Rule, check_names, find
from ahpkit.protocol_next.common.state import JsonObject


def _set(attempt: Attempt) -> str | None:
    annotation = attempt.action["annotation"]
    if not annotation["entries"]:
        return "an annotation has at least one entry"
    if (reason := _too_long(annotation["entries"])) is not None:
        return reason
    return check_names("annotation id", [annotation["id"]]) or check_names(
        "entry id", (entry["id"] for entry in annotation["entries"])
    )


def _known(attempt: Attempt) -> str | None:
    annotation = _annotation(attempt)
    return annotation if isinstance(annotation, str) else None


def _entry_set(attempt: Attempt) -> str | None:
    entry = attempt.action["entry"]
    return _known(attempt) or _too_long([entry]) or check_names("entry id", [entry["id"]])


def _too_long(entries: Sequence[JsonObject]) -> str | None:
    longest = max((_length(entry.get("text")) for entry in entries), default=0)
    return None if longest <= MAX_REMARK else f"a remark may have {MAX_REMARK} characters, this one has {longest}"


def _length(text: Any) -> int:
    """Of plain text or Markdown."""
    if isinstance(text, dict):
        text = cast("JsonObject", text).get("markdown", "")
    return len(text) if isinstance(text, str) else 0


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
