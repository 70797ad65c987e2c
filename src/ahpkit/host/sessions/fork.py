"""Forks sessions: finds the turns that a fork continues, and the settings that it takes over. Forks of chats are in
`chat_rules`. Pure."""

from __future__ import annotations

from typing import TypedDict

from ahpkit.dialects.generations import FORK, SELECTION, selection_of, unmarked
from ahpkit.host.states import States
from ahpkit.host.turns.new_state import turns_until
from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.errors import NotFound, SessionNotFound
from ahpkit.protocol.session.commands import CreateSessionParams
from ahpkit.protocol.session.state import SessionState

Source = tuple[SessionState, ChatState, list[Turn]]
"""The source of a fork: the states of a session and of its chat, and the turns that the fork shows."""


class Fork(TypedDict):
    """The session and the turn that a new session continues."""

    session: str
    turnId: str


def fork_source(fork: Fork, states: States) -> Source:
    """The session, the chat and the turns that a new session continues; raises if one of them does not exist."""
    session = states.session(fork["session"])
    if session is None:
        raise SessionNotFound(f"there is no session {fork['session']} to fork")
    for summary in session["chats"]:
        chat = states.chat(summary["resource"])
        turns = turns_until(chat, fork["turnId"]) if chat else None
        if chat is not None and turns is not None:
            return session, chat, turns
    raise NotFound(f"fork.turnId: the session has no finished turn {fork['turnId']!r}")


def fork_of(params: CreateSessionParams) -> Fork | None:
    """The session and turn that a new session continues. Clients before 0.9 can ask for it."""
    meta = params.get("_meta") or {}
    return meta.get(FORK)


def taken_over(params: CreateSessionParams, source: SessionState, provider: str) -> CreateSessionParams:
    """The parameters of a fork: the source's directories, and its choices and settings if the agent is the same.

    Parameters that the client gives have priority.
    """
    given = params.copy()
    if directories := params.get("workingDirectories") or source.get("workingDirectories"):
        given["workingDirectories"] = directories
    if source["provider"] == provider:
        values = source["config"]["values"] if "config" in source else {}
        given["config"] = {**values, **(params.get("config") or {})}
        chosen = {**selection_of({"_meta": unmarked(source.get("_meta") or {})}), **selection_of(params)}
        given["_meta"] = {**(params.get("_meta") or {}), SELECTION: chosen}
    return given


__all__ = ["Fork", "Source", "fork_of", "fork_source", "taken_over"]
