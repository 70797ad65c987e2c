"""Terminals of 0.4.0: their state, actions, commands and reducer. Only the exit of a process differs from 1.0.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import URI, BaseParams, JsonObject
from ahpkit.protocol.common.reducing import Handler, apply, put
from ahpkit.protocol.terminal import HANDLERS as CURRENT
from ahpkit.protocol.terminal import (
    TerminalClaimKind,
    TerminalClearedAction,
    TerminalClientClaim,
    TerminalCommandDetectionAvailableAction,
    TerminalCommandExecutedAction,
    TerminalCommandFinishedAction,
    TerminalCommandPart,
    TerminalContentPart,
    TerminalCwdChangedAction,
    TerminalDataAction,
    TerminalExitedAction,
    TerminalInputAction,
    TerminalResizedAction,
    TerminalTitleChangedAction,
    TerminalUnclassifiedPart,
    settled,
)


class TerminalSessionClaim(TypedDict):
    """A session holds the terminal, perhaps for one tool call."""

    kind: Literal["session"]
    session: URI
    turnId: NotRequired[str]
    toolCallId: NotRequired[str]


TerminalClaim = TerminalClientClaim | TerminalSessionClaim


class TerminalInfo(TypedDict):
    """A terminal in the host's list."""

    resource: URI
    title: str
    claim: TerminalClaim
    exitCode: NotRequired[int]


class TerminalState(TypedDict):
    """State of `ahp-terminal:/<id>`."""

    title: str
    cwd: NotRequired[URI]
    cols: NotRequired[int]
    rows: NotRequired[int]
    content: list[TerminalContentPart]
    exitCode: NotRequired[int]
    claim: TerminalClaim
    supportsCommandDetection: NotRequired[bool]


class TerminalClaimedAction(TypedDict):
    """The terminal has a new holder."""

    type: Literal["terminal/claimed"]
    claim: TerminalClaim


TerminalAction = (
    TerminalDataAction
    | TerminalInputAction
    | TerminalResizedAction
    | TerminalClaimedAction
    | TerminalTitleChangedAction
    | TerminalCwdChangedAction
    | TerminalExitedAction
    | TerminalClearedAction
    | TerminalCommandDetectionAvailableAction
    | TerminalCommandExecutedAction
    | TerminalCommandFinishedAction
)


class CreateTerminalParams(BaseParams):
    """`createTerminal`: `channel` is the URI that the client chooses. Answered with null."""

    claim: TerminalClaim
    name: NotRequired[str]
    cwd: NotRequired[URI]
    cols: NotRequired[int]
    rows: NotRequired[int]


class DisposeTerminalParams(BaseParams):
    """`disposeTerminal`. Answered with null."""


def terminal_reducer(state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The terminal after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _exited(state: JsonObject, action: JsonObject) -> JsonObject:
    """0.4.0 has the exit code at the top, and no life cycle."""
    return put({**state, "content": settled(state["content"])}, "exitCode", action.get("exitCode"))


HANDLERS: Final[Mapping[str, Handler]] = {**CURRENT, "terminal/exited": _exited}


__all__ = [
    "HANDLERS",
    "CreateTerminalParams",
    "DisposeTerminalParams",
    "TerminalAction",
    "TerminalClaim",
    "TerminalClaimKind",
    "TerminalClaimedAction",
    "TerminalClearedAction",
    "TerminalClientClaim",
    "TerminalCommandDetectionAvailableAction",
    "TerminalCommandExecutedAction",
    "TerminalCommandFinishedAction",
    "TerminalCommandPart",
    "TerminalContentPart",
    "TerminalCwdChangedAction",
    "TerminalDataAction",
    "TerminalExitedAction",
    "TerminalInfo",
    "TerminalInputAction",
    "TerminalResizedAction",
    "TerminalSessionClaim",
    "TerminalState",
    "TerminalTitleChangedAction",
    "TerminalUnclassifiedPart",
    "terminal_reducer",
]
