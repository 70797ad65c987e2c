"""Passes extension messages from an agent to the host, or to a client that announced the extension.

Clients announce their extensions in `capabilities._meta`. A client is never called for an extension that it did not
announce. Messages from a client to an agent are in `extensions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from ahpkit.host.agent import Chat
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.extensions import Extensions, served
from ahpkit.host.feature import ConnectedClient
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InternalError, MethodNotFound, TransportClosed
from ahpkit.protocol.extensions import announced, announces
from ahpkit.protocol.meta_keys import OUR_PREFIXES
from ahpkit.wire.codec import encode
from ahpkit.wire.rpc import Params

AGENT_CHANNEL = "ahpkit/agent-channel"
"""Key in `_meta` of an agent's message to a client. It holds the agent's own `channel`, because the host sets `channel`
to the chat."""

PATIENCE = 60.0
"""Seconds for a client to answer an agent: enough for a person to react, and short enough that the agent does not
hang."""

MAX_ANNOUNCEMENT = 8 * 1024
"""Bytes of one announcement of a client. Agents read lines of limited size."""


class AgentExtensions:
    """Serves the extension messages of agents."""

    def __init__(self, extensions: Extensions, clients: Clients, *, patience: float = PATIENCE) -> None:
        self._extensions = extensions
        self._clients = clients
        self._patience = patience

    def offered(self, chat: Chat) -> JsonObject:
        """The extensions that the agent of a chat can call now: those that the host offers to agents, and those that
        clients announced.

        When several clients announce the same name, the announcement of the client that is asked first is used.
        """
        offers: JsonObject = {}
        for client in reversed(self._by_closeness(chat)):
            said = announced(client.capabilities).items()
            offers |= {name: value for name, value in said if not name.startswith(OUR_PREFIXES) and _is_small(value)}
        return offers | self._extensions.for_agents()

    async def forward_request(self, chat: Chat, method: str, params: Params) -> object:
        """Answer an agent's request: by the host's own handler, or else by a client that announced the extension.

        If a client leaves before it has answered, the next client is asked. An error of a client counts as an answer.
        """
        if (handler := self._extensions.agent_request(method)) is not None:
            return await served(method, handler, chat, params)
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

    def forward_notification(self, chat: Chat, method: str, params: Params) -> None:
        """Pass a notification to the host's own handler, and to those subscribers of the chat that announced the
        extension."""
        self._extensions.agent_notification(chat, method, params)
        addressed = _addressed(params, chat.uri)
        for client in self._clients.subscribers(chat.uri):
            if announces(announced(client.capabilities), method):
                client.notify(method, addressed)

    def _next(self, chat: Chat, method: str, asked: Iterable[ConnectedClient]) -> ConnectedClient | None:
        able = (client for client in self._by_closeness(chat) if announces(announced(client.capabilities), method))
        return next((client for client in able if client not in asked), None)

    def _by_closeness(self, chat: Chat) -> list[ConnectedClient]:
        """All clients: first the session's active client, then those that follow the chat, then all others."""
        active = self._clients.active_client(chat.session_uri)
        following = self._clients.subscribers(chat.uri)
        return sorted(self._clients.clients(), key=lambda c: (c.client_id != active, c not in following))


def _addressed(params: Params, channel: str) -> Params:
    """An agent's params for a client. `channel` becomes the chat; the agent's own `channel`, if it set one, moves to
    `_meta`."""
    meta: object = params.get("_meta")
    kept = cast("JsonObject", meta) if isinstance(meta, dict) else {}
    if "channel" in params:
        kept = {**kept, AGENT_CHANNEL: params["channel"]}
    bare = {key: value for key, value in params.items() if key != "_meta"}
    return {**bare, "channel": channel} | ({"_meta": kept} if kept else {})


def _is_small(value: object) -> bool:
    return len(encode(value)) <= MAX_ANNOUNCEMENT


__all__ = ["AGENT_CHANNEL", "MAX_ANNOUNCEMENT", "AgentExtensions"]
