"""A client of bytes: sends JSON-RPC as it is and collects what comes back. Knows nothing of the client SDK."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any, cast

from ahpkit.protocol.errors import TransportClosed
from ahpkit.wire.transport import Transport
from support.waiting import BOUND

Json = dict[str, Any]

CLIENTS: list[RawClient] = []
"""Every client of the running test: what they were sent can be checked afterwards."""


class RawClient:
    """One connection to a host, driven message by message."""

    def __init__(self, transport: Transport, client_id: str = "tester") -> None:
        self.transport = transport
        self.client_id = client_id
        self.received: list[Json] = []
        self.version: str | None = None
        """The protocol version, once the host has said it."""
        self.asked: dict[str, str] = {}
        """Id of a request → its method."""
        self.closed: TransportClosed | None = None
        self._ids = itertools.count(1)
        self._client_seqs = itertools.count(1)
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())
        CLIENTS.append(self)

    async def _read(self) -> None:
        try:
            while True:
                message = json.loads(await self.transport.receive())
                async with self._news:
                    self.received.append(message)
                    self._look_for_version(message)
                    self._news.notify_all()
        except TransportClosed as closed:
            async with self._news:
                self.closed = closed
                self._news.notify_all()

    def _look_for_version(self, message: Json) -> None:
        result: object = message.get("result")
        if self.version is None and isinstance(result, dict) and "protocolVersion" in result:
            self.version = str(cast("Json", result)["protocolVersion"])

    def send(self, message: Json) -> None:
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, data: bytes) -> None:
        self.transport.write(self.transport.frame(data))

    async def wait(self, found: Callable[[Json], bool], *, since: int = 0) -> Json:
        """The first message, past or future, for which `found` holds. The first `since` messages do not count."""
        looked_at = since
        async with asyncio.timeout(BOUND), self._news:
            while True:
                for message in self.received[looked_at:]:
                    if found(message):
                        return message
                looked_at = len(self.received)
                assert self.closed is None, f"the connection closed: {self.closed}"
                await self._news.wait()

    async def wait_closed(self) -> TransportClosed:
        async with asyncio.timeout(BOUND), self._news:
            await self._news.wait_for(lambda: self.closed is not None)
        assert self.closed is not None
        return self.closed

    async def call(self, method: str, channel: str = "ahp-root://", **params: Any) -> Json:
        """Send a request; the whole answer, result or error."""
        request_id, before = next(self._ids), len(self.received)
        self.asked[str(request_id)] = method
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"channel": channel, **params}})
        return await self.wait(
            lambda message: message.get("id") == request_id and "method" not in message, since=before
        )

    async def ask(self, method: str, channel: str = "ahp-root://", **params: Any) -> Any:
        """Send a request that must succeed. Returns its result."""
        answer = await self.call(method, channel, **params)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    async def refused(self, method: str, channel: str = "ahp-root://", **params: Any) -> Json:
        """Send a request that must fail. Returns its error."""
        answer = await self.call(method, channel, **params)
        assert "error" in answer, answer
        return answer["error"]

    async def initialize(self, *subscriptions: str, **params: Any) -> Json:
        params = {"protocolVersions": ["0.4.0"], "clientId": self.client_id, **params}
        return await self.ask("initialize", initialSubscriptions=list(subscriptions), **params)

    def post(self, channel: str, action: Json, *, client_seq: int | None = None) -> int:
        """Dispatch an action without waiting. Returns its clientSeq."""
        seq = client_seq if client_seq is not None else next(self._client_seqs)
        params = {"channel": channel, "clientSeq": seq, "action": action}
        self.send({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})
        return seq

    async def dispatch(self, channel: str, action: Json) -> Json:
        """Dispatch an action and wait for its echo, accepted or not."""
        before, seq = len(self.received), self.post(channel, action)
        origin = {"clientId": self.client_id, "clientSeq": seq}
        return await self.action(lambda envelope: envelope.get("origin") == origin, since=before)

    async def accepted(self, channel: str, action: Json) -> Json:
        envelope = await self.dispatch(channel, action)
        assert "rejectionReason" not in envelope, envelope["rejectionReason"]
        return envelope

    async def rejected(self, channel: str, action: Json) -> str:
        envelope = await self.dispatch(channel, action)
        return envelope["rejectionReason"]

    async def action(self, found: Callable[[Json], bool] | str, *, since: int = 0) -> Json:
        """The first action envelope for which `found` holds, or of that type, after so many messages."""

        def matches(message: Json) -> bool:
            if message.get("method") != "action":
                return False
            envelope = message["params"]
            return envelope["action"]["type"] == found if isinstance(found, str) else found(envelope)

        return (await self.wait(matches, since=since))["params"]

    async def notification(self, method: str) -> Json:
        return (await self.wait(lambda message: message.get("method") == method))["params"]

    def actions(self, channel: str | None = None) -> list[Json]:
        """All action envelopes so far."""
        envelopes = [message["params"] for message in self.received if message.get("method") == "action"]
        return [envelope for envelope in envelopes if channel in (None, envelope["channel"])]

    async def finish(self) -> None:
        """Read to the end of a connection whose host has gone, and close it."""
        await asyncio.wait([self._reader], timeout=BOUND)
        await self.aclose()

    async def aclose(self) -> None:
        await self.transport.aclose()
        await asyncio.wait([self._reader], timeout=BOUND)


__all__ = ["CLIENTS", "Json", "RawClient"]
