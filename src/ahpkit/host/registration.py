"""What features register with the host. Each part of the host that uses such functions has its own table here.

A feature adds functions to the tables while the host is put together. They are called in the order of the features.
After that the tables are only read:

    host.commands.add(Command("_example/list", self._list))
    host.actions.listen(self._on_applied, "chat/")
    host.sessions.disposed.add(self._forget)
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from ahpkit.host.agent import CanvasRuntime, Chat, McpServerOffer, ToolCall, ToolOutcome, Turn, TurnContext
from ahpkit.host.policy.methods import MethodRule, known_client
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.chat.actions import ChatAction
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import ChatState, Message
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.commands import AuthenticateParams
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.protocol.extensions import extension_method
from ahpkit.protocol.session.actions import SessionAction
from ahpkit.protocol.session.state import SessionConfigPropertySchema, SessionState, ToolDefinition
from ahpkit.protocol.telemetry import TelemetryCapabilities
from ahpkit.protocol.terminal import TerminalAction, TerminalState
from ahpkit.tools.gate import Objection
from ahpkit.tools.registry import Owner, Tool

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_P = ParamSpec("_P")
_ActionT = TypeVar("_ActionT")
_StateT = TypeVar("_StateT")


class Hooks(Generic[_T]):
    """The functions that features add for one purpose, in the order of the features."""

    def __init__(self) -> None:
        self._all: list[_T] = []

    def add(self, one: _T) -> None:
        self._all.append(one)

    def __iter__(self) -> Iterator[_T]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


class Event(Hooks[Callable[_P, object]], Generic[_P]):
    """An event. Features add functions that are called for it; they must not block, and may dispatch."""

    def tell(self, *about: _P.args, **more: _P.kwargs) -> None:
        """Call every function, also when one of them fails."""
        for listener in self:
            try:
                listener(*about, **more)
            except Exception:  # The other features still have to be called.
                _log.exception("a feature failed to handle %s", about[0] if about else "an event")


class OnlyOne(Generic[_T]):
    """Something that only one feature may provide."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self.provided: _T | None = None

    def provide(self, one: _T) -> None:
        if self.provided is not None:
            raise LocalProtocolError(f"another part of the host {self._purpose} already")
        self.provided = one


# -- commands ----------------------------------------------------------------------------------------------------------

CommandHandler = Callable[[Any, Any], Awaitable[object]]
"""Serves one request method. Gets the client that asks (a `ConnectedClient`) and its validated params; returns the
result, or raises an error of `ahpkit.protocol.errors`."""

NotificationHandler = Callable[[Any, Any], None]
"""Handles one notification. Gets the client and the params."""


class Command(NamedTuple):
    """One row of the table of commands: everything the host has to know about a method."""

    name: str
    serve: CommandHandler
    ordered: bool = False
    """Whether it is finished before the connection's next message is taken."""
    changes: bool = False
    """Whether it changes something: then it needs a writable disk, and its answer waits until the change is stored."""
    policy: MethodRule = known_client
    """Who may call it, and when."""
    large: bool = False
    """Whether its answer may be large. Large answers are made one at a time, and only when the client has read
    everything before."""


