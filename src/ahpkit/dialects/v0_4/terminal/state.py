"""State of a terminal. Knows no process."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.state import URI

TerminalClaimKind = Literal["client", "session"]


class TerminalClientClaim(TypedDict):
    """A client has the terminal."""

    kind: Literal["client"]
    clientId: str


class TerminalSessionClaim(TypedDict):
    """A session has the terminal, perhaps for one tool call."""

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


class TerminalUnclassifiedPart(TypedDict):
    """Output of no known command."""

    type: Literal["unclassified"]
    value: str


class TerminalCommandPart(TypedDict):
    """A command and its output."""

    type: Literal["command"]
    commandId: str
    commandLine: str
    output: str
    timestamp: int | float
    isComplete: bool
    exitCode: NotRequired[int]
    durationMs: NotRequired[int | float]


TerminalContentPart = TerminalUnclassifiedPart | TerminalCommandPart


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


__all__ = [
    "TerminalClaim",
    "TerminalClaimKind",
    "TerminalClientClaim",
    "TerminalCommandPart",
    "TerminalContentPart",
    "TerminalInfo",
    "TerminalSessionClaim",
    "TerminalState",
    "TerminalUnclassifiedPart",
]
