"""Serves protocol extensions: those of the host for clients and agents, and those of agents for clients.

Their methods begin with `_` or `x-`; both prefixes mean the same.

The host's extensions are registered with `Host.extension` before it starts. Extensions that clients offer to agents are
in `agent_extensions`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from ahpkit.host.agent import AgentChat, AgentError, Chat
from ahpkit.host.feature import ConnectedClient
from ahpkit.host.registration import Command
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InternalError, LocalProtocolError, MethodNotFound
from ahpkit.protocol.extensions import check_feature, check_name
from ahpkit.protocol.meta_keys import OUR_PREFIXES
from ahpkit.wire.codec import encode
from ahpkit.wire.rpc import Params
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)

S = TypeVar("S")

MessageHandler = Callable[[S, Params], object]
"""Handles a message; gets the sender and the params. Returns JSON, or an awaitable of it."""

Handler = MessageHandler[ConnectedClient]
"""Handles a message of a client."""

AgentHandler = MessageHandler[Chat]
"""Handles a message of an agent; gets the chat."""

HOST_META = "ahpkit/host"
"""The key under which the host describes itself, so no extension can have this name."""

_MAX_NAME = 200
"""Characters of a method's name that an error repeats."""

R = TypeVar("R")
H = TypeVar("H", bound=Callable[..., object])
C = TypeVar("C", bound=type[object])


def _itself(full: str, handler: H) -> H:
    return handler


class Extension:
    """One extension of this host. Decorate functions with `request` and `notification`, or decorate a class with the
    extension itself."""

    def __init__(self, name: str, *, version: str | None, capability: JsonObject) -> None:
        check_name(name)
        self.name = name
        self.capability: JsonObject = ({"version": version} if version else {}) | capability
        encode(self.capability)  # An announcement that is not JSON raises here instead of in every handshake.
        self.commands: dict[str, Command] = {}
        self.notifications: dict[str, Handler] = {}
        self.agent_requests: dict[str, AgentHandler] = {}
        self.agent_notifications: dict[str, AgentHandler] = {}

    def __call__(self, handlers: C) -> C:
        """Make one object of a class. Each public method handles the request and the notification with the method's
        name."""
        served = handlers()
        for name, method in inspect.getmembers(served, callable):
            if not name.startswith("_"):
                self.request(name)(method)
                self.notification(name)(method)
        return handlers

    def request(self, method: str, *, changes: bool = False) -> Callable[[Handler], Handler]:
        """Serve `_<name>/<method>` to clients. With `changes` the answer waits until all changes are stored."""

        def make(full: str, handler: Handler) -> Command:
            async def serve(client: ConnectedClient, params: Params) -> object:
                return await served(full, handler, client, params)

            return Command(full, serve, changes=changes)

        return self._register(self.commands, method, make)

    def notification(self, method: str) -> Callable[[Handler], Handler]:
        """Handle the notification `_<name>/<method>` of clients."""
        return self._register(self.notifications, method, _itself)

    def agent_request(self, method: str) -> Callable[[AgentHandler], AgentHandler]:
        """Serve `_<name>/<method>` to agents; without such a handler an agent's request goes to a client."""
        return self._register(self.agent_requests, method, _itself)

    def agent_notification(self, method: str) -> Callable[[AgentHandler], AgentHandler]:
        """Handle the notification `_<name>/<method>` of agents. Clients that announced the extension get it too."""
        return self._register(self.agent_notifications, method, _itself)

    @property
    def for_agents(self) -> bool:
        return bool(self.agent_requests or self.agent_notifications)

    def _register(self, table: dict[str, R], method: str, make: Callable[[str, H], R]) -> Callable[[H], H]:
        check_feature(method)
        full = f"_{self.name}/{method}"

        def register(handler: H) -> H:
            if full in table:
                raise LocalProtocolError(f"{full} has a handler already")
            table[full] = make(full, handler)
            return handler

        return register