class CommandTable:
    """The methods that clients can call, and the notifications that they can send. Read for every message of a
    client."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._notifications: dict[str, NotificationHandler] = {}

    def add(self, command: Command) -> None:
        """Serve a request method."""
        method = extension_method(command.name)
        if method in self._commands:
            raise LocalProtocolError(f"{command.name} is served by another part of the host already")
        self._commands[method] = command

    def hear(self, name: str, hear: NotificationHandler) -> None:
        """`hear(client, params)`: handle a notification of clients."""
        self._notifications[extension_method(name)] = hear

    def find(self, name: str) -> Command | None:
        """The row of a method."""
        return self._commands.get(name)

    def notification(self, name: str) -> NotificationHandler | None:
        """The handler of a notification."""
        return self._notifications.get(name)

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())


# -- actions -----------------------------------------------------------------------------------------------------------


class Applied(NamedTuple, Generic[_ActionT, _StateT]):
    """One action that was reduced into a state."""

    channel: str
    action: _ActionT
    client_id: str | None
    """The client that dispatched the action; None: the host itself."""
    before: _StateT
    """The state of the channel before the action."""
    after: _StateT
    """The same object as `before` when the action changed nothing."""
    at: int
    """When it was applied, in milliseconds since the epoch. The log has this time, too."""


AnyApplied = Applied[StateAction, ChannelState]
"""For listeners that only look at the type of an action, or at actions of several channels."""
SessionApplied = Applied[SessionAction, SessionState]
ChatApplied = Applied[ChatAction, ChatState]
TerminalApplied = Applied[TerminalAction, TerminalState]

Listener = Callable[[Applied[Any, Any]], None]
"""Called after an action was applied. Says in its annotation which actions it takes."""

Refusal = Callable[[str, str, Any, Any], str | None]
"""Gets client, channel, action and state. Returns why the client may not dispatch this action; None: it may."""

Amendment = Callable[[str, Any], Any]
"""Gets channel and action. Returns the action that is applied in its place."""


class _ByType(Generic[_T]):
    """Functions for some types of actions. The functions for a type are looked up once and then remembered, because
    there are very many actions."""

    def __init__(self) -> None:
        self._all: list[tuple[_T, tuple[str, ...]]] = []
        self._found: dict[str, Sequence[_T]] = {}

    def add(self, one: _T, beginnings: tuple[str, ...]) -> None:
        """Add a function for the types that begin with one of these texts; without texts, for all types."""
        self._all.append((one, beginnings or ("",)))
        self._found.clear()

    def of(self, action_type: str) -> Sequence[_T]:
        """The functions for actions of this type, in the order in which they were added."""
        found = self._found.get(action_type)
        if found is None:
            found = self._found[action_type] = [one for one, begins in self._all if action_type.startswith(begins)]
        return found


class ActionHooks:
    """What happens before and after an action is applied. Read by the dispatcher."""

    def __init__(self) -> None:
        self._listeners = _ByType[Listener]()
        self.listeners = self._listeners.of
        """`listeners(action_type)`: the functions to call after such actions, in the order in which they registered."""
        self._refusals = _ByType[Refusal]()
        self.refusals = self._refusals.of
        """`refusals(action_type)`: the rules for such actions."""
        self._amendments: dict[str, list[Amendment]] = {}
        self.wake = OnlyOne[Callable[[str], None]]("wakes sessions")
        """`wake(channel)`: called before an action is applied. It wakes the session of the channel, if it rests."""
        self.not_stored = Event[[str]]()
        """`listener(channel)`: an action of this channel could not be stored. It was undone in the channel's state."""

    def listen(self, listener: Listener, *beginnings: str) -> None:
        """Call a function after every action that was applied; with `beginnings`, only for types that begin with one of
        them.

        The function must not block. It may dispatch.
        """
        self._listeners.add(listener, beginnings)

    def refuse(self, rule: Refusal, *beginnings: str) -> None:
        """Add a rule that may refuse actions of clients; with `beginnings`, only types that begin with one of them.

        The rule is asked after the host's own policy has allowed the action.
        """
        self._refusals.add(rule, beginnings)

    def amend(self, action_type: str, amend: Amendment) -> None:
        """Add a function `amend(channel, action)`. It returns the action of this type with additions of the host; this
        is applied and logged."""
        self._amendments.setdefault(action_type, []).append(amend)

    def amendments(self, action_type: str) -> Sequence[Amendment]:
        """The functions that add something to actions of this type."""
        return self._amendments.get(action_type, ())


# -- clients and channels ----------------------------------------------------------------------------------------------


class ClientEvents:
    """Clients that come and go."""

    def __init__(self) -> None:
        self.back = Event[[str, bool]]()
        """`listener(client_id, resumed)`: a client connected. `resumed`: it used `reconnect`, and follows the channels
        that it named."""
        self.gone = Event[[str]]()
        """`listener(client_id)`: a client's connection ended."""
        self.offered_again = Event[[str, str]]()
        """`listener(client_id, session_uri)`: an active client repeated its offer unchanged. Other clients get no
        action for this."""
        self.unsubscribed = Event[[str, str]]()
        """`listener(client_id, uri)`: a client unsubscribed from a channel. Losing the connection does not count."""


