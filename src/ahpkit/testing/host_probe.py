"""One raw connection to any AHP host: sends frames as they are, keeps everything that comes back, waits a bounded time.

It does not use the client SDK, so a host is judged by what it sends and not by what our client makes of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, cast

from ahpkit.client.connection import Dial
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.wire.errors import AhpError, TransportClosed
from ahpkit.wire.tasks import running
from ahpkit.wire.transport import Transport

Json = dict[str, Any]

_SHOWN = 300
"""Characters of what a host said that are worth showing."""


class CheckFailed(AhpError):
    """The host does not do what the specification says. The text says what it did instead."""


class Refused(CheckFailed):
    """A request that must succeed was refused."""

    def __init__(self, method: str, error: Json) -> None:
        super().__init__(f"{method} was refused: {_shown(error)}")
        self.error = error


class Probe:
    """A connection that is driven message by message. Made by `connect_to`."""

    def __init__(self, transport: Transport, client_id: str, timeout: float) -> None:
        self.client_id = client_id
        self.received: list[Json] = []
        self.is_closed = False
        self._transport = transport
        self._timeout = timeout
        self._ids = count(1)
        self._client_seqs = count(1)
        self._news = asyncio.Condition()

    async def read(self) -> None:
        """Keep what arrives until the connection ends."""
        try:
            while True:
                message: Any = json.loads(await self._transport.receive())
                if isinstance(message, dict):
                    self.received.append(cast("Json", message))
                async with self._news:
                    self._news.notify_all()
        except (TransportClosed, ValueError):
            self.is_closed = True
            async with self._news:
                self._news.notify_all()

    def send(self, message: Any) -> None:
        """Send one message."""
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, data: bytes) -> None:
        """Send one message, whatever it is."""
        self._transport.write(self._transport.frame(data))

    async def wait(self, found: Callable[[Json], bool], what: str, *, since: int = 0) -> Json:
        """The first message for which `found` holds; the first `since` messages do not count."""
        looked_at = since
        try:
            async with asyncio.timeout(self._timeout), self._news:
                while True:
                    for message in self.received[looked_at:]:
                        if found(message):
                            return message
                    looked_at = len(self.received)
                    if self.is_closed:
                        raise CheckFailed(f"the connection was closed before {what} came")
                    await self._news.wait()
        except TimeoutError:
            raise CheckFailed(f"{what} did not come within {self._timeout:g} s") from None

    async def wait_answer_or_end(self, request_id: object) -> Json | None:
        """The answer with this id; None when the host closes the connection instead."""
        try:
            return await self.wait(_answers(request_id), "an answer")
        except CheckFailed:
            if self.is_closed:
                return None
            raise

    async def call(self, method: str, channel: str = ROOT_URI, **params: Any) -> Json:
        """Send a request; the whole answer, with a result or an error."""
        request_id, before = next(self._ids), len(self.received)
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"channel": channel, **params}})
        return await self.wait(_answers(request_id), f"the answer to {method}", since=before)

    async def result(self, method: str, channel: str = ROOT_URI, **params: Any) -> Any:
        """The result of a request that must succeed."""
        answer = await self.call(method, channel, **params)
        if "result" not in answer:
            raise Refused(method, object_in(answer, "error"))
        return answer["result"]

    async def error(self, method: str, channel: str = ROOT_URI, *, code: int | None = None, **params: Any) -> Json:
        """The error of a request that must fail, with this code if one is given."""
        answer = await self.call(method, channel, **params)
        return expect_error(answer, code, method)

    def dispatch(self, channel: str, action: Json) -> int:
        """Dispatch an action; its clientSeq."""
        seq = next(self._client_seqs)
        params = {"channel": channel, "clientSeq": seq, "action": action}
        self.send({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})
        return seq

    async def echo(self, channel: str, action: Json) -> Json:
        """Dispatch an action and wait until it comes back, accepted or not; its envelope."""
        before, seq = len(self.received), self.dispatch(channel, action)
        return await self.own_action(seq, action["type"], since=before)

    async def own_action(self, seq: int, named: str, *, since: int = 0) -> Json:
        """The envelope with which an own action comes back."""
        origin = {"clientId": self.client_id, "clientSeq": seq}
        return await self.action(lambda envelope: envelope.get("origin") == origin, f"the echo of {named}", since=since)

    async def accepted(self, channel: str, action: Json) -> Json:
        """Dispatch an action that must be accepted; its envelope."""
        envelope = await self.echo(channel, action)
        if "rejectionReason" in envelope:
            raise CheckFailed(f"{action['type']} was refused: {envelope['rejectionReason']}")
        return envelope

    async def refused(self, channel: str, action: Json) -> str:
        """Dispatch an action that must be refused; the reason."""
        reason = (await self.echo(channel, action)).get("rejectionReason")
        if not isinstance(reason, str) or not reason:
            raise CheckFailed(f"{action['type']} came back without a rejectionReason: {json.dumps(action)}")
        return reason

    async def action(self, found: Callable[[Json], bool], what: str, *, since: int = 0) -> Json:
        """The first envelope of an action for which `found` holds."""
        message = await self.wait(lambda each: is_action(each) and found(each["params"]), what, since=since)
        return message["params"]

    async def same_action(self, envelope: Json) -> Json:
        """The envelope in which this connection gets the action that another one got."""
        number = envelope["serverSeq"]
        return await self.action(lambda each: each.get("serverSeq") == number, f"the action with serverSeq {number}")

    async def notification(self, method: str, found: Callable[[Json], bool], *, since: int = 0) -> Json:
        """The params of the first notification of this method for which `found` holds."""

        def matches(message: Json) -> bool:
            return message.get("method") == method and found(object_in(message, "params"))

        return (await self.wait(matches, method, since=since))["params"]

    def envelopes(self, channel: str) -> list[Json]:
        """The envelopes of all actions of a channel that arrived so far and were not refused."""
        told = [message["params"] for message in self.received if is_action(message)]
        return [each for each in told if each.get("channel") == channel and "rejectionReason" not in each]

    async def snapshot(self, channel: str) -> Json:
        """Subscribe to a channel; its snapshot."""
        snapshot = (await self.result("subscribe", channel)).get("snapshot")
        if not isinstance(snapshot, dict) or "state" not in snapshot or "fromSeq" not in snapshot:
            raise CheckFailed(f"subscribe to {channel} gave no snapshot with state and fromSeq")
        return cast("Json", snapshot)


def object_in(members: Json, key: str) -> Json:
    """A member that is an object; empty when there is none."""
    found = members.get(key)
    return cast("Json", found) if isinstance(found, dict) else {}


def is_action(message: Json) -> bool:
    """Whether this message is the notification of an action."""
    return message.get("method") == "action" and isinstance(message.get("params"), dict)


def expect_error(answer: Json, code: int | None, what: str) -> Json:
    """The error of an answer; `CheckFailed` when it has none, or one with another code."""
    error = answer.get("error")
    if not isinstance(error, dict):
        raise CheckFailed(f"{what} was answered without an error: {json.dumps(answer)[:_SHOWN]}")
    found = cast("Json", error)
    if code is not None and found.get("code") != code:
        raise CheckFailed(f"{what} was refused, but not with {code}: {_shown(found)}")
    return found


def _shown(error: Json) -> str:
    """An error in one line: some hosts send a traceback."""
    return f"{error.get('code')} {str(error.get('message')).partition(chr(10))[0]}"[:_SHOWN]


def _answers(request_id: object) -> Callable[[Json], bool]:
    return lambda message: message.get("id") == request_id and "method" not in message


@asynccontextmanager
async def connect_to(dial: Dial, client_id: str, timeout: float) -> AsyncGenerator[Probe]:
    """A connection that is closed at the end."""
    transport = await dial()
    probe = Probe(transport, client_id, timeout)
    try:
        async with running(probe.read()):
            yield probe
    finally:
        await transport.aclose()


__all__ = ["CheckFailed", "Json", "Probe", "Refused", "connect_to", "expect_error", "is_action", "object_in"]
