"""What features register with the host. Each part of the host that uses such functions has a table of its own here.

A feature adds functions to the tables while the host is put together. They are called in the order of the features.
After that the tables are only read:

    host.commands.add(Command("_example/list", self._list))
    host.actions.listen(self._heard, "chat/")
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
from ahpkit.protocol.chat.actions import ChatAction
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import ChatState, Message
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.protocol.session.actions import SessionAction
from ahpkit.protocol.session.state import SessionState, ToolDefinition
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
    """What features add for one purpose, in the order of the features."""

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
        for heard in self:
            try:
                heard(*about, **more)
            except Exception:  # The other features still have to be called.
                _log.exception("a feature failed to handle %s", about[0] if about else "an event")


class OnlyOne(Generic[_T]):
    """What only one feature may provide."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self.provided: _T | None = None

    def provide(self, one: _T) -> None:
        if self.provided is not None:
            raise LocalProtocolError(f"another part of the host {self._purpose} already")
        self.provided = one


# -- commands ----------------------------------------------------------------------------------------------------------

CommandHandler = Callable[[Any, Any], Awaitable[Any]]
"""Serves one request method: the client that asks (a `ConnectedClient`) and its validated params; returns the result
or raises an error of `ahpkit.protocol.errors`."""


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
    """Whether its answer may be large. Large answers are made one at a time, when the client has read what was sent
    before."""


class CommandTable:
    """The methods that clients can call, and the notifications that they can send. Read for every message of a
    client."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._notifications: dict[str, Callable[[Any, Any], None]] = {}

    def add(self, command: Command) -> None:
        """Serve a request method."""
        if command.name in self._commands:
            raise LocalProtocolError(f"{command.name} is served by another part of the host already")
        self._commands[command.name] = command

    def hear(self, name: str, hear: Callable[[Any, Any], None]) -> None:
        """`hear(client, params)`: handle a notification of clients."""
        self._notifications[name] = hear

    def find(self, name: str) -> Command | None:
        """The row of a method."""
        return self._commands.get(name)

    def notification(self, name: str) -> Callable[[Any, Any], None] | None:
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
    """Who dispatched it; None: the host itself."""
    before: _StateT
    """The state of the channel."""
    after: _StateT
    """The same object as `before` when the action changed nothing."""


AnyApplied = Applied[StateAction, JsonObject]
"""For listeners that only look at the type of an action, or at actions of several channels."""
SessionApplied = Applied[SessionAction, SessionState]
ChatApplied = Applied[ChatAction, ChatState]
TerminalApplied = Applied[TerminalAction, TerminalState]

Refusal = Callable[[str, str, Any, Any], str | None]
"""Client, channel, action, state: why the client may not dispatch this, or None."""

Amendment = Callable[[str, Any], Any]
"""Channel and action: the action as it is applied."""


class _ByType(Generic[_T]):
    """Functions for some types of actions. The functions of a type are looked up once, because actions come by the
    thousand."""

    def __init__(self) -> None:
        self._all: list[tuple[_T, tuple[str, ...]]] = []
        self._found: dict[str, Sequence[_T]] = {}

    def add(self, one: _T, beginnings: tuple[str, ...]) -> None:
        """Add one for the types that begin with these texts; without any, for all."""
        self._all.append((one, beginnings or ("",)))
        self._found.clear()

    def of(self, action_type: str) -> Sequence[_T]:
        """Those for actions of this type, in the order in which they were added."""
        found = self._found.get(action_type)
        if found is None:
            found = self._found[action_type] = [one for one, begins in self._all if action_type.startswith(begins)]
        return found


class ActionHooks:
    """What happens before and after an action is applied. Read by the dispatcher."""

    def __init__(self) -> None:
        self._listeners = _ByType[Callable[[Applied[Any, Any]], None]]()
        self.listeners = self._listeners.of
        """`listeners(action_type)`: the functions to call after such actions, in the order in which they registered."""
        self._refusals = _ByType[Refusal]()
        self.refusals = self._refusals.of
        """`refusals(action_type)`: the rules for such actions."""
        self._amendments: dict[str, list[Amendment]] = {}
        self.wake = OnlyOne[Callable[[str], None]]("wakes sessions")
        """`wake(channel)`: called before an action is applied, because the session of the channel may rest."""
        self.not_stored = Event[[str]]()
        """`heard(channel)`: an action of this channel could not be stored. The channel's state is again as before the
        action."""

    def listen(self, heard: Callable[[Applied[Any, Any]], None], *beginnings: str) -> None:
        """Be called after every action that was applied; with `beginnings`, after those whose type begins with one.

        Must not block, may dispatch: it runs inside the sequence.
        """
        self._listeners.add(heard, beginnings)

    def refuse(self, rule: Refusal, *beginnings: str) -> None:
        """Have a rule asked about every client's action; with `beginnings`, about those whose type begins with one.

        Asked after the host's own policy agreed.
        """
        self._refusals.add(rule, beginnings)

    def amend(self, action_type: str, amend: Amendment) -> None:
        """`amend(channel, action)`: what the host adds to an action of this type before it is applied and logged."""
        self._amendments.setdefault(action_type, []).append(amend)

    def amendments(self, action_type: str) -> Sequence[Amendment]:
        """What is added to actions of this type."""
        return self._amendments.get(action_type, ())


# -- clients and channels ----------------------------------------------------------------------------------------------


class ClientEvents:
    """Clients that come and go."""

    def __init__(self) -> None:
        self.back = Event[[str, bool]]()
        """`heard(client_id, resumed)`: a client connected. With `reconnect` it resumed, and follows what it named."""
        self.gone = Event[[str]]()
        """`heard(client_id)`: a client's connection ended."""
        self.offered_again = Event[[str, str]]()
        """`heard(client_id, session_uri)`: an active client said again what it offers. Other clients get no action for
        that."""
        self.unsubscribed = Event[[str, str]]()
        """`heard(client_id, uri)`: a client unsubscribed from a channel. Losing the connection does not count."""


