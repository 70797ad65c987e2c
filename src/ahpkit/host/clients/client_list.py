"""Lists the connected clients: the extension `ahpkit/clients`, because the protocol has no command for it.

`x-ahpkit/clients/list` answers with every client: its id, the protocol version it speaks, what it calls itself
(`clientInfo`), where it comes from and how many channels it follows. While nothing can be stored it also says why: who
waits for an answer wants to know. It is for people; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable

from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.connection import Connection
from ahpkit.host.clients.extensions import Extension
from ahpkit.host.feature import ConnectedClient
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import CLIENTS

EXTENSION = CLIENTS

_LONGEST = 200
"""Characters of what a client calls itself."""


def register(
    extend: Callable[..., Extension], clients: Clients, *, failing: Callable[[], str | None] = lambda: None
) -> None:
    """Let clients ask who is connected; `extend` is `Host.extension`, `failing` says why nothing can be stored."""
    extension = extend(EXTENSION)

    @extension.request("list")
    def list_clients(  # pyright: ignore[reportUnusedFunction]  # The decorator registers it.
        client: ConnectedClient, params: JsonObject
    ) -> JsonObject:
        found = {"clients": [_described(one, asks=one is client) for one in clients.clients()]}
        return found if (reason := failing()) is None else {**found, "notStored": reason}


def _described(client: Connection, *, asks: bool) -> JsonObject:
    said = (client.info.get(key) for key in ("title", "name", "version"))
    title, name, version = (value[:_LONGEST] if isinstance(value, str) else None for value in said)
    found: JsonObject = {
        "clientId": client.client_id,
        "protocolVersion": client.outlet.dialect.version,
        "address": client.transport.peer.address,
        "channels": len(client.outlet.channels),
    }
    if title or name:
        found["name"] = " ".join(word for word in (title or name, version) if word)
    return {**found, "self": True} if asks else found


__all__ = ["EXTENSION", "register"]
