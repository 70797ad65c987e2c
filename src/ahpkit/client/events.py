"""Typed events of a turn, for users of `Chat.send`.

The wire's own objects (a tool call, an input request, a turn) are passed on as they are: typed dicts, the wire's keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from ahpkit.protocol.chat.state import ChatInputRequest, Message, ResponsePart, ToolCallState, Turn, UsageInfo
from ahpkit.protocol.common.state import ErrorInfo, StringOrMarkdown


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The host accepted the message."""

    turn_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of the answer. An answer has several parts, shown in order; `part_id` says which one grew."""

    part_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """New text of the agent's reasoning."""

    part_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of the host or the agent to the user that is not part of the answer."""

    content: StringOrMarkdown


@dataclass(frozen=True, slots=True)
class PartAdded:
    """A part of another kind, such as a reference to content."""

    part: ResponsePart


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model begins a tool call; its input may still be streaming."""

    call: ToolCallState


@dataclass(frozen=True, slots=True)
class ToolCallInputDelta:
    """The model wrote more of a call's input."""

    tool_call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class AuthenticationNeeded:
    """A tool call waits for a token for its MCP server: `Session.mcp_server(event.server_id).log_in()`."""

    call: ToolCallState

    @property
    def server_id(self) -> str:
        """The server's customization id."""
        contributor = cast("Mapping[str, str]", dict(self.call).get("contributor") or {})
        return contributor.get("customizationId", "")


@dataclass(frozen=True, slots=True)
class ConfirmationNeeded:
    """A tool call waits for a person: before it runs, or before its result is used."""

    call: ToolCallState
    of: Literal["call", "result"] = "call"


@dataclass(frozen=True, slots=True)
class ToolCallRunning:
    """The tool runs."""

    call: ToolCallState


@dataclass(frozen=True, slots=True)
class ToolCallContent:
    """A running tool shows new content; it replaces what it showed before."""

    call: ToolCallState


@dataclass(frozen=True, slots=True)
class ToolCallCompleted:
    """The tool is done; `success` says whether it worked."""

    call: ToolCallState


@dataclass(frozen=True, slots=True)
class ToolCallCancelled:
    """The call was denied or skipped."""

    call: ToolCallState


@dataclass(frozen=True, slots=True)
class InputNeeded:
    """The agent asks the user something."""

    request: ChatInputRequest


@dataclass(frozen=True, slots=True)
class InputResolved:
    """A question was answered, declined or dropped, by any client."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and the cost of the turn so far."""

    usage: UsageInfo


@dataclass(frozen=True, slots=True)
class TurnCompleted:
    """The answer is complete."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class TurnCancelled:
    """The turn was cancelled. `turn` is None when the turn was cut from the history."""

    turn: Turn | None


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn ended with an error. If it is `resumable`, `chat.resume()` continues it."""

    error: ErrorInfo
    turn: Turn
    resumable: bool = False


TurnEvent = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | Notice
    | PartAdded
    | ToolCallStarted
    | ToolCallInputDelta
    | AuthenticationNeeded
    | ConfirmationNeeded
    | ToolCallRunning
    | ToolCallContent
    | ToolCallCompleted
    | ToolCallCancelled
    | InputNeeded
    | InputResolved
    | Usage
    | TurnCompleted
    | TurnCancelled
    | TurnFailed
)

TURN_OVER = (TurnCompleted, TurnCancelled, TurnFailed)
"""The events that end a turn."""


__all__ = [
    "TURN_OVER",
    "AuthenticationNeeded",
    "ConfirmationNeeded",
    "InputNeeded",
    "InputResolved",
    "Notice",
    "PartAdded",
    "ReasoningDelta",
    "TextDelta",
    "ToolCallCancelled",
    "ToolCallCompleted",
    "ToolCallContent",
    "ToolCallInputDelta",
    "ToolCallRunning",
    "ToolCallStarted",
    "TurnCancelled",
    "TurnCompleted",
    "TurnEvent",
    "TurnFailed",
    "TurnStarted",
    "Usage",
]