class ChannelHooks:
    """Channels that clients subscribe to. Read when they do."""

    def __init__(self) -> None:
        self.guard = Hooks[Callable[[str, str], Awaitable[None]]]()
        """`guard(client_id, uri)`: raise `PermissionDenied` when a client may not observe a channel."""
        self.open = Hooks[Callable[[str], Awaitable[bool]]]()
        """`open(uri)`: make a channel that exists only while somebody is subscribed; False: not mine."""
        self.is_stateless = Hooks[Callable[[str], bool]]()
        """`is_stateless(uri)`: whether clients may subscribe to this channel although it has no state (telemetry,
        MCP)."""
        self.telemetry = OnlyOne[TelemetryCapabilities]("advertises telemetry")
        """`InitializeResult.telemetry`: channels, or templates of channels, by signal."""
        self.subscribed = Event[[str]]()
        """`heard(uri)`: somebody subscribes to a channel."""
        self.unsubscribed = Event[[str]]()
        """`heard(uri)`: a channel lost its last subscriber."""


# -- sessions, turns and agents ----------------------------------------------------------------------------------------

SettingsSource = Callable[[Path], Awaitable[Mapping[str, Any]]]
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
        """`prepare(session_uri)`: a session is being created (or was restored); it becomes ready afterwards. Raising
        fails the creation."""
        self.creation_interrupted = Event[[str]]()
        """`heard(session_uri)`: a session wakes whose creation was interrupted by a restart. It has to be finished."""
        self.is_busy = Hooks[Callable[[str], bool]]()
        """`is_busy(session_uri)`: whether this feature still needs the session, so that it must not rest."""
        self.rested = Event[[str]]()
        """`heard(session_uri)`: nobody uses a session. Drop what is held for it in memory; it is prepared again before
        it is used."""
        self.disposed = Event[[str]]()
        """`heard(session_uri)`: a session and its chats are gone."""
        self.chat_disposed = Event[[str]]()
        """`heard(chat_uri)`: a chat is gone, alone or with its session."""
        self.chat_moved = Event[[str, str]]()
        """`heard(chat_uri, session_uri)`: a chat belongs to another session now."""


class TurnHooks:
    """What agents get in a turn."""

    def __init__(self) -> None:
        self.prepare = Hooks[Callable[[Chat, Message, str, TurnContext], Awaitable[str]]]()
        """`prepare(chat, message, prompt, context)`: add to a turn's context before the agent sees it; returns the
        prompt, expanded or as it was."""
        self.before_end = Hooks[Callable[[Chat, str], Awaitable[None]]]()
        """`before_end(chat, turn_id)`: the agent is done with a turn. The turn ends afterwards, so what a client does
        after that end does not count as the agent's work. Must not raise."""
        self.before_call = Hooks[Callable[[Chat, str, str], Awaitable[None]]]()
        """`before_call(chat, turn_id, call_id)`: a tool call may run. It runs afterwards, unless its agent runs it
        without asking. Must not raise."""
        self.writing = Hooks[Callable[[Chat, str, Path], AbstractAsyncContextManager[None]]]()
        """`writing(chat, turn_id, path)`: the agent writes a file in a turn, while this is entered. Must not raise."""
        self.guard_tool = Hooks[Callable[[Chat, str, str, str | None], Awaitable[Objection | None]]]()
        """`guard(chat, name, tool_input, owner)`: why a tool call is denied before anyone is asked, or why a person has
        to decide; None: no objection. The owner is who runs the tool, as rules name it (`mcp:time`); None: the agent
        itself."""
        self.servers = Hooks[Callable[[Chat], Awaitable[Sequence[McpServerOffer]]]]()
        """`servers(chat)`: MCP servers for an agent that gets its tools that way; they stay the same as long as the
        chat lives."""
        self.content = OnlyOne[Callable[[str, bytes, str], str]]("stores content")
        """`store(session_uri, data, content_type)`: keep what an agent produced; returns its URI."""
        self.canvases = OnlyOne[Callable[[Chat], CanvasRuntime]]("offers canvases")
        """`runtime_of(chat)`: canvases for the agent of a chat."""


class AgentHooks:
    """What features add to the agents of the host."""

    def __init__(self) -> None:
        self.describe = Hooks[Callable[[str], Mapping[str, Any]]]()
        """`describe(provider)`: further fields of an agent in root state. The host writes the list."""
        self.authenticate = Hooks[Callable[[str, Any], Awaitable[bool]]]()
        """`take(client_id, params)`: take a token of a client, with what `authenticate` says of it; False when this
        feature did not ask for it."""


class ToolSource(Protocol):
    """A part of the host that has tools for models: canvases, MCP servers, questions."""

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        """What it has for a session now. After a change call `Services.tools_changed`."""
        ...

    def asks(self, tool: Tool) -> bool:
        """Whether a person decides about each call that no rule decides."""
        ...

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        """Run a tool that may run. A failure is an outcome. Cancelled when nobody waits for it any more."""
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
        """By scheme of the URI."""
        self.routes = Hooks[Callable[[Any], None]]()
        """`mount(router)`: serve HTTP below a prefix. The HTTP front brings its `ahpkit.http.router.Router`."""
        self.recover = Hooks[Callable[[], None]]()
        """Repair what an earlier run left unfinished: only by actions, and without waiting. The states are loaded, no
        client is connected, no turn runs, and the features that registered earlier have recovered."""


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
