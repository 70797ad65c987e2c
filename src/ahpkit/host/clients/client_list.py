"""Lists the connected clients: the extension `ahpkit/clients`, because the protocol has no command for it.

`x-ahpkit/clients/list` answers with every client: its id, the protocol version it speaks, what it calls itself
(`clientInfo`), where it comes from and how many channels it follows. While nothing can be stored it also says why. It
is for people; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NotRequired, TypedDict

from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.connection import Connection
from ahpkit.host.clients.extensions import Extension
from ahpkit.host.feature import ConnectedClient
from ahpkit.protocol.meta_keys import CLIENTS
from ahpkit.wire.rpc import Params

_LONGEST = 200
"""Characters of what a client calls itself."""


class _Described(TypedDict):
    """One client. `self` marks the one that asks."""

    clientId: str
    protocolVersion: str
    address: str
    channels: int
    name: NotRequired[str]
    self: NotRequired[bool]


class _ClientList(TypedDict):
    """All clients, and why nothing can be stored at present."""

    clients: list[_Described]
    notStored: NotRequired[str]


def register(
    extend: Callable[..., Extension], clients: Clients, *, failing: Callable[[], str | None] = lambda: None
) -> None:
    """Let clients ask who is connected; `extend` is `Host.extension`, `failing` says why nothing can be stored."""
    extension = extend(CLIENTS)

    @extension.request("list")
    def list_clients(client: ConnectedClient, params: Params) -> _ClientList:
        found: _ClientList = {"clients": [_described(one, asks=one is client) for one in clients.clients()]}
        return found if (reason := failing()) is None else {**found, "notStored": reason}


def _described(client: Connection, *, asks: bool) -> _Described:
    info = client.info or {}
    said = (info.get(key) for key in ("title", "name", "version"))
    title, name, version = (value[:_LONGEST] if isinstance(value, str) else None for value in said)
    found: _Described = {
        "clientId": client.client_id,
        "protocolVersion": client.outlet.dialect.version,
        "address": client.transport.peer.address,
        "channels": len(client.outlet.channels),
    }
    if title or name:
        found["name"] = " ".join(word for word in (title or name, version) if word)
    return {**found, "self": True} if asks else found


__all__ = ["register"]
