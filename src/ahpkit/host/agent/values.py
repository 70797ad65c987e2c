"""Values that the host and its agents exchange. The interface itself is in `ahpkit.host.agent`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from ahpkit.protocol.chat.state import (
    ChatInputAnswer,
    ConfirmationOption,
    Message,
    ToolCallConfirmationReason,
    ToolCallContributor,
    ToolResultContent,
)
from ahpkit.protocol.common.state import ErrorInfo, FileEdit, JsonObject, StringOrMarkdown
from ahpkit.protocol.root import MultipleWorkingDirectoriesCapability
from ahpkit.protocol.session.state import ToolDefinition

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
"""Why a turn ended, in the words that agents use. All reasons except `end_turn` and `cancelled` are shown as a
notification."""

FIRST_STAYS: Final[MultipleWorkingDirectoriesCapability] = {"immutablePrimary": True}
"""`Agent.directories` of an agent that can work in any number of directories. A session's first directory is its
workspace and cannot change."""


class AgentError(Exception):
    """The agent failed in a way the user should read. `error_type` is a short machine-readable word.

    Raise it from `AgentChat.run` to end the turn with `chat/error`; any other exception ends it with an error without
    details.
    """

    resumable = False
    """Whether a client may continue the turn (`chat/turnResume`): then `AgentChat.run` is called with it again."""

    def __init__(
        self,
        message: str,
        *,
        error_type: str = "agent",
        meta: JsonObject | None = None,
        resumable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_type = error_type
        self.meta = meta
        if resumable is not None:
            self.resumable = resumable

    def info(self) -> ErrorInfo:
        """The error in the form of states."""
        info: ErrorInfo = {"errorType": self.error_type, "message": self.message}
        if self.meta:
            info["_meta"] = self.meta
        return info


class LoginNeeded(AgentError):
    """A person has to log in to one of the agent's `protected_resources` first.

    Clients get the list of these resources. After the login the turn can continue.
    """

    resumable = True


@dataclass(frozen=True, slots=True)
class SkillOffer:
    """A skill or prompt the model may invoke: its name, what it is for, and where its text is."""

    name: str
    description: str
    uri: str
    body: str = ""


@dataclass(frozen=True, slots=True)
class McpServerOffer:
    """An enabled, trusted MCP server. `config` is what its declaration says: command, args, env, or url, headers."""

    id: str
    name: str
    config: Mapping[str, Any]
    origin: str = ""
    """A stable and unique name of the server."""
    shared: bool = False
    """One process serves all sessions."""
    direct: bool = False
    """The agent runs it, and the host does not."""
    loaded: bool = False
    """The agent finds it in the workspace by itself."""
    filled: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The values of variables that were filled into `config`, by the variables' names. Nobody else must see them."""


