"""Makes actions on terminals: one function for each, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.common.state import URI
from ahpkit.protocol.terminal.actions import (
    TerminalClaimedAction,
    TerminalClearedAction,
    TerminalCommandDetectionAvailableAction,
    TerminalCommandExecutedAction,
    TerminalCommandFinishedAction,
    TerminalCwdChangedAction,
    TerminalDataAction,
    TerminalExitedAction,
    TerminalInputAction,
    TerminalResizedAction,
    TerminalTitleChangedAction,
)
from ahpkit.protocol.terminal.state import TerminalClaim

__all__ = [
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


def terminal_data(*, data: str) -> TerminalDataAction:
    """Output, escape sequences included."""
    return {"type": "terminal/data", "data": data}


def terminal_input(*, data: str) -> TerminalInputAction:
    """Keys for the process."""
    return {"type": "terminal/input", "data": data}


def terminal_resized(*, cols: int, rows: int) -> TerminalResizedAction:
    """The terminal has another size."""
    return {"type": "terminal/resized", "cols": cols, "rows": rows}


def terminal_claimed(*, claim: TerminalClaim) -> TerminalClaimedAction:
    """Somebody else has the terminal."""
    return {"type": "terminal/claimed", "claim": claim}


def terminal_title_changed(*, title: str) -> TerminalTitleChangedAction:
    """The terminal has a new title."""
    return {"type": "terminal/titleChanged", "title": title}


def terminal_cwd_changed(*, cwd: URI) -> TerminalCwdChangedAction:
    """The process works in another directory."""
    return {"type": "terminal/cwdChanged", "cwd": cwd}


def terminal_exited(*, exit_code: int | None = None) -> TerminalExitedAction:
    """The process ended."""
    action: TerminalExitedAction = {"type": "terminal/exited"}
    if exit_code is not None:
        action["exitCode"] = exit_code
    return action


def terminal_cleared() -> TerminalClearedAction:
    """The output so far is gone."""
    return {"type": "terminal/cleared"}


def terminal_command_detection_available() -> TerminalCommandDetectionAvailableAction:
    """From now on commands are told apart."""
    return {"type": "terminal/commandDetectionAvailable"}


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
