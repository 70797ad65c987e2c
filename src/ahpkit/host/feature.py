"""What a feature registers with the host, and what it may use of the host.

Customizations, canvases, resources and terminals are features. A feature registers what it offers on a `Registration`
while the host is put together. It acts through `Services`: its actions take the same way as all others. The host also
runs without features.

This module is long because it is everything that a feature sees of the host. Most methods are one line and a docstring.
"""

from __future__ import annotations

import abc
import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, KeysView, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ahpkit.host.agent import CanvasRuntime, Chat, McpServerOffer, ToolCall, ToolOutcome, Turn, TurnContext
from ahpkit.host.policy.methods import MethodRule, known_client
from ahpkit.host.states import States
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.commands import ClientCapabilities
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.protocol.telemetry import TelemetryCapabilities
from ahpkit.tools.registry import Owner, Tool

_log = logging.getLogger(__name__)


class ConnectedClient(Protocol):
    """A client with an open connection."""

    client_id: str
    capabilities: ClientCapabilities
    """What it sent as `initialize.capabilities`, `_meta` included."""

    async def request(self, method: str, params: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        """Send a reverse request and wait for its answer; raises `RpcError`, `TimeoutError` or `ConnectionError`."""
        ...

    def notify(self, method: str, params: Mapping[str, Any]) -> None: ...

    def follows(self, uri: str) -> bool:
        """Whether it is subscribed to a channel."""
        ...


class Applied(NamedTuple):
    """One action that was reduced into a state."""

    channel: str
    action: Any
    """An action of the protocol. A listener knows which by its `type`."""
    client_id: str | None
    """Who dispatched it; None: the host itself."""
    before: Any
    """The state of the channel."""
    after: Any
    """The same object as `before` when the action changed nothing."""


class Values(Protocol):
    """Small durable values beside the log: never sent to a client."""

    def get(self, key: str) -> Any | None: ...

    def set(self, key: str, value: Any | None) -> None:
        """Store JSON data with the next commit; None removes the key."""
        ...

    def keys(self, group: str) -> KeysView[str]:
        """The keys that begin with a group, such as `client-version/`, oldest first. Costs nothing."""
        ...

    def items(self, prefix: str) -> Sequence[tuple[str, Any]]: ...


class Measures(NamedTuple):
    """How much the host did, and how much waits, at one moment."""

    commits: int
    """Commits of the log since the start."""
    deliveries: int
    """Batches of actions that were written to connections since the start."""
    backlog: int
    """Changes that wait to become durable."""
    unread: int
    """Bytes that connections have not taken yet."""
    connections: int
    sessions: int


class Services(States, Protocol):
    """What a feature may use of the host."""

    @property
    def values(self) -> Values: ...

    def session_uris(self) -> Sequence[str]:
        """URIs of the sessions there are."""
        ...

    def session_of(self, chat_uri: str) -> str | None:
        """The session that a chat belongs to."""
        ...

    def unsettled(self) -> Sequence[str]:
        """URIs of the sessions and chats in which something is under way: a turn, a question, a client's role."""
        ...

    def channels(self, kind: str) -> Sequence[str]:
        """URIs of the open channels of one kind, such as `terminal`."""
        ...

    def dispatch(self, uri: str, action: StateAction) -> None:
        """Reduce, log and send an action of the host's own. A malformed action raises."""
        ...

    def open_channel(
        self, uri: str, state: Mapping[str, Any], *, kind: str | None = None, is_retold: bool = False
    ) -> None:
        """Create a state-bearing channel (a terminal, a watch). `is_retold`: its first action replaces the whole state,
        so a client that saw an earlier life of the channel is brought up to date by actions. `kind` is what the URI
        says, unless another one is given.
        """
        ...

    def close_channel(self, uri: str) -> None: ...

    async def rest_channel(self, uri: str) -> None:
        """Keep only the text of a channel in which nothing happens any more, once all of it is durable."""
        ...

    async def durable(self) -> None:
        """Wait until everything so far is on disk; raises when the disk does not take it."""
        ...

    async def room(self, uri: str) -> None:
        """Wait while the disk or the subscribers of a channel are behind, so that an endless producer does not outrun
        them."""
        ...

    def measures(self) -> Measures:
        """How much the host did so far, and how much waits now."""
        ...

    def client(self, client_id: str) -> ConnectedClient | None: ...

    def subscribers(self, uri: str) -> Sequence[ConnectedClient]: ...

    def tools_changed(self, session_uri: str) -> None:
        """Say that what a source of tools offers for a session (`Registration.offer_tools`) has changed."""
        ...

    def tools(self, session_uri: str) -> Sequence[Tool]:
        """All tools of a session, with the names that its models use."""
        ...

    def follow_tools(self, session_uri: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Hear when the tools of a session change; call the result to stop."""
        ...

    def running_turn(self, chat_uri: str) -> Turn | None:
        """The turn that runs in a chat, as its agent has it."""
        ...

    def loads_servers(self, session_uri: str) -> Sequence[str]:
        """Files of a workspace whose MCP servers the agent of a session starts by itself (`Agent.loads_servers`)."""
        ...

    def sampling(self, session_uri: str) -> JsonObject | None:
        """Which parts of MCP sampling the agent of a session supports (`Agent.sampling`); None: nothing."""
        ...

    async def sample(self, session_uri: str, request: JsonObject) -> JsonObject:
        """Have the agent of a session answer a `sampling/createMessage`; raises `AgentError`."""
        ...

    async def check_call(self, session_uri: str, tool: Tool, tool_input: str, client_id: str) -> str | None:
        """Why a client may not call a tool directly, without the agent, or None. Guards and denying rules are asked,
        and what is decided is recorded."""
        ...

    def agents_changed(self) -> None:
        """Say that what a feature says about agents (`Registration.describe_agents`) has changed."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run `work` as a task the host owns and ends; its failure is logged, never lost."""
        ...

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def new_id(self) -> str: ...


CommandHandler = Callable[[Any, Any], Awaitable[Any]]
"""Serves one request method: the client that asks (a `ConnectedClient`) and its validated params; returns the result
or raises an error of `ahpkit.protocol.errors`."""

Refusal = Callable[[str, str, Any, Any], str | None]
"""Client, channel, action, state: why the client may not dispatch this, or None."""

Amendment = Callable[[str, Any], Any]
"""Channel and action: the action as it is applied."""

Authenticator = Callable[[str, Any], Awaitable[bool]]
"""Client and params of `authenticate`: whether the token was for this feature."""


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


_T = TypeVar("_T")


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
        if action_type not in self._found:
            self._found[action_type] = [one for one, begins in self._all if action_type.startswith(begins)]
        return self._found[action_type]


class Registration:
    """What features offer. It is filled while the host is put together, in the order of the features, and only read
    after that."""

    def __init__(self) -> None:
        # What clients can ask for, and see.
        self.commands: dict[str, Command] = {}
        self.notifications: dict[str, Callable[[Any, Any], None]] = {}
        self.completion_sources: list[Callable[[str, str, int], Awaitable[Sequence[CompletionItem]]]] = []
        self.authenticators: list[Authenticator] = []
        self.channel_guards: list[Callable[[str, str], Awaitable[None]]] = []
        self.channel_openers: list[Callable[[str], Awaitable[bool]]] = []
        self.stateless_channels: list[Callable[[str], bool]] = []
        self.resource_readers: dict[str, Callable[[str], Awaitable[tuple[bytes, str]]]] = {}
        self.telemetry: TelemetryCapabilities | None = None
        self.routes: list[Callable[[Any], None]] = []
        # Actions.
        self._listeners = _ByType[Callable[[Applied], None]]()
        self._refusals = _ByType[Refusal]()
        self.amendments: dict[str, list[Amendment]] = {}
        self.not_stored: list[Callable[[str], None]] = []
        # Clients that come and go.
        self.client_back: list[Callable[[str, bool], None]] = []
        self.client_gone: list[Callable[[str], None]] = []
        self.client_repeated: list[Callable[[str, str], None]] = []
        self.client_unsubscribed: list[Callable[[str, str], None]] = []
        self.subscribed: list[Callable[[str], None]] = []
        self.unsubscribed: list[Callable[[str], None]] = []
        # The life of sessions and chats.
        self.recoveries: list[Callable[[], None]] = []
        self.directory_checks: list[Callable[[str], Awaitable[None]]] = []
        self.directory_choosers: list[Callable[[str, Path, Mapping[str, Any]], Awaitable[Path]]] = []
        self.directory_makers: list[Callable[[str], Awaitable[None]]] = []
        self.session_settings: list[Callable[[Path], Awaitable[Mapping[str, Any]]]] = []
        self.session_preparers: list[Callable[[str], Awaitable[None]]] = []
        self.session_busy: list[Callable[[str], bool]] = []
        self.session_rested: list[Callable[[str], object]] = []
        self.session_disposed: list[Callable[[str], None]] = []
        self.chat_disposed: list[Callable[[str], object]] = []
        self.chat_moved: list[Callable[[str, str], object]] = []
        # What agents get in a turn.
        self.agent_details: list[Callable[[str], Mapping[str, Any]]] = []
        self.agent_servers: list[Callable[[Chat], Awaitable[Sequence[McpServerOffer]]]] = []
        self.turn_preparers: list[Callable[[Chat, Message, str, TurnContext], Awaitable[str]]] = []
        self.tool_guards: list[Callable[[Chat, str, str], Awaitable[str | None]]] = []
        self.tool_sources: list[ToolSource] = []
        self.content: Callable[[str, bytes, str], str] | None = None
        self.canvases: Callable[[Chat], CanvasRuntime] | None = None

    # What clients can ask for.

    def command(self, command: Command) -> None:
        """Serve a request method."""
        if command.name in self.commands:
            raise LocalProtocolError(f"{command.name} is served by another part of the host already")
        self.commands[command.name] = command

    def notification(self, name: str, hear: Callable[[Any, Any], None]) -> None:
        """`hear(client, params)`: hear a notification of clients."""
        self.notifications[name] = hear

    def serve_stateless(self, serves: Callable[[str], bool]) -> None:
        """`serves(uri)`: whether clients may subscribe to this channel although it has no state (telemetry, MCP)."""
        self.stateless_channels.append(serves)

    def advertise_telemetry(self, channels: TelemetryCapabilities) -> None:
        """`InitializeResult.telemetry`: channels, or templates of channels, by signal. Only one feature may do this."""
        self.telemetry = channels

    def open_channels(self, opens: Callable[[str], Awaitable[bool]]) -> None:
        """`opens(uri)`: make a channel that exists only while somebody is subscribed; False: not mine."""
        self.channel_openers.append(opens)

    def guard_channels(self, guard: Callable[[str, str], Awaitable[None]]) -> None:
        """`guard(client_id, uri)`: raise `PermissionDenied` when a client may not observe a channel."""
        self.channel_guards.append(guard)

    def read_resources(self, scheme: str, read: Callable[[str], Awaitable[tuple[bytes, str]]]) -> None:
        """`read(uri)`: bytes and content type of a resource with this scheme, for `resourceRead`."""
        self.resource_readers[scheme] = read

    def complete(self, source: Callable[[str, str, int], Awaitable[Sequence[CompletionItem]]]) -> None:
        """`source(chat_uri, text, offset)`: items offered at an offset (UTF-16 code units) of a text."""
        self.completion_sources.append(source)

    def authenticate(self, take: Authenticator) -> None:
        """`take(client_id, params)`: take a token of a client, with what `authenticate` says of it; False when this
        feature did not ask for it."""
        self.authenticators.append(take)

    def route(self, mount: Callable[[Any], None]) -> None:
        """`mount(router)`: serve HTTP below a prefix. The HTTP front brings its `ahpkit.http.router.Router`."""
        self.routes.append(mount)

    # What happens.

    def listen(self, heard: Callable[[Applied], None], *beginnings: str) -> None:
        """Hear of every action that was applied; with `beginnings`, of those whose type begins with one of them.

        Must not block, may dispatch: it runs inside the sequence.
        """
        self._listeners.add(heard, beginnings)

    def listeners(self, action_type: str) -> Sequence[Callable[[Applied], None]]:
        """Who hears of actions of this type, in the order in which they registered."""
        return self._listeners.of(action_type)

    def on_not_stored(self, heard: Callable[[str], None]) -> None:
        """`heard(channel)`: an action of this channel could not be stored. The channel's state is again as before the
        action."""
        self.not_stored.append(heard)

    def refuse(self, rule: Refusal, *beginnings: str) -> None:
        """Have a rule asked about every client's action; with `beginnings`, about those whose type begins with one.

        Asked after the host's own policy agreed.
        """
        self._refusals.add(rule, beginnings)

    def refusals(self, action_type: str) -> Sequence[Refusal]:
        """The rules for actions of this type."""
        return self._refusals.of(action_type)

    def amend(self, action_type: str, amend: Amendment) -> None:
        """`amend(channel, action)`: what the host adds to an action of this type before it is applied and logged."""
        self.amendments.setdefault(action_type, []).append(amend)

    def on_client_back(self, heard: Callable[[str, bool], None]) -> None:
        """`heard(client_id, resumed)`: a client connected. With `reconnect` it resumed, and follows what it named."""
        self.client_back.append(heard)

    def on_client_gone(self, heard: Callable[[str], None]) -> None:
        """A client's connection ended. Must not block, may dispatch."""
        self.client_gone.append(heard)

    def on_client_repeated(self, heard: Callable[[str, str], None]) -> None:
        """`heard(client_id, session_uri)`: an active client said again what it offers. Other clients get no action for
        that."""
        self.client_repeated.append(heard)

    def on_client_unsubscribed(self, heard: Callable[[str, str], None]) -> None:
        """`heard(client_id, uri)`: a client unsubscribed from a channel. Losing the connection does not count."""
        self.client_unsubscribed.append(heard)

    def on_subscribed(self, heard: Callable[[str], None]) -> None:
        """Somebody subscribes to a channel."""
        self.subscribed.append(heard)

    def on_unsubscribed(self, heard: Callable[[str], None]) -> None:
        """A channel lost its last subscriber."""
        self.unsubscribed.append(heard)

    def on_session_disposed(self, heard: Callable[[str], None]) -> None:
        """A session and its chats are gone."""
        self.session_disposed.append(heard)

    def on_chat_disposed(self, heard: Callable[[str], object]) -> None:
        """A chat is gone, alone or with its session."""
        self.chat_disposed.append(heard)

    def on_chat_moved(self, heard: Callable[[str, str], object]) -> None:
        """`heard(chat_uri, session_uri)`: a chat belongs to another session now."""
        self.chat_moved.append(heard)

    def on_session_rested(self, heard: Callable[[str], object]) -> None:
        """Nobody uses a session: drop what is held for it in memory. It is prepared again before it is used."""
        self.session_rested.append(heard)

    def keep_awake(self, busy: Callable[[str], bool]) -> None:
        """`busy(session_uri)`: whether this feature still needs the session, so that it must not rest."""
        self.session_busy.append(busy)

    # What sessions, turns and agents get.

    def check_directory(self, check: Callable[[str], Awaitable[None]]) -> None:
        """`check(uri)`: raise an error of the protocol when no session may have this working directory."""
        self.directory_checks.append(check)

    def offer_settings(self, settings: Callable[[Path], Awaitable[Mapping[str, Any]]]) -> None:
        """`settings(directory)`: schemas of settings, by name, that new sessions in this directory have besides the
        agent's own."""
        self.session_settings.append(settings)

    def choose_directory(self, choose: Callable[[str, Path, Mapping[str, Any]], Awaitable[Path]]) -> None:
        """`choose(session_uri, directory, settings)`: where a new session works. The directory need not exist yet."""
        self.directory_choosers.append(choose)

    def make_directory(self, make: Callable[[str], Awaitable[None]]) -> None:
        """`make(session_uri)`: create the directory that was chosen, before anything else uses it."""
        self.directory_makers.append(make)

    def prepare_session(self, prepare: Callable[[str], Awaitable[None]]) -> None:
        """A session is being created (or was restored); it becomes ready afterwards. Raising fails the creation."""
        self.session_preparers.append(prepare)

    def prepare_turn(self, prepare: Callable[[Chat, Message, str, TurnContext], Awaitable[str]]) -> None:
        """Add to a turn's context before the agent sees it; returns the prompt, expanded or as it was."""
        self.turn_preparers.append(prepare)

    def guard_tools(self, guard: Callable[[Chat, str, str], Awaitable[str | None]]) -> None:
        """`guard(chat, name, tool_input)`: a reason to deny a tool call before anyone is asked, or None."""
        self.tool_guards.append(guard)

    def describe_agents(self, describe: Callable[[str], Mapping[str, Any]]) -> None:
        """`describe(provider)`: further fields of an agent in root state. The host writes the list."""
        self.agent_details.append(describe)

    def store_content(self, store: Callable[[str, bytes, str], str]) -> None:
        """`store(session_uri, data, content_type)`: keep what an agent produced; returns its URI. Only one feature may
        do this."""
        if self.content is not None:
            raise LocalProtocolError("another part of the host stores content already")
        self.content = store

    def offer_canvases(self, runtime_of: Callable[[Chat], CanvasRuntime]) -> None:
        """Canvases for the agent of a chat. Only one feature may do this."""
        if self.canvases is not None:
            raise LocalProtocolError("another part of the host offers canvases already")
        self.canvases = runtime_of

    def offer_tools(self, source: ToolSource) -> None:
        """Tools for the models of every session, whatever their agent."""
        self.tool_sources.append(source)

    def serve_agents(self, servers: Callable[[Chat], Awaitable[Sequence[McpServerOffer]]]) -> None:
        """`servers(chat)`: MCP servers for an agent that gets its tools that way; they stay the same as long as the
        chat lives."""
        self.agent_servers.append(servers)

    # After a restart.

    def recover(self, recover: Callable[[], None]) -> None:
        """Repair what an earlier run left unfinished: only by actions, and without waiting. The states are loaded, no
        client is connected, no turn runs, and the features that registered earlier have recovered."""
        self.recoveries.append(recover)


def tell(listeners: Iterable[Callable[..., object]], *about: object) -> None:
    """Tell every feature what happened, also when one of them fails."""
    for listener in listeners:
        try:
            listener(*about)
        except Exception:  # The other features still have to hear of it.
            _log.exception("a feature failed when it heard of %s", about[0])


class Feature(abc.ABC):
    """Base of all features."""

    name: str = "feature"

    @abc.abstractmethod
    def register(self, host: Registration, services: Services) -> None:
        """Register what this feature offers, and keep what it may use. Called once, before anything else."""

    async def start(self) -> None:
        """Everything is recovered, and no client is connected yet. A start that fails stops the host."""

    def stopping(self) -> None:
        """The host stops, and clients are still connected: tell them what will no longer be answered."""

    async def aclose(self) -> None:
        """The host stops, or a start failed: end whatever `start` began."""


__all__ = [
    "Applied",
    "Command",
    "CommandHandler",
    "ConnectedClient",
    "Feature",
    "Measures",
    "Refusal",
    "Registration",
    "Services",
    "ToolSource",
    "Values",
    "tell",
]
