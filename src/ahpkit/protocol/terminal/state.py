"""State of a terminal."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI
from ahpkit.protocol.type_schemas import CLOSED

TerminalClaimKind = Literal["client", "session"]

TerminalLifecycleStatus = Literal["running", "exited"]


class TerminalClientClaim(TypedDict):
    """A client has the terminal."""

    kind: Literal["client"]
    clientId: str


class TerminalSessionClaim(TypedDict):
    """A chat of a session has the terminal, perhaps for one tool call."""

    kind: Literal["session"]
    session: URI
    chat: URI
    turnId: NotRequired[str]
    toolCallId: NotRequired[str]


TerminalClaim = Annotated[TerminalClientClaim | TerminalSessionClaim, CLOSED]


class TerminalRunningLifecycleState(TypedDict):
    """The process runs."""

    status: Literal["running"]


class TerminalExitedLifecycleState(TypedDict):
    """The process ended; without `exitCode` it is not known how."""

    status: Literal["exited"]
    exitCode: NotRequired[int]


TerminalLifecycleState = Annotated[TerminalRunningLifecycleState | TerminalExitedLifecycleState, CLOSED]


class TerminalInfo(TypedDict):
    """A terminal in the host's list."""

    resource: URI
    title: str
    claim: TerminalClaim
    lifecycle: TerminalLifecycleState


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
    """State of `ahp-terminal:/<id>`. With `isPty` false the output is plain text."""

    title: str
    cwd: NotRequired[URI]
    cols: NotRequired[int]
    rows: NotRequired[int]
    content: list[TerminalContentPart]
    lifecycle: TerminalLifecycleState
    claim: TerminalClaim
    supportsCommandDetection: NotRequired[bool]
    isPty: NotRequired[bool]


__all__ = [
    "TerminalClaim",
    "TerminalClaimKind",
    "TerminalClientClaim",
    "TerminalCommandPart",
    "TerminalContentPart",
    "TerminalExitedLifecycleState",
    "TerminalInfo",
    "TerminalLifecycleState",
    "TerminalLifecycleStatus",
    "TerminalRunningLifecycleState",
    "TerminalSessionClaim",
    "TerminalState",
    "TerminalUnclassifiedPart",
]
