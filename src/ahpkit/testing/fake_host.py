"""A tiny scripted host for tests of clients: real sequence numbers and reducers, no agents, no storage, no policy.

    host = FakeHost()
    host.open("ahp-session:/s", session_state("ahp-session:/s"))
    async with Client(host.dial) as client: ...
    host.emit("ahp-session:/s", {"type": "session/titleChanged", "title": "x"})

A test can make it: refuse dispatches (`decide`), lose connections (`drop`), lose its log (`forget`), ask the
client something (`request`). `received` lists everything clients sent, as (method, params).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ahpkit.dialects.v0_4.channels import ROOT_URI, reduce
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import ERRORS, NotFound, SessionNotFound
from ahpkit.transports.memory import memory_pair
from ahpkit.wire.errors import MethodNotFound
from ahpkit.wire.peer import Peer
from ahpkit.wire.rpc import RpcConnection
from ahpkit.wire.transport import Transport

NOW = 9999
"""The time of this host, in milliseconds. It never changes."""


def session_state(uri: str, **fields: Any) -> JsonObject:
    """A ready session without chats."""
    summary = {"resource": uri, "provider": "fake", "title": "", "status": 1, "createdAt": NOW, "modifiedAt": NOW}
    return {"summary": summary, "lifecycle": "ready", "chats": [], **fields}


def chat_summary(uri: str) -> JsonObject:
    return {"resource": uri, "title": "", "status": 1, "modifiedAt": "1970-01-01T00:00:09.999Z"}


def chat_state(uri: str, **fields: Any) -> JsonObject:
    """A chat without turns."""
    return {**chat_summary(uri), "turns": [], **fields}


class FakeConnection:
    """One client's connection: what it subscribed to and how to reach it."""

    def __init__(self, rpc: RpcConnection) -> None:
        self.rpc = rpc
        self.client_id = ""
        self.channels: set[str] = set()