class ChannelHooks:
    """Functions for subscriptions of clients to channels."""

    def __init__(self) -> None:
        self.guard = Hooks[Callable[[str, str], Awaitable[None]]]()
        """`guard(client_id, uri)`: raise `PermissionDenied` when a client may not observe a channel."""
        self.open = Hooks[Callable[[str], Awaitable[bool]]]()
        """`open(uri)`: create a channel that exists only while somebody is subscribed; False: this feature has no such
        channel."""
        self.is_stateless = Hooks[Callable[[str], bool]]()
        """`is_stateless(uri)`: whether clients may subscribe to this channel although it has no state (telemetry,
        MCP)."""
        self.telemetry = OnlyOne[TelemetryCapabilities]("advertises telemetry")
        """`InitializeResult.telemetry`: channels, or templates of channels, by signal."""
        self.subscribed = Event[[str]]()
        """`listener(uri)`: somebody subscribes to a channel."""
        self.unsubscribed = Event[[str]]()
        """`listener(uri)`: a channel lost its last subscriber."""


# -- sessions, turns and agents ----------------------------------------------------------------------------------------

SettingsSource = Callable[[Path], Awaitable[Mapping[str, SessionConfigPropertySchema]]]
"""`settings(directory)`: schemas of settings, by name, that new sessions in this directory have besides the agent's
own."""


class SessionHooks:
    """The life of sessions and their chats."""

    def __init__(self) -> None:
        self.settings = Hooks[SettingsSource]()
        self.check_directory = Hooks[Callable[[str], Awaitable[None]]]()
        """`check(uri)`: raise an error of the protocol when no session may have this working directory."""
        self.choose_directory = Hooks[Callable[[str, Path, Mapping[str, Any]], Awaitable[Path]]]()
        """`choose(session_uri, directory, settings)`: where a new session works. The directory need not exist yet."""
        self.make_directory = Hooks[Callable[[str], Awaitable[None]]]()
        """`make(session_uri)`: create the directory that was chosen, before anything else uses it."""
        self.prepare = Hooks[Callable[[str], Awaitable[None]]]()
        """`prepare(session_uri)`: called before a session that is created, or that wakes, becomes ready. If it raises,
        the creation fails."""
        self.creation_interrupted = Event[[str]]()
        """`listener(session_uri)`: a session wakes whose creation was interrupted by a restart. Its creation has to be
        finished."""
        self.is_busy = Hooks[Callable[[str], bool]]()
        """`is_busy(session_uri)`: whether this feature still needs the session, so that it must not rest."""
        self.rested = Event[[str]]()
        """`listener(session_uri)`: a session goes to rest. Drop what this feature holds for it in memory; `prepare` is
        called again before the session is used."""
        self.disposed = Event[[str]]()
        """`listener(session_uri)`: a session and its chats are gone."""
        self.chat_disposed = Event[[str]]()
        """`listener(chat_uri)`: a chat is gone, alone or with its session."""
        self.chat_moved = Event[[str, str]]()
        """`listener(chat_uri, session_uri)`: a chat belongs to another session now."""


