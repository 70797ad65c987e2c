"""Terminals of 0.4.0: their state, actions, commands and reducer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common import URI, BaseParams, JsonObject
from ahpkit.protocol.common.reducing import Handler, amend, apply, assign, index_of, put, replaced, unchanged
from ahpkit.protocol.rope import Rope

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


def _data(state: JsonObject, action: JsonObject) -> JsonObject:
    """Output belongs to the command that runs, else to the unclassified part at the end, else to a new one."""
    data: str = action["data"]
    content: list[JsonObject] = state["content"]
    field = _growing_field(content[-1]) if content else None
    if not data:
        return state
    if field is None:
        return {**state, "content": [*content, {"type": "unclassified", "value": Rope.of(data)}]}
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
    return {**state, "content": [*_settled(state["content"]), command], "supportsCommandDetection": True}


def _command_finished(state: JsonObject, action: JsonObject) -> JsonObject:
    content: list[JsonObject] = state["content"]
    index = index_of(content, "commandId", action["commandId"])
    if index < 0:
        return state
    ended = {"isComplete": True, "exitCode": action.get("exitCode"), "durationMs": action.get("durationMs")}
    return {**state, "content": replaced(content, index, amend(_settled_part(content[index]), ended))}


def _exited(state: JsonObject, action: JsonObject) -> JsonObject:
    return put({**state, "content": _settled(state["content"])}, "exitCode", action.get("exitCode"))


def _cleared(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "content": []} if state["content"] else state


def _resized(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "cols": action["cols"], "rows": action["rows"]}


def _settled(content: list[JsonObject]) -> list[JsonObject]:
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
    "TerminalInfo",
    "TerminalInputAction",
    "TerminalResizedAction",
    "TerminalSessionClaim",
    "TerminalState",
    "TerminalTitleChangedAction",
    "TerminalUnclassifiedPart",
    "terminal_reducer",
]
