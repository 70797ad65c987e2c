"""What a feature is, and what it may use of the host.

Files, terminals, customizations, changesets, canvases, MCP servers and telemetry are features. A feature registers what
it offers on a `Registration` (`ahpkit.host.registration`) while the host is put together. It uses the host through
`Services`. Its actions take the same way as all others. The host also runs without features.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable, Coroutine, KeysView, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from ahpkit.host.agent import Turn
from ahpkit.host.registration import Registration
from ahpkit.host.states import States
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.commands import ClientCapabilities
from ahpkit.protocol.common.state import JsonObject
from ahpkit.tools.registry import Tool


class ConnectedClient(Protocol):
    """A client with an open connection."""

    client_id: str
    capabilities: ClientCapabilities
    """The `capabilities` that it sent in `initialize`, with `_meta`."""

    async def request(self, method: str, params: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        """Send a reverse request and wait for its answer; raises `RpcError`, `TimeoutError` or `ConnectionError`."""
        ...

    def notify(self, method: str, params: Mapping[str, Any]) -> None: ...

    def follows(self, uri: str) -> bool:
        """Whether it is subscribed to a channel."""
        ...


class Values(Protocol):
    """Small values that are stored beside the log and never sent to a client."""

    def get(self, key: str) -> Any | None: ...

    def set(self, key: str, value: object) -> None:
        """Store JSON data with the next commit; None removes the key."""
        ...

    def keys(self, group: str) -> KeysView[str]:
        """The keys that begin with a group, such as `client-version/`, oldest first. This is a view, not a copy."""
        ...

    def items(self, prefix: str) -> Sequence[tuple[str, Any]]: ...


class Measures(NamedTuple):
    """What the host did so far, and how much waits at this moment."""

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

    def reading(self, *uris: str) -> AbstractAsyncContextManager[None]:
        """Read the states of channels that rest piece by piece, so that others are served meanwhile: `state` is quick
        for them until the end of the block."""
        ...

    def session_uris(self) -> Sequence[str]:
        """URIs of all sessions."""
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

    def open_channel(self, uri: str, state: ChannelState, *, kind: str | None = None, is_retold: bool = False) -> None:
        """Create a state-bearing channel (a terminal, a watch). `is_retold`: its first action replaces the whole state,
        so a client that saw an earlier life of the channel needs only actions. `kind` is the channel's kind if the URI
        does not contain it.
        """
        ...

    def close_channel(self, uri: str) -> None: ...

    async def rest_channel(self, uri: str) -> None:
        """Keep only the text of a channel in which nothing happens any more, if all of its changes are durable."""
        ...

    def may_wait(self) -> None:
        """Allow the actions that were dispatched so far in this step of the event loop to be stored and sent a moment
        later. Call it when more actions will follow soon: then all of them share one commit."""
        ...

    async def durable(self) -> None:
        """Wait until everything that was dispatched so far is on disk; raises if the disk cannot be written."""
        ...

    async def room(self, uri: str) -> None:
        """Wait while the disk or the subscribers of a channel are behind. A producer of endless output calls this, so
        that it is not faster than its readers."""
        ...

    def measures(self) -> Measures:
        """What the host did so far, and how much waits now."""
        ...

    def client(self, client_id: str) -> ConnectedClient | None: ...

    def subscribers(self, uri: str) -> Sequence[ConnectedClient]: ...

    def tools_changed(self, session_uri: str) -> None:
        """Call this when the tools that a source (`Registration.tools`) offers for a session have changed."""
        ...

    def tools(self, session_uri: str) -> Sequence[Tool]:
        """All tools of a session, with the names that its models use."""
        ...

    def tool(self, session_uri: str, name: str) -> Tool | None:
        """The tool that a session's models call by this name."""
        ...

    def follow_tools(self, session_uri: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when the tools of a session change; call the result to stop."""
        ...

    def running_turn(self, chat_uri: str) -> Turn | None:
        """The turn that runs in a chat: the object that its agent uses."""
        ...

    def loads_servers(self, session_uri: str) -> Sequence[str]:
        """Files of a workspace whose MCP servers the agent of a session starts by itself (`Agent.loads_servers`)."""
        ...

    def writes_outside_calls(self, session_uri: str) -> bool | None:
        """Whether the agent of a session may write files while no tool call runs (`Agent.writes_outside_calls`)."""
        ...

    def sampling(self, session_uri: str) -> JsonObject | None:
        """Which parts of MCP sampling the agent of a session supports (`Agent.sampling`); None: nothing."""
        ...

    async def sample(self, session_uri: str, request: JsonObject) -> JsonObject:
        """Let the agent of a session answer a `sampling/createMessage`. Raises `AgentError`."""
        ...

    async def check_call(self, session_uri: str, tool: Tool, tool_input: str, client_id: str) -> str | None:
        """Why a client may not call a tool directly, without the agent; None: it may. Guards and denying rules decide,
        and the decision is recorded."""
        ...

    def spawn(self, work: Coroutine[object, None, None], *, name: str) -> asyncio.Task[None]:
        """Run `work` as a task that the host owns and ends. If it fails, the error is logged."""
        ...

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def new_id(self) -> str: ...


class Feature(abc.ABC):
    """Base of all features."""

    name: str = "feature"

    @abc.abstractmethod
    def register(self, host: Registration, services: Services) -> None:
        """Register what this feature offers, and keep `services` for later. Called once, before all other methods."""

    async def start(self) -> None:
        """Start this feature. Everything is recovered, and no client is connected yet. If this fails, the host does not
        start."""

    def stopping(self) -> None:
        """The host stops, and clients are still connected. Cancel the requests that will no longer be answered."""

    async def aclose(self) -> None:
        """The host stops, or its start failed: end everything that `start` began."""


__all__ = ["ConnectedClient", "Feature", "Measures", "Services", "Values"]