class TurnHooks:
    """Functions for turns: what features add to them, and when they are told."""

    def __init__(self) -> None:
        self.prepare = Hooks[Callable[[Chat, Message, str, TurnContext], Awaitable[str]]]()
        """`prepare(chat, message, prompt, context)`: add to a turn's context before the agent gets it; returns the
        prompt, expanded or unchanged."""
        self.before_end = Hooks[Callable[[Chat, str], Awaitable[None]]]()
        """`before_end(chat, turn_id)`: the agent is done with a turn, but clients do not know it yet. So changes of
        files until now are the agent's, and changes after the end are not. Must not raise."""
        self.before_call = Hooks[Callable[[Chat, str, str], Awaitable[None]]]()
        """`before_call(chat, turn_id, call_id)`: called before a tool call runs. A call that the agent runs without
        asking may run already. Must not raise."""
        self.writing = Hooks[Callable[[Chat, str, Path], AbstractAsyncContextManager[None]]]()
        """`writing(chat, turn_id, path)`: a context that is entered while the agent writes a file. Must not raise."""
        self.guard_tool = Hooks[Callable[[Chat, str, str, str | None], Awaitable[Objection | None]]]()
        """`guard(chat, name, tool_input, owner)`: why a tool call is denied without asking anybody, or why a person has
        to decide; None: no objection. `owner` names who runs the tool, in the words of approval rules (`mcp:time`);
        None: the agent itself."""
        self.servers = Hooks[Callable[[Chat], Awaitable[Sequence[McpServerOffer]]]]()
        """`servers(chat)`: MCP servers for an agent that gets its tools from MCP servers; they stay the same as long as
        the chat exists."""
        self.content = OnlyOne[Callable[[str, bytes, str], str]]("stores content")
        """`store(session_uri, data, content_type)`: keep content that an agent produced; returns its URI."""
        self.canvases = OnlyOne[Callable[[Chat], CanvasRuntime]]("offers canvases")
        """`runtime_of(chat)`: canvases for the agent of a chat."""


class AgentHooks:
    """What features add to the agents of the host."""

    def __init__(self) -> None:
        self.describe = Hooks[Callable[[str], Mapping[str, Any]]]()
        """`describe(provider)`: further fields of an agent's entry in root state."""
        self.authenticate = Hooks[Callable[[str, AuthenticateParams], Awaitable[bool]]]()
        """`take(client_id, params)`: take the token in a client's `authenticate` request; False if this feature did not
        ask for this token."""


class ToolSource(Protocol):
    """A part of the host that has tools for models: canvases, MCP servers, questions."""

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        """The tools for a session now. After a change, call `Services.tools_changed`."""
        ...

    def asks(self, tool: Tool) -> bool:
        """Whether a person decides about a call when no rule does."""
        ...

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        """Run a tool whose call was allowed. A failure is returned as an outcome. This is cancelled when nobody waits
        for the call any more."""
        ...


# -- all of it ---------------------------------------------------------------------------------------------------------

CompletionSource = Callable[[str, str, int], Awaitable[Sequence[CompletionItem]]]
"""`source(chat_uri, text, offset)`: items offered at an offset (UTF-16 code units) of a text."""

ResourceReader = Callable[[str], Awaitable[tuple[bytes, str]]]
"""`read(uri)`: bytes and content type of a resource, for `resourceRead`."""


class Registration:
    """The tables of one host."""

    def __init__(self) -> None:
        self.commands = CommandTable()
        self.actions = ActionHooks()
        self.clients = ClientEvents()
        self.channels = ChannelHooks()
        self.sessions = SessionHooks()
        self.turns = TurnHooks()
        self.agents = AgentHooks()
        self.tools = Hooks[ToolSource]()
        """Tools for the models of every session, whatever their agent."""
        self.completions = Hooks[CompletionSource]()
        self.resource_readers: dict[str, ResourceReader] = {}
        """Scheme of a URI → its reader."""
        self.routes = Hooks[Callable[[Any], None]]()
        """`mount(router)`: serve HTTP below a prefix. The HTTP front brings its `ahpkit.http.router.Router`."""
        self.recover = Hooks[Callable[[], None]]()
        """Functions that repair what an earlier run left unfinished: only by actions, and without waiting. When they
        are called, the states are loaded, no client is connected, no turn runs, and earlier features have recovered."""


__all__ = [
    "ActionHooks",
    "AgentHooks",
    "AnyApplied",
    "Applied",
    "ChannelHooks",
    "ChatApplied",
    "ClientEvents",
    "Command",
    "CommandHandler",
    "CommandTable",
    "CompletionSource",
    "Event",
    "Hooks",
    "OnlyOne",
    "Refusal",
    "Registration",
    "ResourceReader",
    "SessionApplied",
    "SessionHooks",
    "SettingsSource",
    "TerminalApplied",
    "ToolSource",
    "TurnHooks",
]