@dataclass(slots=True)
class TurnContext:
    """The additions of customizations to one turn, in a neutral form. Each agent converts them to its own form."""

    system_prompt: str | None = None
    """Body of the selected custom agent."""
    rules: list[str] = field(default_factory=list[str])
    """Bodies of the rules that apply to this turn."""
    other_rules: list[str] = field(default_factory=list[str])
    """Bodies of enabled rules that are for other files than those in this message."""
    skills: list[SkillOffer] = field(default_factory=list[SkillOffer])
    """Skills that the model may invoke by itself."""
    agents: list[SkillOffer] = field(default_factory=list[SkillOffer])
    """Custom agents the model may delegate to."""
    mcp_servers: list[McpServerOffer] = field(default_factory=list[McpServerOffer])
    tools: list[ToolDefinition] = field(default_factory=list[ToolDefinition])
    """Tools of clients, MCP servers, canvases and the host, under the names the model uses: `Turn.call_tool`.

    It is updated while the turn runs.
    """
    listed: list[ToolDefinition] = field(default_factory=list[ToolDefinition])
    """The tools to give to a model. When there are very many: some of them, and two tools to find and call the
    others."""
    gone: list[ToolDefinition] = field(default_factory=list[ToolDefinition])
    """Tools that were removed: an agent that does not read its list again may still call them."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A person's answer to `ToolCall.confirm`."""

    approved: bool
    tool_input: str
    """The input to run with. The person may have edited it."""
    option_id: str | None = None
    reason: str | None = None
    """The text that the person wrote with a denial."""
    suggestion: Message | None = None
    meta: JsonObject = field(default_factory=JsonObject)
    """`_meta` of the action that answered."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """How a tool call ended when somebody else ran it (`ToolCall.run_by_client`)."""

    success: bool
    content: Sequence[ToolResultContent] = ()
    error: str | None = None
    structured_content: JsonObject | None = None

    @property
    def texts(self) -> list[str]:
        """The texts for a model. If a result has no text, its structured content is used."""
        texts = [part["text"] for part in self.content if part["type"] == "text"]
        if texts or self.structured_content is None:
            return texts
        return [json.dumps(self.structured_content, ensure_ascii=False)]


@dataclass(frozen=True, slots=True)
class InputAnswers:
    """The answer to `Turn.ask`: accepted with answers by question id, declined, or cancelled."""

    response: Literal["accept", "decline", "cancel"]
    answers: Mapping[str, ChatInputAnswer] = field(default_factory=dict[str, ChatInputAnswer])
    meta: JsonObject = field(default_factory=JsonObject)
    """`_meta` of the action that answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSession:
    """A conversation that an agent keeps itself. It began in the agent's own interface, or in another host."""

    memory: JsonObject
    """The value of `Chat.memory` for a chat that continues it; unique among the conversations of the agent."""
    working_directory: Path
    title: str | None = None
    modified_at: int | None = None
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command that the agent itself understands, or one of its own skills or custom agents."""

    name: str
    description: str
    hint: str | None = None
    kind: Literal["prompt", "skill", "agent"] = "prompt"
    enabled: bool | None = None
    """Whether the agent reports it as switched on; None: the agent does not report this."""
    user_invocable: bool | None = None
    """Whether the agent reports that a person may invoke it; None: the agent does not report this."""


# The keyword options of `Turn` and `ToolCall`, defined once for the host and for every test double.


class RunningOptions(TypedDict, total=False):
    """The options of `ToolCall.running`."""

    tool_input: str | None
    message: StringOrMarkdown | None
    """What the tool does, for people."""
    intention: str | None
    """What the model wants to achieve with the call, if that was not known when the call began."""
    confirmed: ToolCallConfirmationReason
    """Why no approval is needed."""


class PerformOptions(TypedDict, total=False):
    """The options of `ToolCall.perform`."""

    tool_input: str | None
    message: StringOrMarkdown | None
    options: Sequence[ConfirmationOption]
    editable: bool
    """Whether the person who is asked may change the input."""
    asks: bool
    """Whether a person decides if no rule does. The default is True."""


class ConfirmOptions(TypedDict, total=False):
    """The options of `ToolCall.confirm`."""

    tool_input: str | None
    message: StringOrMarkdown | None
    options: Sequence[ConfirmationOption]
    editable: bool
    title: StringOrMarkdown | None
    edits: Sequence[FileEdit]
    """The changes of files that are asked about."""
    intention: str | None
    """As in `RunningOptions`."""
    setting: bool | None
    """The decision of the host's configuration if no rule decides; None: a person is asked."""


class CompleteOptions(TypedDict, total=False):
    """The options of `ToolCall.complete`."""

    success: bool
    """The default is True."""
    message: StringOrMarkdown | None
    content: Sequence[ToolResultContent]
    error: str | None
    structured_content: JsonObject | None


class ToolCallOptions(TypedDict, total=False):
    """The options of `Turn.tool_call`."""

    display_name: str | None
    id: str | None
    message: StringOrMarkdown | None
    intention: str | None
    """What the model wants to achieve with the call, in words."""
    contributor: ToolCallContributor | None
    meta: JsonObject | None


class CallToolOptions(TypedDict, total=False):
    """The options of `Turn.call_tool`."""

    id: str | None
    on_progress: Callable[[str], None] | None
    """Called with the text that the tool shows while it runs."""


class AskOptions(TypedDict, total=False):
    """The options of `Turn.ask`."""

    message: str | None
    url: str | None
    meta: JsonObject | None


__all__ = [
    "FIRST_STAYS",
    "AgentError",
    "AgentSession",
    "AskOptions",
    "CallToolOptions",
    "Command",
    "CompleteOptions",
    "ConfirmOptions",
    "Confirmation",
    "InputAnswers",
    "LoginNeeded",
    "McpServerOffer",
    "PerformOptions",
    "RunningOptions",
    "SkillOffer",
    "StopReason",
    "ToolCallOptions",
    "ToolOutcome",
    "TurnContext",
]
