"""The agent interface: what an agent implements, and what the host gives it.

Agents do not see actions or connections. There are two sides:

* An agent *implements* `Agent` (one per provider) and `AgentChat` (one per conversation).
* The host *gives* it a `Chat` (for the life of the conversation) and a `Turn` (for one message); a turn hands out
  `ToolCall`s. They are protocols, so an agent can be tested against a recording double.

Methods that send something to the clients are synchronous, and clients get it in the order of the calls. Only methods
that wait for a person (`ToolCall.confirm`, `ToolCall.run_by_client`, `Turn.ask`) are awaited.

This module is long because it is the whole interface in one place; most of it is docstrings.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, Unpack

from ahpkit.host.agent.values import (
    FIRST_STAYS,
    AgentError,
    AgentSession,
    AskOptions,
    CallToolOptions,
    Command,
    CompleteOptions,
    Confirmation,
    ConfirmOptions,
    InputAnswers,
    LoginNeeded,
    McpServerOffer,
    PerformOptions,
    RunningOptions,
    SkillOffer,
    StopReason,
    ToolCallOptions,
    ToolOutcome,
    TurnContext,
)
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import (
    ChatInputQuestion,
    Message,
    ResponsePart,
    ToolResultContent,
    UsageInfo,
)
from ahpkit.protocol.chat.state import (
    Turn as TurnRecord,
)
from ahpkit.protocol.common.state import (
    AgentSelection,
    JsonObject,
    ModelSelection,
    ProtectedResourceMetadata,
    StringOrMarkdown,
)
from ahpkit.protocol.root import (
    MultipleChatsCapability,
    MultipleWorkingDirectoriesCapability,
    SessionModelInfo,
)
from ahpkit.protocol.session.state import SessionConfigSchema, ToolDefinition
from ahpkit.wire.errors import MethodNotFound


class ToolCall(Protocol):
    """One tool call of a turn, driven through its life cycle: streaming, confirmed or not, running, completed."""

    id: str

    def input(self, delta: str, *, message: StringOrMarkdown | None = None) -> None:
        """Append to the input while the model is still writing it."""
        ...

    def running(self, **given: Unpack[RunningOptions]) -> None:
        """The input is complete and no approval is needed: the tool runs now. A second call changes nothing.

        Options: `RunningOptions`.
        """
        ...

    async def confirm(self, **given: Unpack[ConfirmOptions]) -> Confirmation:
        """Ask whether the tool may run: guards, then rules, then `setting` if it is given, then a person.

        Works also while it is running: the call goes back to pending. After a denial the call is over. `options` are
        the agent's own; the answer names one only if that was picked. All options: `ConfirmOptions`.
        """
        ...

    def assess(self, reason: StringOrMarkdown | None = None, *, safety: float | None = None) -> None:
        """Say how safe the call is, from 0 to 1, and why. Without `safety` the assessment is shown as still in
        progress.

        It is shown to the person who is asked, also while they decide. It does not decide anything.
        """
        ...

    async def perform(
        self, run: Callable[[str], Awaitable[ToolOutcome]], **given: Unpack[PerformOptions]
    ) -> ToolOutcome:
        """Ask whether the tool may run, run it with the input it may run with, and complete the call.

        With `asks`, a person decides where no rule does. Cancelling this withdraws the call and its question. All
        options: `PerformOptions`.
        """
        ...

    async def run_by_client(self, *, tool_input: str) -> ToolOutcome:
        """Let the client that contributed this tool run it; returns when that client completed it, or left for good."""
        ...

    def covered(self, answer: Confirmation) -> None:
        """A person approved this call already when the agent asked for it: `perform` asks nobody again."""
        ...

    def withdraw(self, reason: str) -> None:
        """Give the call up, because nobody waits for it. It is shown as not finished."""
        ...

    def content(self, content: Sequence[ToolResultContent]) -> None:
        """Replace what is shown while the tool runs."""
        ...

    def complete(self, **given: Unpack[CompleteOptions]) -> None:
        """The tool is done. Works in any state of the call; a finished call ignores it.

        Options: `CompleteOptions`.
        """
        ...

    def meta(self, meta: JsonObject) -> None:
        """Set provider-specific metadata; with the call's next change it replaces what this agent had set before."""
        ...

    @property
    def over(self) -> bool:
        """Whether the call is completed, denied or cancelled."""
        ...


