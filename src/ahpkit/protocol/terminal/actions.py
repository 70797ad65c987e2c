"""Actions on `ahp-terminal:/<id>`, each with its constructor. The registry says which of them a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI
from ahpkit.protocol.terminal.state import TerminalClaim


class TerminalDataAction(TypedDict):
    """Output, escape sequences included."""

    type: Literal["terminal/data"]
    data: str


def terminal_data(*, data: str) -> TerminalDataAction:
    """Output, escape sequences included."""
    return {"type": "terminal/data", "data": data}


class TerminalInputAction(TypedDict):
    """Keys for the process."""

    type: Literal["terminal/input"]
    data: str


def terminal_input(*, data: str) -> TerminalInputAction:
    """Keys for the process."""
    return {"type": "terminal/input", "data": data}


class TerminalResizedAction(TypedDict):
    """The terminal has another size."""

    type: Literal["terminal/resized"]
    cols: int
    rows: int


def terminal_resized(*, cols: int, rows: int) -> TerminalResizedAction:
    """The terminal has another size."""
    return {"type": "terminal/resized", "cols": cols, "rows": rows}


class TerminalClaimedAction(TypedDict):
    """Somebody else has the terminal."""

    type: Literal["terminal/claimed"]
    claim: TerminalClaim


def terminal_claimed(*, claim: TerminalClaim) -> TerminalClaimedAction:
    """Somebody else has the terminal."""
    return {"type": "terminal/claimed", "claim": claim}


class TerminalTitleChangedAction(TypedDict):
    """The terminal has a new title."""

    type: Literal["terminal/titleChanged"]
    title: str


def terminal_title_changed(*, title: str) -> TerminalTitleChangedAction:
    """The terminal has a new title."""
    return {"type": "terminal/titleChanged", "title": title}


class TerminalCwdChangedAction(TypedDict):
    """The process works in another directory."""

    type: Literal["terminal/cwdChanged"]
    cwd: URI


def terminal_cwd_changed(*, cwd: URI) -> TerminalCwdChangedAction:
    """The process works in another directory."""
    return {"type": "terminal/cwdChanged", "cwd": cwd}


class TerminalExitedAction(TypedDict):
    """The process ended."""

    type: Literal["terminal/exited"]
    exitCode: NotRequired[int]


def terminal_exited(*, exit_code: int | None = None) -> TerminalExitedAction:
    """The process ended."""
    action: TerminalExitedAction = {"type": "terminal/exited"}
    if exit_code is not None:
        action["exitCode"] = exit_code
    return action


class TerminalClearedAction(TypedDict):
    """The output so far is gone."""

    type: Literal["terminal/cleared"]


def terminal_cleared() -> TerminalClearedAction:
    """The output so far is gone."""
    return {"type": "terminal/cleared"}


class TerminalCommandDetectionAvailableAction(TypedDict):
    """From now on commands are told apart."""

    type: Literal["terminal/commandDetectionAvailable"]


def terminal_command_detection_available() -> TerminalCommandDetectionAvailableAction:
    """From now on commands are told apart."""
    return {"type": "terminal/commandDetectionAvailable"}


class TerminalCommandExecutedAction(TypedDict):
    """A command begins."""

    type: Literal["terminal/commandExecuted"]
    commandId: str
    commandLine: str
    timestamp: int | float


def terminal_command_executed(
    *, command_id: str, command_line: str, timestamp: int | float
) -> TerminalCommandExecutedAction:
    """A command begins."""
    return {
        "type": "terminal/commandExecuted",
        "commandId": command_id,
        "commandLine": command_line,
        "timestamp": timestamp,
    }


class TerminalCommandFinishedAction(TypedDict):
    """A command ended."""

    type: Literal["terminal/commandFinished"]
    commandId: str
    exitCode: NotRequired[int]
    durationMs: NotRequired[int | float]


def terminal_command_finished(
    *, command_id: str, exit_code: int | None = None, duration_ms: int | float | None = None
) -> TerminalCommandFinishedAction:
    """A command ended."""
    action: TerminalCommandFinishedAction = {"type": "terminal/commandFinished", "commandId": command_id}
    if exit_code is not None:
        action["exitCode"] = exit_code
    if duration_ms is not None:
        action["durationMs"] = duration_ms
    return action


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
    "terminal_claimed",
    "terminal_cleared",
    "terminal_command_detection_available",
    "terminal_command_executed",
    "terminal_command_finished",
    "terminal_cwd_changed",
    "terminal_data",
    "terminal_exited",
    "terminal_input",
    "terminal_resized",
    "terminal_title_changed",
]
