"""Holds what the parts of a client share: identity, connection, channels, tasks."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Self

from opentelemetry.trace import TracerProvider

from ahpkit.client.channels import Channels
from ahpkit.client.connection import GREETING_TIMEOUT, Backoff, Dial, HostConnection
from ahpkit.client.handshake import Handshake
from ahpkit.client.host_requests import HostRequests
from ahpkit.client.mirror import Mirror
from ahpkit.client.resources import OnUnsavedText, Resources
from ahpkit.client.selections import Selections
from ahpkit.client.tasks import Tasks
from ahpkit.client.tracing import Tracing, with_context
from ahpkit.dialects.negotiation import OFFERED
from ahpkit.dialects.older_host import HostDialect
from ahpkit.protocol.common.state import ROOT_URI, JsonObject
from ahpkit.protocol.validation import make_whole
from ahpkit.wire.rpc import RpcConnection


class Core:
    """One client's connection and mirror. Entering connects; leaving ends every task."""

    def __init__(
        self,
        dial: Dial,
        *,
        client_id: str | None,
        backoff: Backoff,
        locale: str | None,
        capabilities: Mapping[str, Any],
        request_timeout: float | None,
        unsaved_text: OnUnsavedText | None,
        versions: Sequence[str] = OFFERED,
        handshake_timeout: float = GREETING_TIMEOUT,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self.client_id = client_id or str(uuid.uuid4())
        self.tasks = Tasks()
        self.tracing = Tracing(tracer_provider)
        self.resources = Resources(self.client_id, unsaved_text=unsaved_text)
        self.host_requests = HostRequests(self.resources, self.tasks)
        self.connection = HostConnection(
            dial,
            greet=self._greet,
            on_request=self.host_requests.answer,
            on_notification=self._hear,
            backoff=backoff,
            tasks=self.tasks,
            greeting_timeout=handshake_timeout,
        )
        # The host remembers (clientId, clientSeq) for good. An id that is used again must not repeat its numbers.
        first_client_seq = 1 if client_id is None else time.time_ns() // 1000
        self.channels = Channels(
            Mirror(self.client_id), self.connection, self.tasks, now=now, first_client_seq=first_client_seq
        )
        self.selections = Selections(self.channels)
        self.handshake = Handshake(
            self.client_id, self.channels, locale=locale, capabilities=capabilities, versions=versions
        )
        self._request_timeout = request_timeout

    async def __aenter__(self) -> Self:
        self.root = self.channels.hold(ROOT_URI)
        self.tasks.spawn(self.connection.run(), name="connection")
        try:
            await self.connection.wait_connected()
            await self.root.wait_ready()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.connection.close()
        await self.tasks.__aexit__()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        channel: str = ROOT_URI,
        timeout: float | None = None,
    ) -> Any:
        """Ask the host; waits for the connection if it is lost. Raises the host's `RpcError`, `TransportClosed`, or
        `TimeoutError`."""
        seconds = self._request_timeout if timeout is None else timeout
        with self.tracing.span(method):
            asked: JsonObject = {"channel": channel, **(params or {})}
            if meta := with_context(asked.get("_meta")):
                asked["_meta"] = meta
            try:
                async with asyncio.timeout(seconds):
                    rpc = await self.connection.wait_connected()
                    result = await rpc.request(method, self.dialect.write(method, asked))
                    make_whole(method, {}, result=result)
                    return self.dialect.result(method, result)
            except TimeoutError:
                raise TimeoutError(f"{method}: no answer within {seconds:g} s") from None

    @property
    def dialect(self) -> HostDialect:
        """How the host speaks; known once it is connected."""
        return self.channels.dialect

    async def _greet(self, rpc: RpcConnection) -> None:
        await self.handshake.greet(rpc)

    def _hear(self, method: str, params: JsonObject) -> None:
        make_whole(method, params)
        moved = self._may_have_moved(method, params)
        if method == "action":
            self.channels.receive(params)
        else:
            params = self.dialect.notification(method, params)
            self.host_requests.hear(method, params)
        if moved:
            self.channels.check(params["action"]["chat"])
            return
        for uri in self._removed(method, params):
            self.channels.gone(uri, "it was removed")

    def _may_have_moved(self, method: str, params: JsonObject) -> bool:
        """Whether a removed chat was movable: then it may be in another session now."""
        if method != "action" or params["action"]["type"] != "session/chatRemoved":
            return False
        return bool((self.channels.confirmed(params["action"]["chat"]) or {}).get("movable"))

    def _removed(self, method: str, params: JsonObject) -> list[str]:
        """The channels that an action removes: the host says so once and sends nothing about them afterwards."""
        if method == "action" and params["action"]["type"] == "session/chatRemoved":
            return [params["action"]["chat"]]
        if method == "root/sessionRemoved":
            uri: str = params["session"]
            chats = (self.channels.confirmed(uri) or {}).get("chats", ())
            return [*(chat["resource"] for chat in chats), f"{uri}/annotations", uri]
        return []


def now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def given(**fields: Any) -> JsonObject:
    """Only the fields that have a value, because absent values are left out of a message."""
    return {key: value for key, value in fields.items() if value is not None}


__all__ = ["Core", "given", "now"]
