"""Derives summaries: a session's from its chats, a chat's and the annotations' from their own states. Pure.

The session reference (SessionSummary) defines the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, cast

from ahpkit.protocol.annotations import AnnotationsSummary
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.common.status import ACTIVITY_MASK, ERROR, INPUT_NEEDED, with_activity
from ahpkit.protocol.meta_keys import CONFIG_META
from ahpkit.protocol.session.state import SessionSummary

_CHAT_FIELDS = (
    "resource",
    "title",
    "status",
    "activity",
    "modifiedAt",
    "origin",
    "interactivity",
    "workingDirectories",
    "changes",
    "movable",
)
"""What a chat's state and its entry in the session have in common."""

_SESSION_FIELDS = ("provider", "title", "status", "activity", "origin", "project", "workingDirectories", "annotations")
"""What a session's state and its entry in lists have in common."""

_LISTED_CHAT_FIELDS = ("resource", "title", "origin", "interactivity", "status", "changes")
"""The fields of a chat that a session's entry in lists shows."""


def session_summary(
    resource: str, session: Mapping[str, Any], *, created_at: str, modified_at: str, changes: JsonObject | None = None
) -> SessionSummary:
    """A session's entry in lists. `modified_at` is when the session itself changed last; its chats may be newer."""
    chats: list[JsonObject] = session["chats"]
    summary = {key: session[key] for key in _SESSION_FIELDS if key in session}
    summary |= {"resource": resource, "createdAt": created_at, "modifiedAt": _latest(modified_at, chats)}
    listed = named_chats(session)
    summary["chats"] = [{key: chat[key] for key in _LISTED_CHAT_FIELDS if key in chat} for chat in listed]
    if "defaultChat" in session:
        summary["defaultChat"] = session["defaultChat"]
    if changes is not None:
        summary["changes"] = changes
    return cast("SessionSummary", _derived(summary, session))


def current_session(session: JsonObject) -> JsonObject:
    """A session's state with its derived fields: status and activity from its chats, and the title of an only chat.

    No action carries these. Returns the state itself when nothing differs.
    """
    now = {**_derived(session, session), "chats": named_chats(session)}
    same = now["chats"] is session["chats"] and all(now.get(key) == session.get(key) for key in ("status", "activity"))
    return session if same else now


def activity_of(session: Mapping[str, Any]) -> str | None:
    """The activity of the chat that decides the session's status."""
    return _derived(session, session).get("activity")


def named_chats(session: Mapping[str, Any]) -> list[JsonObject]:
    """A session's chats. An only chat has the session's title; chats of sub-agents have their own."""
    chats: list[JsonObject] = session["chats"]
    only = only_chat(session)
    if only is None or only["title"] == session["title"]:
        return chats
    return [{**chat, "title": session["title"]} if chat is only else chat for chat in chats]


def only_chat(session: Mapping[str, Any]) -> JsonObject | None:
    """The only chat of a session; chats of sub-agents do not count."""
    chats: list[JsonObject] = session["chats"]
    own = list(islice((chat for chat in chats if not _is_of_tool(chat.get("origin"))), 2))
    return own[0] if len(own) == 1 else None


def _is_of_tool(origin: JsonObject | None) -> bool:
    return origin is not None and origin.get("kind") == "tool"


def _derived(shown: Mapping[str, Any], session: Mapping[str, Any]) -> JsonObject:
    """A state or summary of a session, with what follows from its chats."""
    chats: Sequence[JsonObject] = session["chats"]
    after = {key: value for key, value in shown.items() if key != "activity"}
    if session.get("lifecycle") in ("failed", "creationFailed"):
        return after | {"status": with_activity(shown["status"], ERROR)}
    if not chats:
        return after
    driving = _driving_chat(chats, session.get("defaultChat"))
    after["status"] = with_activity(shown["status"], _promoted(chats) or driving["status"] & ACTIVITY_MASK)
    return after | ({"activity": driving["activity"]} if driving.get("activity") else {})


def _promoted(chats: Sequence[JsonObject]) -> int:
    """Status bits that any chat passes on to its session: input needed, failed, or both."""
    raised = [flag for flag in (INPUT_NEEDED, ERROR) if any(chat["status"] & flag == flag for chat in chats)]
    return sum(raised)


def _latest(own: str, chats: Sequence[JsonObject]) -> str:
    return max([own, *(chat["modifiedAt"] for chat in chats)], key=moment)


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
    return chosen or max(chats, key=lambda chat: moment(chat["modifiedAt"]))


@lru_cache(maxsize=4096)
def moment(time: str) -> datetime:
    """Parse an ISO 8601 time. Cached, because it is called for every chat whenever one changes."""
    read = datetime.fromisoformat(time)
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def chat_summary(chat: Mapping[str, Any]) -> JsonObject:
    """A chat's entry in its session."""
    return {key: chat[key] for key in _CHAT_FIELDS if key in chat}


def annotations_summary(channel: str, state: Mapping[str, Any]) -> AnnotationsSummary:
    """The counts of an annotations channel."""
    annotations: Sequence[JsonObject] = state["annotations"]
    return {
        "resource": channel,
        "annotationCount": len(annotations),
        "entryCount": sum(map(len, map(itemgetter("entries"), annotations))),
    }


def changed_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> JsonObject:
    """The fields of `new` that differ from `old`, for a partial update.

    A partial update cannot say that a field is gone (`has_lost`); then the whole entry is sent.
    """
    return {key: value for key, value in new.items() if key not in old or old[key] != value}


def has_lost(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether an entry lost a field. Only a whole entry can say that."""
    return not old.keys() <= new.keys()


def settings_of(state: Mapping[str, Any]) -> JsonObject:
    """The schema of each setting that a channel has, by name: those of its configuration, and those reported later."""
    meta: JsonObject = state.get("_meta") or {}
    config: JsonObject = state.get("config") or {}
    later: JsonObject = meta.get(CONFIG_META) or {}
    own: JsonObject = config.get("schema", {}).get("properties", {})
    return {**own, **later.get("schema", {}).get("properties", {})}


__all__ = [
    "activity_of",
    "annotations_summary",
    "changed_fields",
    "chat_summary",
    "current_session",
    "has_lost",
    "moment",
    "named_chats",
    "only_chat",
    "session_summary",
    "settings_of",
]
