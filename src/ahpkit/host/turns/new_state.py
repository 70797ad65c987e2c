"""Builds the first states of sessions and chats, and their titles, from commands or from what agents store. Pure."""

from __future__ import annotations

import re
from typing import cast

from ahpkit.dialects.generations import SELECTION, Selection, selection_of
from ahpkit.host.agent import AgentSession
from ahpkit.protocol.chat.state import ChatInteractivity, ChatOrigin, ChatState, ChatSummary, Turn
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import OUR_PREFIXES
from ahpkit.protocol.session.state import ProjectInfo, SessionConfigState, SessionState, SessionStatus
from ahpkit.protocol.session.summary import chat_summary
from ahpkit.wire.trace_context import TRACE_KEYS

DEFAULT_TITLE = "New session"

NEW_CHAT = "New chat"

SIDE_CHAT = "Side chat"

MAX_TITLE = 200
"""Characters of a title that an agent gives: every list of sessions shows it."""

OPENING_PREFIX = "opening/"
"""Prefix of the durable value with the slash command that a chat began with."""

_FROM_MESSAGE = 60
"""Characters of a title that is only a guess."""

_CONTROL = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")


_COMMAND = re.compile(r"/[\w:.-]+(\s|$)")
"""A slash command, with or without arguments. A path has a further slash."""


def title_from(message: str) -> str | None:
    """A session's title until its agent or a person gives one: the first line of a message, shortened.

    None for a slash command, because it says nothing about the session.
    """
    line = message.strip().partition("\n")[0]
    return None if _COMMAND.match(line) else _short(line, _FROM_MESSAGE)


def opening(message: str) -> str:
    """The slash command that a session began with. It is not a title, but people can distinguish sessions without a
    title by it."""
    return _short(message.strip().partition("\n")[0], _FROM_MESSAGE)


def agent_title(title: str) -> str:
    """The title that an agent gives a session, in one line without control characters."""
    return _short(title, MAX_TITLE)


def _short(text: str, limit: int) -> str:
    line = " ".join(text[: 10 * limit].translate(_CONTROL).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


NO_CONFIG: SessionConfigState = {"schema": {"type": "object", "properties": {}}, "values": {}}
"""Nothing to configure."""


def present(**fields: object) -> JsonObject:
    """The fields that have a value. A field without a value must have no key."""
    return {key: value for key, value in fields.items() if value is not None}


def new_session(
    *,
    provider: str,
    directories: list[str] | None,
    project: ProjectInfo | None,
    config: SessionConfigState,
    meta: JsonObject | None = None,
) -> SessionState:
    """A session that is being created: no chat yet. `meta` is the `_meta` of the command."""
    state: SessionState = {
        "provider": provider,
        "title": DEFAULT_TITLE,
        "status": int(SessionStatus.Idle),
        "lifecycle": "creating",
        "activeClients": [],
        "chats": [],
        "config": config,
    }
    if directories is not None:
        state["workingDirectories"] = directories
    if project is not None:
        state["project"] = project
    if given := _given_meta(meta or {}):
        state["_meta"] = given
    return state


def _given_meta(meta: JsonObject) -> JsonObject:
    """The `_meta` that a client gave for a new session, without the trace context and without the host's own keys."""
    given = {key: value for key, value in meta.items() if key not in TRACE_KEYS and not key.startswith(OUR_PREFIXES)}
    return given | present(**{SELECTION: selection_of({"_meta": meta}) or None})


def kept_session(provider: str, kept: AgentSession) -> SessionState:
    """The first state of a session that is made of an agent's conversation."""
    directory = kept.working_directory
    state = new_session(
        provider=provider,
        directories=[directory.as_uri()],
        project={"uri": directory.as_uri(), "displayName": directory.name},
        config=NO_CONFIG,
    )
    return {**state, "title": agent_title(kept.title or "") or DEFAULT_TITLE}


def new_chat(
    uri: str,
    *,
    title: str,
    now: int,
    origin: ChatOrigin | None = None,
    selection: Selection | None = None,
    interactivity: ChatInteractivity | None = None,
    turns: list[Turn] | None = None,
    directories: list[str] | None = None,
    movable: bool | None = None,
) -> ChatState:
    """A chat without an active turn."""
    chat: ChatState = {
        "resource": uri,
        "title": title,
        "status": int(SessionStatus.Idle),
        "modifiedAt": iso_time(now),
        "origin": origin or {"kind": "user"},
        "turns": turns or [],
    }
    if interactivity is not None:
        chat["interactivity"] = interactivity
    if directories is not None:
        chat["workingDirectories"] = directories
    if movable is not None:
        chat["movable"] = movable
    if selection:
        chat["_meta"] = {SELECTION: selection}
    return chat


def is_named(chat: ChatState) -> bool:
    """Whether a chat began with a title. A fork begins with the title of its source."""
    origin = chat.get("origin")
    return chat["title"] not in _PLACEHOLDERS and (origin is None or origin["kind"] != "fork")


def moved_title(chat_title: str) -> str:
    """The title of a session that is made for a moved chat. If the chat has no title, the next message gives one."""
    return DEFAULT_TITLE if chat_title in _PLACEHOLDERS else chat_title


_PLACEHOLDERS = frozenset({DEFAULT_TITLE, NEW_CHAT, SIDE_CHAT})


def entry_of(uri: str, session: SessionState) -> ChatSummary | None:
    """The entry of a chat in its session."""
    return next((entry for entry in session["chats"] if entry["resource"] == uri), None)


_ONLY_LISTED = ("title", "changes")
"""Fields of a chat's entry that the chat's own state may lack."""


def chat_entry(chat: ChatState, listed: ChatSummary | None = None) -> ChatSummary:
    """A chat's entry in its session, with the model and agent that 0.4 clients chose for it.

    `listed` is the present entry: fields that only the entry has are kept.
    """
    summary = chat_summary(chat)
    selection = selection_of(chat)
    noted = {"_meta": {SELECTION: selection}} if selection else {}
    kept = {key: value for key, value in (listed or {}).items() if key in _ONLY_LISTED}
    return cast("ChatSummary", {**summary, **noted, **kept})


def turns_until(chat: ChatState, turn_id: str) -> list[Turn] | None:
    """The finished turns up to and including one; None when the chat has no such turn."""
    turns = chat["turns"]
    newest_first = range(len(turns) - 1, -1, -1)  # Most turns are found near the end.
    found = next((at for at in newest_first if turns[at]["id"] == turn_id), None)
    return None if found is None else turns[: found + 1]


__all__ = [
    "DEFAULT_TITLE",
    "MAX_TITLE",
    "NEW_CHAT",
    "NO_CONFIG",
    "OPENING_PREFIX",
    "SIDE_CHAT",
    "agent_title",
    "chat_entry",
    "entry_of",
    "is_named",
    "kept_session",
    "moved_title",
    "new_chat",
    "new_session",
    "opening",
    "present",
    "title_from",
    "turns_until",
]
