"""Terminals (`ahp-terminal:/<id>`): state, actions, commands, reducer.

The reducer keeps output in typed parts. The last one grows as a rope; a part that will not grow any more holds a plain
string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.reducing import Handler, amend, apply, assign, put, replaced, unchanged
from ahpkit.protocol.common.state import URI, BaseParams, JsonObject
from ahpkit.protocol.rope import Rope
from ahpkit.protocol.type_schemas import CLOSED

TerminalClaimKind = Literal["client", "session"]

TerminalLifecycleStatus = Literal["running", "exited"]


class TerminalClientClaim(TypedDict):
    """A client holds the terminal."""

    kind: Literal["client"]
    clientId: str


class TerminalSessionClaim(TypedDict):
    """A chat of a session holds the terminal, perhaps for one tool call."""

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
    """The process ended. Without `exitCode` it is not known how."""

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
    """Output that belongs to no known command."""

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


class TerminalDataAction(TypedDict):
    """Output, escape sequences included."""

    type: Literal["terminal/data"]
    data: str


def terminal_data(*, data: str) -> TerminalDataAction:
    """Output, escape sequences included."""
    return {"type": "terminal/data", "data": data}


class TerminalInputAction(TypedDict):
    """Input for the process."""

    type: Literal["terminal/input"]
    data: str


def terminal_input(*, data: str) -> TerminalInputAction:
    """Input for the process."""
    return {"type": "terminal/input", "data": data}


class TerminalResizedAction(TypedDict):
    """The size of the terminal changed."""

    type: Literal["terminal/resized"]
    cols: int
    rows: int


def terminal_resized(*, cols: int, rows: int) -> TerminalResizedAction:
    """The size of the terminal changed."""
    return {"type": "terminal/resized", "cols": cols, "rows": rows}


class TerminalClaimedAction(TypedDict):
    """The terminal has a new holder."""

    type: Literal["terminal/claimed"]
    claim: TerminalClaim


def terminal_claimed(*, claim: TerminalClaim) -> TerminalClaimedAction:
    """The terminal has a new holder."""
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
    """From now on the terminal reports where each command begins and ends."""

    type: Literal["terminal/commandDetectionAvailable"]


def terminal_command_detection_available() -> TerminalCommandDetectionAvailableAction:
    """From now on the terminal reports where each command begins and ends."""
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


class CreateTerminalParams(BaseParams):
    """`createTerminal`: `channel` is the URI that the client chooses. Answered with null."""

    claim: TerminalClaim
    name: NotRequired[str]
    cwd: NotRequired[URI]
    cols: NotRequired[int]
    rows: NotRequired[int]


class DisposeTerminalParams(BaseParams):
    """`disposeTerminal`. Answered with null."""


def terminal_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The terminal after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _data(state: JsonObject, action: JsonObject) -> JsonObject:
    """Add output to the command that runs, else to the unclassified part at the end, else to a new part."""
    data: str = action["data"]
    content: list[JsonObject] = state["content"]
    field = _growing_field(content[-1]) if content else None
    if field is None:
        return {**state, "content": [*content, {"type": "unclassified", "value": Rope.of(data)}]}
    if not data:
        return state
    last = content[-1]
    return {**state, "content": replaced(content, -1, {**last, field: Rope.of(last[field]).add(data)})}


def _growing_field(part: JsonObject) -> str | None:
    """The field of `part` that takes further output; None when the part is closed or of an unknown type."""
    if part["type"] == "unclassified":
        return "value"
    return "output" if part["type"] == "command" and not part["isComplete"] else None


def _command_executed(state: JsonObject, action: JsonObject) -> JsonObject:
    command = {
        "type": "command",
        "commandId": action["commandId"],
        "commandLine": action["commandLine"],
        "output": "",
        "timestamp": action["timestamp"],
        "isComplete": False,
    }
    return {**state, "content": [*settled(state["content"]), command], "supportsCommandDetection": True}


def _command_finished(state: JsonObject, action: JsonObject) -> JsonObject:
    """The command is over. All parts with its id end, because a shell may use an id twice."""
    ended = {"isComplete": True, "exitCode": action.get("exitCode"), "durationMs": action.get("durationMs")}

    def after(part: JsonObject) -> JsonObject:
        is_it = part["type"] == "command" and part["commandId"] == action["commandId"]
        return amend(_settled_part(part), ended) if is_it else part

    content: list[JsonObject] = [after(part) for part in state["content"]]
    return state if content == state["content"] else {**state, "content": content}


def _exited(state: JsonObject, action: JsonObject) -> JsonObject:
    lifecycle = put({"status": "exited"}, "exitCode", action.get("exitCode"))
    return {**state, "content": settled(state["content"]), "lifecycle": lifecycle}


def _cleared(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "content": []} if state["content"] else state


def _resized(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "cols": action["cols"], "rows": action["rows"]}


def settled(content: list[JsonObject]) -> list[JsonObject]:
    """`content` with its last part, the only one that grows, as a plain string."""
    return [*content[:-1], _settled_part(content[-1])] if content else content


def _settled_part(part: JsonObject) -> JsonObject:
    return {key: str(value) if isinstance(value, Rope) else value for key, value in part.items()}


HANDLERS: Final[Mapping[str, Handler]] = {
    "terminal/data": _data,
    "terminal/input": unchanged,  # goes to the process; what it prints comes back as terminal/data
    "terminal/resized": _resized,
    "terminal/claimed": assign("claim"),
    "terminal/titleChanged": assign("title"),
    "terminal/cwdChanged": assign("cwd"),
    "terminal/exited": _exited,
    "terminal/cleared": _cleared,
    "terminal/commandDetectionAvailable": lambda state, action: {**state, "supportsCommandDetection": True},
    "terminal/commandExecuted": _command_executed,
    "terminal/commandFinished": _command_finished,
}


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
    "TerminalExitedLifecycleState",
    "TerminalInfo",
    "TerminalInputAction",
    "TerminalLifecycleState",
    "TerminalLifecycleStatus",
    "TerminalResizedAction",
    "TerminalRunningLifecycleState",
    "TerminalSessionClaim",
    "TerminalState",
    "TerminalTitleChangedAction",
    "TerminalUnclassifiedPart",
    "settled",
    "terminal_claimed",
    "terminal_cleared",
    "terminal_command_detection_available",
    "terminal_command_executed",
    "terminal_command_finished",
    "terminal_cwd_changed",
    "terminal_data",
    "terminal_exited",
    "terminal_input",
    "terminal_reducer",
    "terminal_resized",
    "terminal_title_changed",
]