class Turn(Protocol):
    """One user message that is being answered. All clients of the chat get everything, in the order of the calls."""

    id: str
    message: Message
    context: TurnContext
    model: ModelSelection | None
    canvas: CanvasRuntime | None
    ended: asyncio.Event
    """Set when the turn is over: it was completed, cancelled or has failed."""
    resumed: bool
    """Whether the turn failed before and is continued now. Clients have its `parts` already, so do not send them
    again."""

    @property
    def parts(self) -> Sequence[ResponsePart]:
        """The parts of the answer so far."""
        ...

    @property
    def prompt(self) -> str:
        """The text to answer: the user's message with invoked skills and prompts expanded."""
        ...

    @property
    def chat(self) -> Chat: ...

    def text(self, delta: str) -> None:
        """Stream markdown. A new part begins after anything else was sent, and after `new_part`."""
        ...

    def think(self, delta: str) -> None:
        """Stream reasoning. A new part begins after anything else was sent, and after `new_part`."""
        ...

    async def room(self) -> None:
        """Wait until clients have read most of the text. Call this now and then when sending megabytes, because a
        client that gets more than it can read is disconnected."""
        ...

    def new_part(self) -> None:
        """Start a new part with the next text or reasoning (the model began another message)."""
        ...

    def notice(self, text: StringOrMarkdown, *, meta: JsonObject | None = None) -> None:
        """Show a system notification."""
        ...

    def attach(self, data: bytes, *, content_type: str) -> None:
        """Show an image, a sound or any other resource the agent produced; the host stores it and links to it."""
        ...

    def store(self, data: bytes, *, content_type: str) -> str:
        """Keep `data` for this session and return the URI that `resourceRead` serves it under (file edits need it)."""
        ...

    def tool_call(self, name: str, **given: Unpack[ToolCallOptions]) -> ToolCall:
        """Begin a tool call. If the name is a tool of a client, MCP server or canvas, it becomes a call of that tool.

        Options: `ToolCallOptions`.
        """
        ...

    async def call_tool(self, name: str, tool_input: str, **given: Unpack[CallToolOptions]) -> ToolOutcome:
        """Call a tool of `context.tools`: of a client, an MCP server or a canvas. Asks for approval first where it is
        needed.

        If a call with the same name and input was announced, this continues that call. Cancelling gives the call up.
        Options: `CallToolOptions`.
        """
        ...

    def announce(self, name: str, tool_input: str, *, meta: JsonObject | None = None) -> ToolCall | None:
        """Show a call that the agent will make through the host by its own means; both become one tool call.

        None if there is no such tool. The host drives the call; the agent may ask about it with `confirm`.
        """
        ...

    async def ask(self, questions: Sequence[ChatInputQuestion], **given: Unpack[AskOptions]) -> InputAnswers:
        """Ask the user. Clients share the drafts; the first complete answer counts. Options: `AskOptions`."""
        ...

    def writing(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Report that the agent writes a file itself, for as long as this context is entered: `async with
        turn.writing(path): …`.

        The host then knows who wrote it, without a tool call that reports the edit.
        """
        ...

    def usage(self, usage: UsageInfo) -> None: ...

    def activity(self, text: str | None) -> None:
        """Show the present activity of the agent in a few words; None clears it."""
        ...

    async def subchat(self, title: str, prompt: str, *, tool_call: ToolCall | None = None) -> SubChat:
        """Open a read-only chat of the same session for a sub-agent and begin its turn."""
        ...

    def steering(self) -> Message | None:
        """Take the steering message that a user sent while this turn runs, if there is one."""
        ...

    async def wait_steering(self) -> Message:
        """Wait for a steering message and take it."""
        ...


class SubChat(Protocol):
    """A chat spawned by a turn. Leaving the `async with` completes its turn; leaving with an exception fails it."""

    uri: str
    turn: Turn

    async def __aenter__(self) -> Turn: ...

    async def __aexit__(self, *exc: object) -> None: ...


class History(Protocol):
    """Receives a conversation that took place elsewhere. The agent repeats it turn by turn."""

    def turn(self, text: str) -> Turn:
        """Add the user's next message. This ends the previous turn; the last turn ends with the history."""
        ...


class Chat(Protocol):
    """The conversation that an `AgentChat` serves: facts about it, and methods for use outside of a turn."""

    uri: str
    session_uri: str

    @property
    def working_directory(self) -> Path:
        """The first of the directories; the host's default where there is none."""
        ...

    @property
    def working_directories(self) -> Sequence[Path]:
        """All directories of this chat: its own if it has some, or else those of its session."""
        ...

    @property
    def model(self) -> ModelSelection | None: ...

    @property
    def agent(self) -> AgentSelection | None: ...

    @property
    def config(self) -> Mapping[str, Any]:
        """The session's configuration values."""
        ...

    @property
    def session_meta(self) -> JsonObject:
        """The session's `_meta` as its creator gave it, without keys of the host."""
        ...

    @property
    def history(self) -> Sequence[TurnRecord]:
        """The turns that the agent has to know: first the `background`, then the finished turns, the oldest first."""
        ...

    @property
    def background(self) -> Sequence[TurnRecord]:
        """For a side chat: the turns of the other chat, up to the turn that this chat is about."""
        ...

    @property
    def watched(self) -> bool:
        """Whether a client follows this chat or its session now."""
        ...

    @property
    def memory(self) -> JsonObject:
        """What this agent stored about the chat with `remember`; survives restarts, never shown to clients."""
        ...

    def remember(self, memory: JsonObject) -> None: ...

    @property
    def forked_memory(self) -> JsonObject:
        """What this agent stored about the chat from which this one was forked, unless that chat has new turns
        since."""
        ...

    def title(self, title: str) -> None: ...

    def activity(self, text: str | None) -> None:
        """Show an activity of the agent outside of a turn, such as a long start; None clears it."""
        ...

    def commands(self, commands: Sequence[Command]) -> None:
        """The slash commands the agent understands now: offered as completions and shown in state."""
        ...

    def config_options(self, schema: SessionConfigSchema, values: Mapping[str, Any]) -> None:
        """The session's configuration properties and values as the agent reports them."""
        ...

    def meta(self, key: str, value: object) -> None:
        """Set `_meta[key][chat URI]` of the session, where `key` has a namespace. None removes it."""
        ...

    async def mcp_servers(self) -> Sequence[McpServerOffer]:
        """MCP servers for an agent that gets its tools from MCP servers. They stay the same as long as the chat
        exists."""
        ...

    @property
    def extensions(self) -> JsonObject:
        """The extensions that the agent can call now, by name: those that the host offers to agents, and those that
        connected clients announced."""
        ...

    async def extension_request(self, method: str, params: JsonObject) -> object:
        """Send a request to the host or to a client that offers the extension; raises its `RpcError`, or
        `MethodNotFound`."""
        ...

    def extension_notification(self, method: str, params: JsonObject) -> None:
        """Send a notification to the host's own handler, and to the chat's subscribers that announced the extension."""
        ...


class AgentChat(abc.ABC):
    """One conversation with an agent. Opened before its first turn, closed with its chat or with the host."""

    @abc.abstractmethod
    async def run(self, turn: Turn) -> StopReason | None:
        """Answer one message. Return to complete the turn, raise `AgentError` to fail it.

        A turn that failed with a resumable error may come again, with `Turn.resumed` set.

        Cancelling a turn cancels this coroutine; clean up and let `CancelledError` pass.
        """

    @property
    def model(self) -> str | None:
        """The id of the model that answers a message which names none; None: `Agent.default_model`."""
        return None

    async def configure(
        self, *, model: ModelSelection | None, agent: AgentSelection | None, config: Mapping[str, Any]
    ) -> None:
        """The selection changed between two turns; `config` holds all values."""

    async def work_in(self, directories: Sequence[Path]) -> None:
        """Work in these directories from now on. Raise `AgentError` when that is not possible; then nothing changes.
        Only called for an agent that has `Agent.directories`."""

    async def truncated(self, turns: Sequence[TurnRecord]) -> None:
        """The history was truncated; `turns` are the remaining turns."""

    @property
    def can_rest(self) -> bool:
        """Whether this conversation can be closed and opened again without losing anything or ending a process, because
        everything is in its `Chat`. Then it is closed while nobody uses its session."""
        return False

    async def forget(self) -> None:
        """The chat was disposed of for good: the agent may delete what it keeps of it. `aclose` follows."""

    async def extension_request(self, method: str, params: JsonObject) -> object:
        """A client calls an extension of this agent (`_…`); raise `MethodNotFound` for what it did not announce."""
        raise MethodNotFound(f"{method}: the agent of this session does not offer it")

    async def extension_notification(self, method: str, params: JsonObject) -> None:
        """A client sends a notification of an extension; it is dropped if the agent did not announce the extension."""

    async def aclose(self) -> None:
        """The chat is gone or the host stops."""


_CHATS: MultipleChatsCapability = {"fork": True, "sideChat": True}


class Agent(abc.ABC):
    """An agent backend: one provider in root state. `start` is called when the host starts, `aclose` when it stops."""

    provider: str
    display_name: str
    description: str = ""
    models: Sequence[SessionModelInfo] = ()
    models_later: bool = False
    """Whether it reports its models only once a session is open."""
    protected_resources: Sequence[ProtectedResourceMetadata] = ()
    tools: Sequence[ToolDefinition] = ()
    """The agent's own tools. Everything else that its model can call comes with `TurnContext.tools`."""
    resumes: bool = False
    """Whether a turn that was interrupted by a stop of the host can be continued."""
    further_chats: MultipleChatsCapability | None = _CHATS
    """Whether sessions of this agent can have further chats, forks and side chats. Every agent that uses `Chat.history`
    can. None: they have one chat."""
    directories: MultipleWorkingDirectoriesCapability | None = None
    """How sessions of this agent can have several working directories; None: they have one."""
    permissions: Literal["ask", "allow", "deny"] = "ask"
    """Who decides about a tool call if no rule does: a person, or the configuration."""
    sampling: JsonObject | None = None
    """Which MCP sampling `sample` supports: `{}`, or `{"tools": {}}` when it accepts tools; None: no sampling."""
    loads_servers: Sequence[str] = ()
    """Files of a workspace whose MCP servers the agent starts by itself, such as `.mcp.json`. The host does not start
    these servers."""
    writes_outside_calls: bool | None = True
    """Whether it may write files while none of its tool calls runs, without `Turn.writing`. If not, a file that changes
    then was written by somebody else. None: the agent may, until it has reported its first tool call."""
    meta: JsonObject | None = None
    """Raw capabilities worth showing; clients see them in root state, under `ahpkit/agent` in the agent's `_meta`."""

    _followers: tuple[Callable[[], None], ...] = ()

    def follow(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call `heard` after each change of the agent's description. Call the returned function to stop this."""
        self._followers = (*self._followers, heard)

        def stop() -> None:
            self._followers = tuple(one for one in self._followers if one is not heard)

        return stop

    def changed(self) -> None:
        """Call it after `models`, `protected_resources` or `meta` changed, so that clients get the change."""
        for heard in self._followers:
            heard()

    @property
    def default_model(self) -> str | None:
        """The id of the model that answers when none was chosen; None if that is not known."""
        return next((model["id"] for model in self.models), None)

    @abc.abstractmethod
    async def open(self, chat: Chat) -> AgentChat:
        """Begin or resume a conversation. Raise `AgentError` when that is not possible."""

    async def start(self) -> None:
        """The host is up. Keep it short: processes start on first use."""

    async def aclose(self) -> None:
        """The host stops: end everything that was started."""

    async def sessions(self, directory: Path, *, start: bool) -> Sequence[AgentSession] | None:
        """The conversations that the agent keeps; None when it does not run and `start` is not set.

        `directory` is where to start it.
        """
        return ()

    async def recall(self, chat: Chat, memory: JsonObject, history: History) -> None:
        """Repeat the history of a kept conversation, for a chat that will continue it."""

    async def session_config(
        self, working_directory: Path | None, values: Mapping[str, Any]
    ) -> SessionConfigSchema | None:
        """Properties a user may set when creating a session."""
        return None

    async def config_completions(
        self, working_directory: Path | None, property: str, query: str
    ) -> Sequence[Mapping[str, str]]:
        """`{value, label, description?}` items for a property whose values are too many to list."""
        return ()

    async def completions(self, chat: Chat | None, text: str, offset: int) -> Sequence[CompletionItem]:
        """Items the agent itself offers at `offset` (UTF-16 units) of `text`."""
        return ()

    async def sample(self, chat: Chat, request: JsonObject) -> JsonObject:
        """Answer a `sampling/createMessage` of an MCP server or app with the agent's model; returns a
        `CreateMessageResult`."""
        raise AgentError(f"{self.display_name} does not answer sampling requests")

    async def authenticate(self, resource: str, token: str) -> None:
        """A client pushed a token for one of `protected_resources`."""

    async def revoke(self, resource: str) -> None:
        """A token that a client pushed has expired or was taken back: stop using it."""

    def needs_token(self, resource: str) -> bool:
        """Whether a login to `resource` brings a token. Then an empty token takes the login back."""
        return True


class CanvasRuntime(Protocol):
    """Canvases as an agent sees them (`session.canvas.*`). Every failure is a `CanvasError` with a code."""

    def list(self) -> Sequence[JsonObject]:
        """Declared canvases (`DiscoveredCanvas`)."""
        ...

    def list_open(self) -> Sequence[JsonObject]:
        """Open instances (`OpenCanvasInstance`)."""
        ...

    async def open(
        self, canvas_id: str, instance_id: str, *, extension_id: str | None = None, input: object = None
    ) -> JsonObject: ...

    async def close(self, instance_id: str) -> None: ...

    async def invoke(self, instance_id: str, action: str, input: object = None) -> Any: ...

    def subscribe(self, listener: Callable[[str, JsonObject], Awaitable[None] | None]) -> Callable[[], None]:
        """Follow `session.canvas.opened` (also when an open instance changes), `session.canvas.registry_changed` and
        `capabilities.changed`; call the result to stop."""
        ...


__all__ = [
    "FIRST_STAYS",
    "Agent",
    "AgentChat",
    "AgentError",
    "AgentSession",
    "CanvasRuntime",
    "Chat",
    "Command",
    "Confirmation",
    "History",
    "InputAnswers",
    "LoginNeeded",
    "McpServerOffer",
    "SkillOffer",
    "StopReason",
    "SubChat",
    "ToolCall",
    "ToolOutcome",
    "Turn",
    "TurnContext",
]
