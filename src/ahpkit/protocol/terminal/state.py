from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI

TerminalClaimKind = Literal["client", "session"]


class TerminalInfo(TypedDict):
    resource: URI
    title: str
    claim: TerminalClaim
    exitCode: NotRequired[int | float]


class TerminalClientClaim(TypedDict):
    kind: Literal["client"]
    clientId: str


class TerminalSessionClaim(TypedDict):
    kind: Literal["session"]
    session: URI
    turnId: NotRequired[str]
    toolCallId: NotRequired[str]


class TerminalState(TypedDict):
    title: str
    cwd: NotRequired[URI]
    cols: NotRequired[int | float]
    rows: NotRequired[int | float]
    content: list[TerminalContentPart]
    exitCode: NotRequired[int | float]
    claim: TerminalClaim
    supportsCommandDetection: NotRequired[bool]


class TerminalUnclassifiedPart(TypedDict):
    type: Literal["unclassified"]
    value: str


class TerminalCommandPart(TypedDict):
    type: Literal["command"]
    commandId: str
    commandLine: str
    output: str
    timestamp: int | float
    isComplete: bool
    exitCode: NotRequired[int | float]
    durationMs: NotRequired[int | float]


TerminalClaim = TerminalClientClaim | TerminalSessionClaim


TerminalContentPart = TerminalUnclassifiedPart | TerminalCommandPart
