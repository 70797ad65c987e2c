"""Actions on `ahp-terminal:/<id>`. `ahpkit.protocol.registry` says which of them a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI
from ahpkit.protocol.terminal.state import TerminalClaim


class TerminalDataAction(TypedDict):
    """Output, escape sequences included."""

    type: Literal["terminal/data"]
    data: str


class TerminalInputAction(TypedDict):
    """Keys for the process."""

    type: Literal["terminal/input"]
    data: str


class TerminalResizedAction(TypedDict):
    """The terminal has another size."""

    type: Literal["terminal/resized"]
    cols: int
    rows: int


class TerminalClaimedAction(TypedDict):
    """Somebody else has the terminal."""

    type: Literal["terminal/claimed"]
    claim: TerminalClaim


class TerminalTitleChangedAction(TypedDict):
    """The terminal has a new title."""

    type: Literal["terminal/titleChanged"]
    title: str


class TerminalCwdChangedAction(TypedDict):
    """The process works in another directory."""

    type: Literal["terminal/cwdChanged"]
    cwd: URI


class TerminalExitedAction(TypedDict):
    """The process ended."""

    type: Literal["terminal/exited"]
    exitCode: NotRequired[int]


class TerminalClearedAction(TypedDict):
    """The output so far is gone."""

    type: Literal["terminal/cleared"]


class TerminalCommandDetectionAvailableAction(TypedDict):
    """From now on commands are told apart."""

    type: Literal["terminal/commandDetectionAvailable"]


class TerminalCommandExecutedAction(TypedDict):
    """A command begins."""

    type: Literal["terminal/commandExecuted"]
    commandId: str
    commandLine: str
    timestamp: int | float


class TerminalCommandFinishedAction(TypedDict):
    """A command ended."""

    type: Literal["terminal/commandFinished"]
    commandId: str
    exitCode: NotRequired[int]
    durationMs: NotRequired[int | float]


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


__all__ = [
    "TerminalAction",
    "TerminalClaimedAction",
    "TerminalClearedAction",
    "TerminalCommandDetectionAvailableAction",
    "TerminalCommandExecutedAction",
    "TerminalCommandFinishedAction",
    "TerminalCwdChangedAction",
    "TerminalDataAction",
    "TerminalExitedAction",
    "TerminalInputAction",
    "TerminalResizedAction",
    "TerminalTitleChangedAction",
]
