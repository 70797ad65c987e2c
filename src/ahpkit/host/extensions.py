"""Protocol extensions: methods that begin with `_`, who offers them, who may be called. Knows no transport.

The host's own are registered with `Host.extension`; clients announce theirs in `capabilities._meta`, agents in their
own capabilities. Nobody is called that did not announce.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast

from ahpkit.host.agent import Chat
from ahpkit.host.feature import ConnectedClient
from ahpkit.protocol.codec import encode
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import (
    InternalError,
    LocalProtocolError,
    MethodNotFound,
    TransportClosed,
)
from ahpkit.protocol.extensions import announced, announces, check_feature, check_name
from ahpkit.protocol.meta_keys import OURS

_log = logging.getLogger(__name__)

Handler = Callable[[ConnectedClient, JsonObject], Awaitable[Any] | Any]
"""Serves a client: who asks, and the params."""

AgentHandler = Callable[[Chat, JsonObject], Awaitable[Any] | Any]
"""Serves an agent: the chat it asks for, and the params."""

AGENT_CHANNEL = "ahpkit/agent-channel"
"""`_meta` of what an agent says to a client: the agent's own `channel`, because ours stands in its place."""

HOST_META = "ahpkit/host"
"""Where the host tells about itself: no extension can have this name."""

PATIENCE = 60.0
"""Seconds for a client to answer an agent: enough for a person to look, and the agent does not hang for ever."""

MAX_ANNOUNCEMENT = 8 * 1024
"""Bytes of what one client announces under one name. Agents read a line of some size; a manual is no announcement."""

C = TypeVar("C", bound=type[Any])


class Audience(Protocol):
    """Which clients could be asked about a session."""

    def active_client(self, session_uri: str) -> str | None: ...

    def clients(self) -> Sequence[ConnectedClient]: ...

    def subscribers(self, uri: str) -> Sequence[ConnectedClient]: ...


class Spawn(Protocol):
    """Runs work that nobody waits for, as a task of the host."""

    def __call__(self, work: Coroutine[Any, Any, None], /, *, name: str) -> None: ...


class Extension:
    """One extension of this host. Decorate functions with `request` and `notification`, or a class with the whole."""

    def __init__(self, name: str, *, version: str | None, capability: JsonObject) -> None:
        check_name(name)
        self.name = name
        self.capability: JsonObject = ({"version": version} if version else {}) | capability
        encode(self.capability)  # Raises here, where it can be seen, what would fail in every handshake.
        self.requests: dict[str, Handler] = {}
        self.notifications: dict[str, Handler] = {}
        self.agent_requests: dict[str, AgentHandler] = {}
        self.agent_notifications: dict[str, AgentHandler] = {}

    def __call__(self, handlers: C) -> C:
        """Each public method of a class (one object is made of it) serves the request and hears the notification."""
        served = handlers()
        for name, method in inspect.getmembers(served, callable):
            if not name.startswith("_"):
                self.request(name)(method)
                self.notification(name)(method)
        return handlers

    def request(self, method: str) -> Callable[[Handler], Handler]:
        """Serve `_<name>/<method>` to clients."""
        return self._register(self.requests, method)

    def notification(self, method: str) -> Callable[[Handler], Handler]:
        """Hear `_<name>/<method>` from clients."""
        return self._register(self.notifications, method)

    def agent_request(self, method: str) -> Callable[[AgentHandler], AgentHandler]:
        """Serve `_<name>/<method>` to agents; without such a handler an agent's request goes to a client."""
        return self._register(self.agent_requests, method)

    def agent_notification(self, method: str) -> Callable[[AgentHandler], AgentHandler]:
        """Hear `_<name>/<method>` from agents, besides the clients that do."""
        return self._register(self.agent_notifications, method)

    @property
    def for_agents(self) -> bool:
        return bool(self.agent_requests or self.agent_notifications)

    def _register(self, table: dict[str, Any], method: str) -> Callable[[Any], Any]:
        check_feature(method)
        full = f"_{self.name}/{method}"

        def register(handler: Any) -> Any:
            if full in table:
                raise LocalProtocolError(f"{full} has a handler already")
            table[full] = handler
            return handler

        return register


