"""Who is connected: client ids, whose they are, and telling all of them something. Knows no methods and no states.

A client id belongs to the credential that first used it. Another connection with the same credential takes it over, and
the old one is closed: that is a client coming back faster than its old connection could end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.codec import encode
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, InvalidRequest

if TYPE_CHECKING:
    from ahpkit.host.connection import Connection
    from ahpkit.host.host import Host

_GOING_AWAY = 1001
"""WebSocket close code of a server that stops: clients dial again until it is back."""

_log = logging.getLogger(__name__)

_MAX_CLIENT_ID = 256
"""Characters. An id is a name, not a document; it is stored with every action."""

_MAX_OWNERS = 10_000
"""Client ids whose owner is remembered; beyond it the oldest that is not connected is forgotten."""

_MAX_CAPABILITIES = 16 * 1024
"""Bytes of one client's capabilities that are remembered while it is away."""

_FAR_BEHIND = 1024 * 1024
"""Bytes unread, a quarter of what costs a connection."""

_READER_PATIENCE = 0.25
"""Seconds. A stalled reader slows nobody down for long: after a few of these it has lost its connection."""

_CLOSE_PATIENCE = 5.0
"""Seconds that all connections together get to say goodbye when the host stops."""


class Clients:
    """All connections of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._connections: set[Connection] = set()
        self._by_id: dict[str, Connection] = {}
        self._owners: dict[str, str | None] = {}
        self._capabilities: dict[str, JsonObject] = {}
        self._empty = asyncio.Event()

    def connected(self, connection: Connection) -> None:
        self._connections.add(connection)

    def admit(self, connection: Connection, client_id: str) -> None:
        """Give a connection its client id."""
        if not 0 < len(client_id) <= _MAX_CLIENT_ID:
            raise InvalidParams(f"clientId: must have 1 to {_MAX_CLIENT_ID} characters")
        owner = self._owners.setdefault(client_id, connection.credential)
        if len(self._owners) > _MAX_OWNERS:
            self._forget_oldest_owner()
        if owner != connection.credential:
            raise InvalidRequest(f"clientId: {client_id!r} belongs to another credential; choose another id")
        old = self._by_id.get(client_id)
        connection.client_id = client_id
        self._by_id[client_id] = connection
        if old is not None:
            old.close("the same client connected again")

    def _forget_oldest_owner(self) -> None:
        gone = next((known for known in self._owners if known not in self._by_id), None)
        if gone is not None:
            del self._owners[gone]
            self._capabilities.pop(gone, None)

    def take_capabilities(self, connection: Connection, capabilities: JsonObject | None) -> None:
        """What a client can do. It says so in `initialize` only, so it is remembered for when it reconnects."""
        known = self._capabilities.pop(connection.client_id, {})
        connection.capabilities = known if capabilities is None else capabilities
        if connection.capabilities and len(encode(connection.capabilities)) <= _MAX_CAPABILITIES:
            self._capabilities[connection.client_id] = connection.capabilities

    def left(self, connection: Connection) -> bool:
        """Forget a connection; True when its client is gone with it."""
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()
        if self._by_id.get(connection.client_id) is not connection:
            return False
        del self._by_id[connection.client_id]
        return True

    def get(self, client_id: str) -> Connection | None:
        return self._by_id.get(client_id)

    def clients(self) -> Sequence[Connection]:
        return list(self._by_id.values())

    def subscribers(self, uri: str) -> Sequence[Connection]:
        return [client for client in self._by_id.values() if uri in client.outbox.channels]

    async def drained(self, uri: str) -> None:
        """Give subscribers of a channel that are far behind a moment to read."""
        transports = (client.outbox.transport for client in self.subscribers(uri))
        behind = [asyncio.ensure_future(slow.drain()) for slow in transports if slow.buffered > _FAR_BEHIND]
        if behind:
            _, stalled = await asyncio.wait(behind, timeout=_READER_PATIENCE)
            for task in stalled:
                task.cancel()

    def active_client(self, session_uri: str) -> str | None:
        active: JsonObject | None = (self._host.state(session_uri) or {}).get("activeClient")
        return active["clientId"] if active else None

    def to_all(self, method: str, params: JsonObject) -> None:
        _notify(self._by_id.values(), method, params)

    def to_root(self, method: str, params: JsonObject) -> None:
        _notify(self.subscribers(ROOT_URI), method, params)

    async def aclose(self, reason: str) -> None:
        """Close every connection and wait until each has ended."""
        for connection in tuple(self._connections):
            connection.close(reason, code=_GOING_AWAY)
        if self._connections:
            self._empty.clear()
            try:
                async with asyncio.timeout(_CLOSE_PATIENCE):
                    await self._empty.wait()
            except TimeoutError:
                _log.warning("%d connections did not end in time", len(self._connections))


def _notify(clients: Iterable[Connection], method: str, params: JsonObject) -> None:
    for client in tuple(clients):
        client.notify(method, params)


__all__ = ["Clients"]