class FakeHost:
    """See the module. Close it with `aclose`, or use it as `async with`."""

    def __init__(self) -> None:
        self.states: dict[str, JsonObject] = {ROOT_URI: {"agents": []}}
        self.log: list[JsonObject] = []
        self.seq = 0
        self.received: list[tuple[str, JsonObject]] = []
        self.decide: Callable[[str, JsonObject], str | None] = lambda channel, action: None
        """A reason to refuse a client's action, or None."""
        self.handlers: dict[str, Callable[[JsonObject], Any]] = {}
        """Requests beyond the usual ones; may raise or return an awaitable."""
        self.on_applied: list[Callable[[str, JsonObject], None]] = []
        """Called after each applied action of a client. A scripted agent answers here."""
        self.meta: JsonObject = {}
        self.telemetry: JsonObject = {}
        """The telemetry channels that it announces. They have no state, and `notify` sends to them."""
        self.accepting = True
        """Whether `dial` succeeds."""
        self._oldest = 0
        self._seen: dict[tuple[str, int], int] = {}
        self.connections: list[FakeConnection] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> FakeHost:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.drop()
        await asyncio.gather(*self._tasks)

    # For tests.

    def open(self, uri: str, state: JsonObject) -> None:
        self.states[uri] = state

    def close(self, uri: str) -> None:
        """Remove a channel without a message to its clients."""
        del self.states[uri]
        for connection in self.connections:
            connection.channels.discard(uri)

    def emit(self, uri: str, action: JsonObject, origin: JsonObject | None = None) -> int:
        """Apply an action and send it to all subscribers of the channel."""
        self.states[uri] = reduce(uri, self.states[uri], action, now=NOW)
        self.seq += 1
        envelope: JsonObject = {"channel": uri, "action": action, "serverSeq": self.seq}
        if origin is not None:
            envelope["origin"] = origin
        self.log.append(envelope)
        for connection in self.connections:
            if uri in connection.channels:
                connection.rpc.notify("action", envelope)
        return self.seq

    def notify(self, method: str, params: JsonObject) -> None:
        for connection in self.connections:
            connection.rpc.notify(method, params)

    async def request(self, method: str, params: JsonObject) -> Any:
        """Ask the client that connected last."""
        return await self.connections[-1].rpc.request(method, params)

    def drop(self) -> None:
        """Cut all connections without a close message."""
        for connection in self.connections:
            connection.rpc.transport.abort()

    def forget(self) -> None:
        """Trim the log: a reconnect gets snapshots."""
        self._oldest = self.seq + 1

    def sent(self, method: str) -> list[JsonObject]:
        """The params of everything clients sent under `method`."""
        return [params for name, params in self.received if name == method]

    async def dial(self) -> Transport:
        if not self.accepting:
            raise ConnectionRefusedError("the fake host does not accept connections")
        server, client = memory_pair()
        task = asyncio.create_task(self.serve(server), name="fake host")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return client

    # What a host does.

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends."""
        connection: FakeConnection

        async def on_request(method: str, params: JsonObject) -> Any:
            return await self._answer(connection, method, params)

        def on_notification(method: str, params: JsonObject) -> None:
            self._hear(connection, method, params)

        rpc = RpcConnection(transport, on_request=on_request, on_notification=on_notification, peer=Peer(errors=ERRORS))
        connection = FakeConnection(rpc)
        self.connections.append(connection)
        async with rpc:
            await rpc.wait_closed()
        self.connections.remove(connection)

    async def _answer(self, connection: FakeConnection, method: str, params: JsonObject) -> Any:
        self.received.append((method, params))
        if method in self.handlers:
            result = self.handlers[method](params)
            return await result if inspect.isawaitable(result) else result
        match method:
            case "ping":
                return {}
            case "initialize":
                return self._initialize(connection, params)
            case "reconnect":
                return self._reconnect(connection, params)
            case "subscribe" if params["channel"].startswith("ahp-otlp:"):
                return {}
            case "subscribe":
                return {"snapshot": self._subscribe(connection, params["channel"])}
            case "listSessions":
                return {"items": [state["summary"] for uri, state in self.states.items() if _is_session(uri)]}
            case "createSession":
                return self._create_session(params)
            case "createChat":
                return self._create_chat(params["channel"], params["chat"])
            case "disposeSession" | "disposeChat":
                return self.close(params["channel"])
            case _:
                raise MethodNotFound(f"the fake host has no {method}")

    def _initialize(self, connection: FakeConnection, params: JsonObject) -> JsonObject:
        connection.client_id = params["clientId"]
        wanted = [uri for uri in params.get("initialSubscriptions", ()) if uri in self.states]
        snapshots = [self._subscribe(connection, uri) for uri in wanted]
        about = {"_meta": self.meta, **({"telemetry": self.telemetry} if self.telemetry else {})}
        return {"protocolVersion": "0.4.0", "serverSeq": self.seq, "snapshots": snapshots, **about}

    def _reconnect(self, connection: FakeConnection, params: JsonObject) -> JsonObject:
        connection.client_id = params["clientId"]
        present = [uri for uri in params["subscriptions"] if uri in self.states]
        snapshots = [self._subscribe(connection, uri) for uri in present]
        last_seen = params["lastSeenServerSeq"]
        if not self._oldest - 1 <= last_seen <= self.seq:
            return {"type": "snapshot", "snapshots": snapshots}
        missed = [entry for entry in self.log if entry["serverSeq"] > last_seen and entry["channel"] in present]
        missing = [uri for uri in params["subscriptions"] if uri not in self.states]
        return {"type": "replay", "actions": missed, "missing": missing}

    def _subscribe(self, connection: FakeConnection, uri: str) -> JsonObject:
        if uri not in self.states:
            raise (SessionNotFound if _is_session(uri) else NotFound)(f"there is no {uri}")
        connection.channels.add(uri)
        return {"resource": uri, "state": self.states[uri], "fromSeq": self.seq}

    def _create_session(self, params: JsonObject) -> None:
        uri = params["channel"]
        chat = uri.replace("ahp-session", "ahp-chat")
        active = {"activeClient": params["activeClient"]} if "activeClient" in params else {}
        self.open(chat, chat_state(chat))
        self.open(uri, session_state(uri, lifecycle="creating", chats=[chat_summary(chat)], defaultChat=chat, **active))
        self.emit(uri, {"type": "session/ready"})
        self.notify("root/sessionAdded", {"channel": ROOT_URI, "summary": self.states[uri]["summary"]})

    def _create_chat(self, session: str, chat: str) -> None:
        self.open(chat, chat_state(chat))
        self.emit(session, {"type": "session/chatAdded", "summary": chat_summary(chat)})

    def _hear(self, connection: FakeConnection, method: str, params: JsonObject) -> None:
        self.received.append((method, params))
        match method:
            case "unsubscribe":
                connection.channels.discard(params["channel"])
            case "dispatchAction":
                self._dispatched(connection, params)
            case _:
                pass

    def _dispatched(self, connection: FakeConnection, params: JsonObject) -> None:
        uri, action = params["channel"], params["action"]
        key = connection.client_id, params["clientSeq"]
        origin: JsonObject = {"clientId": key[0], "clientSeq": key[1]}
        echo: JsonObject = {"channel": uri, "action": action, "origin": origin}
        reason = self.decide(uri, action) if uri in self.states else f"there is no channel {uri}"
        if key in self._seen:
            connection.rpc.notify("action", {**echo, "serverSeq": self._seen[key]})
        elif reason is not None:
            connection.rpc.notify("action", {**echo, "serverSeq": self.seq, "rejectionReason": reason})
        else:
            self._seen[key] = self.emit(uri, action, origin)
            for listener in self.on_applied:
                listener(uri, action)


def _is_session(uri: str) -> bool:
    return uri.startswith("ahp-session:/")


__all__ = ["NOW", "FakeConnection", "FakeHost", "chat_state", "chat_summary", "session_state"]