class Extensions:
    """The extensions of a host, and the way between agents and the clients that share one."""

    def __init__(self, audience: Audience, *, spawn: Spawn, patience: float = PATIENCE) -> None:
        self._audience = audience
        self._spawn = spawn
        self._patience = patience
        self._extensions: dict[str, Extension] = {}

    def register(self, extension: Extension) -> None:
        if extension.name == HOST_META or extension.name in self._extensions:
            raise LocalProtocolError(f"the extension {extension.name!r} is registered already")
        self._extensions[extension.name] = extension

    def advertised(self) -> JsonObject:
        """What goes into `_meta` of the initialize result and of root state."""
        return {name: extension.capability for name, extension in self._extensions.items()}

    # What clients say.

    def client_request(self, method: str) -> Callable[[ConnectedClient, JsonObject], Awaitable[Any]] | None:
        """The handler of a client's extension request, or None."""
        found = (extension.requests.get(method) for extension in self._extensions.values())
        handler = next((handler for handler in found if handler is not None), None)
        return None if handler is None else lambda client, params: _served(method, handler, client, params)

    def client_notification(self, client: ConnectedClient, method: str, params: JsonObject) -> None:
        """Hand an extension notification to whoever registered it; unknown ones are ignored."""
        for extension in self._extensions.values():
            self._hear(method, extension.notifications.get(method), client, params)

    # What agents say.

    def offered(self, chat: Chat) -> JsonObject:
        """What the agent of a chat can call now: what clients announced, the one to be asked first last, and ours."""
        offers: JsonObject = {}
        for client in reversed(self._by_closeness(chat)):
            said = announced(client.capabilities).items()
            offers |= {name: value for name, value in said if not name.startswith(OURS) and _is_small(value)}
        ours = (extension for extension in self._extensions.values() if extension.for_agents)
        return offers | {extension.name: extension.capability for extension in ours}

    async def forward_request(self, chat: Chat, method: str, params: JsonObject) -> Any:
        """Serve an agent: by the host's own handler, else by a client that announced the extension.

        A client that leaves while it is asked is no answer, so the next one is asked. An error of a client is one.
        """
        for extension in self._extensions.values():
            if (handler := extension.agent_requests.get(method)) is not None:
                return await _served(method, handler, chat, params)
        addressed, asked = _addressed(params, chat.uri), list[ConnectedClient]()
        while (client := self._next(chat, method, asked)) is not None:
            asked.append(client)
            try:
                return await client.request(method, addressed, timeout=self._patience)
            except TransportClosed:
                continue
            except TimeoutError:
                raise InternalError(f"{client.client_id} did not answer {method} in {self._patience:g} s") from None
        left = "each client that offered it has left" if asked else "no connected client offers it"
        raise MethodNotFound(f"{method}: {left}")

    def forward_notification(self, chat: Chat, method: str, params: JsonObject) -> None:
        """Tell the chat's subscribers that announced the extension, and the host's own handler."""
        for extension in self._extensions.values():
            self._hear(method, extension.agent_notifications.get(method), chat, params)
        addressed = _addressed(params, chat.uri)
        for client in self._audience.subscribers(chat.uri):
            if announces(announced(client.capabilities), method):
                client.notify(method, addressed)

    def _next(self, chat: Chat, method: str, asked: Iterable[ConnectedClient]) -> ConnectedClient | None:
        able = (client for client in self._by_closeness(chat) if announces(announced(client.capabilities), method))
        return next((client for client in able if client not in asked), None)

    def _by_closeness(self, chat: Chat) -> list[ConnectedClient]:
        """All clients: the session's active one, those that follow the chat, the rest."""
        active = self._audience.active_client(chat.session_uri)
        following = self._audience.subscribers(chat.uri)
        return sorted(self._audience.clients(), key=lambda c: (c.client_id != active, c not in following))

    def _hear(self, method: str, handler: Callable[..., Any] | None, sender: object, params: JsonObject) -> None:
        """Call a handler of notifications now, so that they stay in order; what it awaits runs beside."""
        if handler is None:
            return
        try:
            result = handler(sender, params)
        except Exception:
            _log.exception("the handler of %s failed", method)
            return
        if inspect.isawaitable(result):
            self._spawn(_finish(result), name=method)


async def _served(method: str, handler: Callable[..., Any], caller: object, params: JsonObject) -> Any:
    try:
        result = handler(caller, params)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        _log.warning("the handler of %s was cancelled by something of its own", method)
        raise InternalError from None  # Nobody cancelled the request: an answer is due.


async def _finish(work: Awaitable[Any]) -> None:
    await work


def _addressed(params: JsonObject, channel: str) -> JsonObject:
    """An agent's params for a client: `channel` says which chat it is about. What stood there is kept in `_meta`."""
    meta: object = params.get("_meta")
    kept = cast("JsonObject", meta) if isinstance(meta, dict) else {}
    if "channel" in params:
        kept = {**kept, AGENT_CHANNEL: params["channel"]}
    bare = {key: value for key, value in params.items() if key != "_meta"}
    return {**bare, "channel": channel} | ({"_meta": kept} if kept else {})


def _is_small(value: Any) -> bool:
    return len(encode(value)) <= MAX_ANNOUNCEMENT


__all__ = [
    "AGENT_CHANNEL",
    "HOST_META",
    "MAX_ANNOUNCEMENT",
    "PATIENCE",
    "AgentHandler",
    "Audience",
    "Extension",
    "Extensions",
    "Handler",
    "Spawn",
]
