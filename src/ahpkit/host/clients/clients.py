"""Keeps the connected clients: their ids and owners, their subscriptions, and notifications to them.

A client id belongs to the credential that first used it. Another connection with the same credential takes the id over,
and the old connection is closed. This happens when a client reconnects before its old connection has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NotRequired, TypedDict

from ahpkit.dialects.base import Dialect, SentAction
from ahpkit.host.clients.connection import Connection
from ahpkit.host.clients.extensions import Extension
from ahpkit.host.feature import ConnectedClient
from ahpkit.host.registration import ChannelHooks, ClientEvents, Event
from ahpkit.host.spine.fanout import Fanout, Receiver, Sameness, latency_class
from ahpkit.host.spine.store import Origin, Store
from ahpkit.host.states import NO_SESSION
from ahpkit.log.entry import Entry
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.commands import AuthRequiredParams, ClientCapabilities
from ahpkit.protocol.common.state import Implementation
from ahpkit.protocol.errors import InvalidParams, InvalidRequest
from ahpkit.protocol.meta_keys import CLIENTS
from ahpkit.protocol.root import SessionAddedParams, SessionRemovedParams, SessionSummaryChangedParams
from ahpkit.wire.codec import decode_own, encode

_Notice = AuthRequiredParams | SessionAddedParams | SessionRemovedParams | SessionSummaryChangedParams
"""What many clients are told at once."""

_GOING_AWAY = 1001
"""WebSocket close code of a server that stops. Clients reconnect until the server is back."""

_log = logging.getLogger(__name__)

_NOT_STORED = "this action could not be stored, so it was not done"

_MAX_CLIENT_ID = 256
"""Characters of a client id. It is stored with every action."""

_MAX_AWAY = 10_000
"""Clients that are remembered while they are not connected. If there are more, the one that left first is forgotten."""

_MAX_CAPABILITIES = 16 * 1024
"""Bytes of capabilities that are remembered while a client is not connected. Larger ones are not remembered."""

_MAX_INFO = 4 * 1024
"""Bytes of a `clientInfo` that is remembered. A larger one is not."""

_FAR_BEHIND = 1024 * 1024
"""A client with more unread bytes is far behind. At three times this number it is disconnected
(`HostConfig.max_client_backlog`)."""

_MOMENTS = 50
"""How many times in a row a producer waits for a client that still reads."""

_CLOSE_PATIENCE = 5.0
"""Seconds for all connections together to close when the host stops."""


class Clients:
    """All connections of a host.

    A client that is far behind slows producers down, as long as it reads something every `reader_patience` seconds. Up
    to `max_away` clients are remembered while they are not connected.
    """

    def __init__(
        self,
        store: Store,
        fanout: Fanout,
        *,
        events: ClientEvents,
        channels: ChannelHooks,
        not_stored: Event[[str]],
        reader_patience: float,
        max_away: int = _MAX_AWAY,
    ) -> None:
        self._store = store
        self._fanout = fanout
        self._events = events
        self._channels = channels
        self._not_stored = not_stored
        self._reader_patience = reader_patience
        self._max_away = max_away
        self._connections: dict[Receiver, Connection] = {}
        """Connections by their outlet."""
        self._by_id: dict[str, Connection] = {}
        self._owners: dict[str, str | None] = {}
        self._away: OrderedDict[str, None] = OrderedDict()
        """Ids of clients that are not connected now; the client that left first comes first."""
        self._capabilities: dict[str, ClientCapabilities] = {}
        self._infos: dict[str, Implementation] = {}
        self._empty = asyncio.Event()

    # -- coming and going ------------------------------------------------------------------------------------------

    def connected(self, connection: Connection) -> None:
        self._connections[connection.outlet] = connection

    def admit(
        self,
        connection: Connection,
        client_id: str,
        *,
        capabilities: ClientCapabilities | None,
        dialect: Dialect,
        info: Implementation | None = None,
    ) -> None:
        """Give a connection its client id, or raise the reason for a refusal.

        A client sends its capabilities only in `initialize`. Without them, as in `reconnect`, the last ones are used.
        """
        self._take_over(connection, client_id)
        self._take_capabilities(connection, capabilities)
        self._take_info(connection, info)
        connection.outlet.speak(dialect)

    def back(self, connection: Connection, *, resumed: bool) -> None:
        """Tell the features that a client has connected. By now it follows the channels that it asked for."""
        self._events.back.tell(connection.client_id, resumed)

    def _take_over(self, connection: Connection, client_id: str) -> None:
        if not 0 < len(client_id) <= _MAX_CLIENT_ID:
            raise InvalidParams(f"clientId: must have 1 to {_MAX_CLIENT_ID} characters")
        owner = self._owners.setdefault(client_id, connection.credential)
        if owner != connection.credential:
            raise InvalidRequest(f"clientId: {client_id!r} belongs to another credential; choose another id")
        old = self._by_id.get(client_id)
        connection.identify(client_id)
        self._by_id[client_id] = connection
        self._away.pop(client_id, None)
        if old is not None:
            old.close("the same client connected again")

    def _gone_away(self, client_id: str) -> None:
        """Remember a client until it comes back, or until too many others have left after it."""
        self._away[client_id] = None
        if len(self._away) > self._max_away:
            forgotten, _ = self._away.popitem(last=False)
            del self._owners[forgotten]
            self._capabilities.pop(forgotten, None)
            self._infos.pop(forgotten, None)

    def _take_info(self, connection: Connection, info: Implementation | None) -> None:
        """Keep the `clientInfo` of a client. Like its capabilities, a client sends it only in `initialize`."""
        if info is not None and len(encode(info)) <= _MAX_INFO:
            self._infos[connection.client_id] = info
        connection.info = self._infos.get(connection.client_id)

    def _take_capabilities(self, connection: Connection, capabilities: ClientCapabilities | None) -> None:
        known = self._capabilities.pop(connection.client_id, {})
        connection.capabilities = known if capabilities is None else capabilities
        if connection.capabilities and len(encode(connection.capabilities)) <= _MAX_CAPABILITIES:
            self._capabilities[connection.client_id] = connection.capabilities

    def left(self, connection: Connection) -> None:
        """A connection ended. The features are told, unless the client has already connected again."""
        for uri in tuple(connection.outlet.channels):
            self.unsubscribe(uri, connection)
        connection.outlet.close()
        self._connections.pop(connection.outlet, None)
        if not self._connections:
            self._empty.set()
        if self._by_id.get(connection.client_id) is connection:
            del self._by_id[connection.client_id]
            self._gone_away(connection.client_id)
            self._events.gone.tell(connection.client_id)

    async def aclose(self, reason: str) -> None:
        """Close every connection and wait until each has ended."""
        for connection in tuple(self._connections.values()):
            connection.close(reason, code=_GOING_AWAY)
        if self._connections:
            self._empty.clear()
            try:
                async with asyncio.timeout(_CLOSE_PATIENCE):
                    await self._empty.wait()
            except TimeoutError:
                _log.warning("%d connections did not end in time", len(self._connections))

    # -- subscriptions ---------------------------------------------------------------------------------------------

    def set_latency(self, uri: str, connection: Connection, milliseconds: float) -> None:
        """Allow actions of a channel to be held back this long for a client, so that several are written together."""
        if not milliseconds >= 0:
            raise InvalidParams("delivery.maxLatencyMs: must not be negative")
        connection.outlet.latencies.pop(uri, None)
        if (seconds := latency_class(milliseconds)) > 0:
            connection.outlet.latencies[uri] = seconds

    def follow(self, uri: str, connection: Connection) -> None:
        """Subscribe a connection to a channel."""
        self._fanout.subscribe(uri, connection.outlet)
        self._channels.subscribed.tell(uri)

    def unsubscribe(self, uri: str, connection: Connection) -> None:
        followed = connection.follows(uri)
        self._fanout.unsubscribe(uri, connection.outlet)
        if followed and not self._fanout.has_subscribers(uri):
            self._channels.unsubscribed.tell(uri)

    def unfollow(self, uri: str, connection: Connection) -> None:
        """Unsubscribe a client from a channel."""
        followed = connection.follows(uri)
        self.unsubscribe(uri, connection)
        if followed:
            self._events.unsubscribed.tell(connection.client_id, uri)

    def subscribers(self, uri: str) -> Sequence[Connection]:
        """The clients that follow a channel, in the order in which they subscribed."""
        found = (self._connections[outlet] for outlet in self._fanout.subscribers(uri))
        return [client for client in found if self._by_id.get(client.client_id) is client]

    async def drained(self, uri: str) -> None:
        """Wait a moment for subscribers of a channel that are far behind, so that they can read.

        A client that reads, however slowly, is waited for. A client that has stopped reading is not.
        """
        outlets = [client.outlet for client in self.subscribers(uri)]
        for _ in range(_MOMENTS):
            behind = (one for one in outlets if one.unread > _FAR_BEHIND)
            moments = [moment for one in behind if (moment := one.moment(self._reader_patience)) is not None]
            if not moments:
                return
            try:
                await asyncio.wait(moments)
            finally:
                for moment in moments:
                    moment.cancel()

    # -- telling clients -------------------------------------------------------------------------------------------

    def get(self, client_id: str) -> Connection | None:
        return self._by_id.get(client_id)

    def clients(self) -> Sequence[Connection]:
        return list(self._by_id.values())

    def active_client(self, session_uri: str) -> str | None:
        """The id of the session's active client, the first if there are several."""
        active = (self._store.session(session_uri) or NO_SESSION).get("activeClients", ())
        return active[0]["clientId"] if active else None

    def reject(self, uri: str, sent: SentAction, origin: Origin, reason: str) -> None:
        """Send an action back to its dispatcher, in the form in which it was sent."""
        if (client := self._by_id.get(origin.client_id)) is not None:
            client.outlet.answer_action(uri, sent, self._store.committed_head, origin, reason)

    def not_stored(self, entry: Entry) -> None:
        """An action could not be stored, so it was undone: tell the client that sent it, and the features."""
        if entry.client_id is not None and entry.client_seq is not None:
            origin = Origin(entry.client_id, entry.client_seq)
            self.reject(entry.channel, decode_own(entry.payload)["action"], origin, _NOT_STORED)
        self._not_stored.tell(entry.channel)

    def to_all(self, method: str, params: _Notice) -> None:
        _notify(self.clients(), method, params)

    def to_root(self, method: str, params: _Notice) -> None:
        """Notify all subscribers of the root channel."""
        _notify(self.subscribers(ROOT_URI), method, params)