class Extensions:
    """The extensions that a host offers, to clients and to agents."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._extensions: dict[str, Extension] = {}

    def register(self, extension: Extension) -> None:
        if extension.name == HOST_META or extension.name in self._extensions:
            raise LocalProtocolError(f"the extension {extension.name!r} is registered already")
        self._extensions[extension.name] = extension

    def advertised(self) -> JsonObject:
        """The entries in `_meta` of the initialize result and of root state."""
        return {name: extension.capability for name, extension in self._extensions.items()}

    # Messages of clients.

    def command(self, method: str) -> Command | None:
        """The row of a client's extension request, or None."""
        found = (extension.commands.get(method) for extension in self._extensions.values())
        return next((command for command in found if command is not None), None)

    def hears(self, method: str) -> Handler:
        """Gives the function that passes a client's notification to its handler. A notification without a handler is
        ignored."""

        def hear(client: ConnectedClient, params: Params) -> None:
            for extension in self._extensions.values():
                self._hear(method, extension.notifications.get(method), client, params)

        return hear

    # Messages of agents.

    def for_agents(self) -> JsonObject:
        """The extensions that the host itself offers to agents."""
        ours = (extension for extension in self._extensions.values() if extension.for_agents)
        return {extension.name: extension.capability for extension in ours}

    def agent_request(self, method: str) -> AgentHandler | None:
        """The host's own handler of an agent's request, or None."""
        found = (extension.agent_requests.get(method) for extension in self._extensions.values())
        return next((handler for handler in found if handler is not None), None)

    def agent_notification(self, chat: Chat, method: str, params: Params) -> None:
        """Pass an agent's notification to its handler."""
        for extension in self._extensions.values():
            self._hear(method, extension.agent_notifications.get(method), chat, params)

    def _hear(self, method: str, handler: MessageHandler[S] | None, sender: S, params: Params) -> None:
        """Call the handler of a notification now, so that notifications stay in order. An async handler continues in a
        task."""
        if handler is None:
            return
        try:
            result = handler(sender, params)
        except Exception:  # A handler is a feature's code.
            _log.exception("the handler of %s failed", method)
            return
        if inspect.isawaitable(result):
            self._tasks.spawn(_finish(result), name=method)


class ExtensionsOfAgents:
    """Passes extension messages of clients to the agents of their sessions."""

    def __init__(self, open_chat: Callable[[str], Awaitable[AgentChat | None]]) -> None:
        """`open_chat(channel)`: the agent's side of a chat, or of a session's default chat."""
        self._open_chat = open_chat

    def command(self, method: str) -> Command | None:
        """The row of a client's request, if it may be for an agent."""
        if not _for_agents(method):
            return None

        async def serve(client: ConnectedClient, params: Params) -> object:
            chat = await self._chat(method, params)
            try:
                return await chat.extension_request(method, _without_channel(params))
            except AgentError as error:
                raise InternalError(error.message) from None

        return Command(method, serve)

    async def hear(self, method: str, params: Params) -> None:
        """Pass a client's notification on."""
        if _for_agents(method):
            with suppress(AgentError, MethodNotFound):
                chat = await self._chat(method, params)
                await chat.extension_notification(method, _without_channel(params))

    async def _chat(self, method: str, params: Params) -> AgentChat:
        channel = params.get("channel")
        chat = await self._open_chat(channel) if isinstance(channel, str) else None
        if chat is None:
            raise MethodNotFound(f"there is no method {method[:_MAX_NAME]}; `channel` names no session with an agent")
        return chat


def _for_agents(method: str) -> bool:
    return method.startswith("_") and not method.removeprefix("_").startswith(OUR_PREFIXES)


def _without_channel(params: Params) -> Params:
    return {key: value for key, value in params.items() if key != "channel"}


async def served(method: str, handler: MessageHandler[S], caller: S, params: Params) -> object:
    """Let a handler, plain or async, serve a request."""
    try:
        result = handler(caller, params)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        _log.warning("the handler of %s was cancelled by something of its own", method)
        raise InternalError from None  # The request itself was not cancelled, so the client waits for an answer.


async def _finish(work: Awaitable[object]) -> None:
    await work


__all__ = ["HOST_META", "AgentHandler", "Extension", "Extensions", "ExtensionsOfAgents", "Handler", "served"]
