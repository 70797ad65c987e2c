"""How a part of the host besides the spine takes part in sessions. Knows no transport and no particular feature.

Customizations, canvases, resources, extensions and MCP are features: they enter by the same door as everyone else
(`Services.dispatch`), hear what was applied, and may refuse what a client dispatches. The spine runs without any.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ahpkit.host.agent import CanvasRuntime, Chat, TurnContext
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject

CommandHandler = Callable[["ConnectedClient", JsonObject], Awaitable[Any]]
"""Serves one request method: the client that asks and its validated params; returns the result or raises an error of
`ahpkit.protocol.errors`."""


class ConnectedClient(Protocol):
    """A client with an open connection."""

    client_id: str
    capabilities: JsonObject
    """What it sent as `initialize.capabilities`, `_meta` included."""

    async def request(self, method: str, params: JsonObject, *, timeout: float = 30.0) -> Any:
        """Send a reverse request and wait for its answer; raises `RpcError`, `TimeoutError` or `ConnectionError`."""
        ...

    def notify(self, method: str, params: JsonObject) -> None: ...


class Applied(NamedTuple):
    """One action that was reduced into a state."""

    channel: str
    action: JsonObject
    server_seq: int
    client_id: str | None
    """Who dispatched it; None: the host itself."""
    before: JsonObject
    after: JsonObject


class Values(Protocol):
    """Small durable values beside the log: never sent to a client."""

    def get(self, key: str) -> Any | None: ...

    def set(self, key: str, value: Any | None) -> None:
        """Store JSON data with the next commit; None removes the key."""
        ...

    def items(self, prefix: str) -> Sequence[tuple[str, Any]]: ...


class Services(Protocol):
    """What a feature gets from the host."""

    @property
    def values(self) -> Values: ...

    def state(self, uri: str) -> JsonObject | None:
        """The present state of a channel; never change it in place."""
        ...

    def session_uris(self) -> Sequence[str]:
        """URIs of the sessions there are."""
        ...

    def dispatch(self, uri: str, action: JsonObject) -> int:
        """The door: reduce, log and send an action of the host's own; returns its serverSeq."""
        ...

    def open_channel(self, uri: str, state: JsonObject) -> None:
        """Create a state-bearing channel (a terminal, a watch)."""
        ...

    def close_channel(self, uri: str) -> None: ...

    async def durable(self) -> None:
        """Wait until everything so far is on disk: before a request that changed something is answered."""
        ...

    async def room(self, uri: str) -> None:
        """Wait while the disk or the subscribers of a channel are behind: the pace of whoever produces without end."""
        ...

    def client(self, client_id: str) -> ConnectedClient | None: ...

    def subscribers(self, uri: str) -> Sequence[ConnectedClient]: ...

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Run `work` as a task the host owns and ends; its failure is logged, never lost."""
        ...

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def new_id(self) -> str: ...


class Feature:
    """Base of all features: every hook does nothing until a feature says otherwise. Hooks are called in one order.

    `on_applied` and `on_client_gone` are synchronous and must not block: they run inside the sequence of actions. They
    may dispatch. Whatever waits belongs into `services.spawn`.
    """

    name: str = "feature"

    services: Services

    @property
    def commands(self) -> Mapping[str, CommandHandler]:
        """Request methods this feature serves."""
        return {}

    async def start(self) -> None:
        """The states are loaded and no client is connected yet."""

    async def aclose(self) -> None:
        """The host stops."""

    def refuse(self, client_id: str, channel: str, action: JsonObject, state: JsonObject) -> str | None:
        """A reason not to apply a client's action, or None. Called after the host's own policy agreed."""
        return None

    def on_applied(self, applied: Applied) -> None:
        """An action was applied; `applied.before is applied.after` when it changed nothing."""

    def on_client_gone(self, client_id: str) -> None:
        """A client's connection ended."""

    def on_session_disposed(self, session_uri: str) -> None:
        """A session and its chats are gone."""

    async def check_directory(self, uri: str) -> None:
        """Raise an error of the protocol when no session may have this working directory."""

    async def prepare_session(self, session_uri: str) -> None:
        """A session is being created (or was restored); it becomes ready afterwards. Raising fails the creation."""

    async def prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        """Add to a turn's context before the agent sees it; returns the prompt, expanded or as it was."""
        return prompt

    def canvas_runtime(self, chat: Chat) -> CanvasRuntime | None:
        """Canvases for the agent of a chat, from the one feature that has them."""
        return None

    async def before_tool(self, chat: Chat, name: str, tool_input: str) -> str | None:
        """A reason to deny a tool call before anyone is asked, or None."""
        return None

    def store_content(self, session_uri: str, data: bytes, content_type: str) -> str | None:
        """Keep content an agent produced; returns the URI `resourceRead` serves it under, from the one that can."""
        return None

    async def authenticate(self, resource: str, token: str) -> bool:
        """Take a token a client pushed, if something of this feature asked for it."""
        return False

    def serves_channel(self, uri: str) -> bool:
        """Whether clients may subscribe to this channel although it has no state."""
        return False

    def on_unsubscribed(self, uri: str) -> None:
        """A channel lost its last subscriber."""

    async def completions(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        """Items offered at `offset` (UTF-16 code units) of `text`."""
        return ()


__all__ = ["Applied", "CommandHandler", "ConnectedClient", "Feature", "Services", "Values"]
