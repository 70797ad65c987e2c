"""Summaries derived from states: a session's from its chats, a chat's and the annotations' from their own. Pure.

Knows no store and no notification. The rules of aggregation are the session reference's (SessionSummary).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ahpkit.dialects.v0_4.common.state import JsonObject
from ahpkit.protocol.common.status import ACTIVITY_MASK, ERROR, INPUT_NEEDED, with_activity

_CHAT_FIELDS = (
    "resource",
    "title",
    "status",
    "activity",
    "modifiedAt",
    "model",
    "agent",
    "origin",
    "interactivity",
    "workingDirectory",
)
"""What a chat's state and its entry in the session have in common."""

_CLEARED: JsonObject = {"activity": "", "agent": {"uri": ""}}
"""How a partial update says that a field has no value any more: an absent key means "as before", and null is no value
of these fields."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def aggregate(session: JsonObject) -> JsonObject:
    """The summary of a session as lists show it: its own, with status, activity and time taken from its chats."""
    own, chats = session["summary"], session["chats"]
    if not chats:
        return own
    driving = _driving_chat(chats, session.get("defaultChat"))
    summary = {key: value for key, value in own.items() if key != "activity"}
    summary["status"] = with_activity(own["status"], driving["status"] & ACTIVITY_MASK)
    summary["modifiedAt"] = max(own["modifiedAt"], *(_milliseconds(chat["modifiedAt"]) for chat in chats))
    return summary | ({"activity": driving["activity"]} if driving.get("activity") else {})


def _driving_chat(chats: Sequence[JsonObject], default: str | None) -> JsonObject:
    """The chat whose activity is the session's: one that needs input, else one that failed, else the default."""
    for promoted in (INPUT_NEEDED, ERROR):
        raised = [chat for chat in chats if chat["status"] & promoted == promoted]
        if raised:
            return _preferred(raised, default)
    return _preferred(chats, default)


def _preferred(chats: Sequence[JsonObject], default: str | None) -> JsonObject:
    """The default chat if it is among them, else the one modified last."""
    chosen = next((chat for chat in chats if chat["resource"] == default), None)
    return chosen or max(chats, key=lambda chat: _milliseconds(chat["modifiedAt"]))


def _milliseconds(time: str) -> int:
    """A chat's time as sessions write it."""
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(milliseconds=1)


def chat_summary(chat: JsonObject) -> JsonObject:
    """A chat's entry in its session."""
    return {key: chat[key] for key in _CHAT_FIELDS if key in chat}


def annotations_summary(session_uri: str, state: JsonObject) -> JsonObject:
    """The counts of a session's annotations channel."""
    annotations: Sequence[JsonObject] = state["annotations"]
    return {
        "resource": f"{session_uri}/annotations",
        "annotationCount": len(annotations),
        "entryCount": sum(len(annotation["entries"]) for annotation in annotations),
    }


def changed_fields(old: JsonObject, new: JsonObject) -> JsonObject | None:
    """What to tell those who know `old`: the fields that differ in `new`; None when none does."""
    changes: dict[str, Any] = {key: value for key, value in new.items() if key not in old or old[key] != value}
    changes |= {key: value for key, value in _CLEARED.items() if key in old and key not in new}
    return changes or None


def diff_chat_summary(before: JsonObject, after: JsonObject) -> JsonObject | None:
    """The `changes` of `session/chatUpdated` between two states of a chat; None when its summary is the same."""
    return changed_fields(chat_summary(before), chat_summary(after))


__all__ = ["aggregate", "annotations_summary", "changed_fields", "chat_summary", "diff_chat_summary"]
