"""Computes what a new session begins with: its directories, what a fork takes over, and the progress of its creation.
Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from ahpkit.dialects.generations import FORK, SELECTION, selection_of, unmarked
from ahpkit.host.agent import Agent
from ahpkit.host.limits import MAX_DIRECTORIES
from ahpkit.host.states import States
from ahpkit.host.turns.new_state import turns_until
from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.errors import InvalidParams, NotFound, SessionNotFound
from ahpkit.protocol.session.commands import CreateSessionParams
from ahpkit.protocol.session.state import SessionState

Source = tuple[SessionState, ChatState, list[Turn]]
"""What a fork continues: the states of a session and of its chat, and the turns that it shows."""


class Step(TypedDict):
    """How far the creation of a session is."""

    progress: int
    total: int
    message: str


Report = Callable[[Step], None]


class Fork(TypedDict):
    """The session and the turn that a new session continues."""

    session: str
    turnId: str


class Progress:
    """Reports the progress of creating a session: never less than before, and nothing after the end."""

    def __init__(self, report: Report | None, *, total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0

    def step(self, message: str) -> None:
        """Report that another step begins."""
        self._tell(self._done, message)
        self._done = min(self._done + 1, self._total - 1)

    def end(self, message: str) -> None:
        self._tell(self._total, message)
        self._report = None

    def _tell(self, done: int, message: str) -> None:
        if self._report is not None:
            self._report({"progress": done, "total": self._total, "message": message})


def fork_source(fork: Fork, states: States) -> Source:
    """The session, the chat and the turns that a new session continues; raises when they are not there."""
    session = states.session(fork["session"])
    if session is None:
        raise SessionNotFound(f"there is no session {fork['session']} to fork")
    for summary in session["chats"]:
        chat = states.chat(summary["resource"])
        turns = turns_until(chat, fork["turnId"]) if chat else None
        if chat is not None and turns is not None:
            return session, chat, turns
    raise NotFound(f"fork.turnId: the session has no finished turn {fork['turnId']!r}")


def directories_of_new(params: CreateSessionParams, agent: Agent) -> list[str]:
    """The directories of a new session; only the first of those given, if its agent can work in only one."""
    given = list(dict.fromkeys(params.get("workingDirectories") or ()))
    if len(given) > MAX_DIRECTORIES:
        raise InvalidParams(f"workingDirectories: a session may have {MAX_DIRECTORIES}, not {len(given)}")
    return given if agent.directories is not None else given[:1]


def fork_of(params: CreateSessionParams) -> Fork | None:
    """The session and turn that a new session continues. Clients before 0.9 can ask for it."""
    meta = params.get("_meta") or {}
    return meta.get(FORK)


def taken_over(params: CreateSessionParams, source: SessionState, provider: str) -> CreateSessionParams:
    """What a fork is created with: the source's directories, and, with the same agent, its choices and settings.

    What the client says explicitly has priority.
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


__all__ = ["Fork", "Progress", "Report", "Source", "Step", "directories_of_new", "fork_of", "fork_source", "taken_over"]
