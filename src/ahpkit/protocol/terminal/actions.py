from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI
from ahpkit.protocol.terminal.state import TerminalClaim


class TerminalDataAction(TypedDict):
    type: Literal["terminal/data"]
    data: str


class TerminalInputAction(TypedDict):
    type: Literal["terminal/input"]
    data: str


class TerminalResizedAction(TypedDict):
    type: Literal["terminal/resized"]
    cols: int | float
    rows: int | float


class TerminalClaimedAction(TypedDict):
    type: Literal["terminal/claimed"]
    claim: TerminalClaim


class TerminalTitleChangedAction(TypedDict):
    type: Literal["terminal/titleChanged"]
    title: str


class TerminalCwdChangedAction(TypedDict):
    type: Literal["terminal/cwdChanged"]
    cwd: URI


class TerminalExitedAction(TypedDict):
    type: Literal["terminal/exited"]
    exitCode: NotRequired[int | float]


class TerminalClearedAction(TypedDict):
    type: Literal["terminal/cleared"]


class TerminalCommandDetectionAvailableAction(TypedDict):
    type: Literal["terminal/commandDetectionAvailable"]


class TerminalCommandExecutedAction(TypedDict):
    type: Literal["terminal/commandExecuted"]
    commandId: str
    commandLine: str
    timestamp: int | float


class TerminalCommandFinishedAction(TypedDict):
    type: Literal["terminal/commandFinished"]
    commandId: str
    exitCode: NotRequired[int | float]
    durationMs: NotRequired[int | float]