def _notify(clients: Iterable[Connection], method: str, params: _Notice) -> None:
    """Write a notification to clients. It is encoded once for all clients that get the same bytes."""
    made: dict[Sameness, bytes] = {}
    for outlet in (client.outlet for client in clients):
        if outlet.sameness not in made:
            made[outlet.sameness] = outlet.notification(method, params)
        if frame := made[outlet.sameness]:
            outlet.write(frame)


_LONGEST = 200
"""Characters of a client's title, name or version that are shown."""


class _Described(TypedDict):
    """One entry of the list of clients. `self` marks the client that asks."""

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


def register_client_list(
    extend: Callable[..., Extension], clients: Clients, *, failing: Callable[[], str | None] = lambda: None
) -> None:
    """Let clients ask who is connected, by the extension `ahpkit/clients`, because the protocol has no command for it.

    `x-ahpkit/clients/list` answers with every client: its id, its protocol version, its name (`clientInfo`), its
    address and how many channels it follows. While nothing can be stored, the answer also says why. The list is for
    people; no program depends on it. `extend` is `Host.extension`; `failing` returns why nothing can be stored, or
    None.
    """
    extension = extend(CLIENTS)

    @extension.request("list")
    def list_clients(client: ConnectedClient, params: object) -> _ClientList:
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


__all__ = ["Clients", "register_client_list"]
