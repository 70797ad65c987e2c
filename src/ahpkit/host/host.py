"""The host: one object that is started, serves clients and is stopped.

    async with Host(storage, agents=[...]) as host:
        await host.serve(transport)          # once per client

An action passes: connection → dialect → policy → store (reduce) → log (commit) → delivery → fan-out → outlet.

`ahpkit.host.composition` makes the parts; nothing below this module refers to `Host`. Starting has two phases.
`recover` repairs what an earlier run left unfinished, by actions only and without waiting:

1. the sessions of the earlier run are listed, and the root channel is opened;
2. turns that were interrupted end with an error;
3. each feature recovers its own things, in the order of the features;
4. the list of agents in root state is updated.

Then everything is started. A start that fails ends everything that was started before it.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Self

from opentelemetry.trace import TracerProvider

from ahpkit import __version__
from ahpkit.host.agent import Agent
from ahpkit.host.clients.active_client import ActiveClients
from ahpkit.host.clients.connection import Connection
from ahpkit.host.clients.extensions import HOST_META, Extension
from ahpkit.host.composition import ClientParts, CommonParts, FrontParts, SessionParts, Spine, TurnParts
from ahpkit.host.config import HostConfig
from ahpkit.host.feature import Feature
from ahpkit.host.registration import Registration
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.questions import Questions
from ahpkit.host.turns.turn_times import TurnTimes
from ahpkit.log.engine import LocalLog, LogEngine
from ahpkit.log.storage import Storage
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import InternalError, LocalProtocolError
from ahpkit.protocol.root import RootState
from ahpkit.wire.tasks import Tasks
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)

_GOODBYE_PATIENCE = 5.0
"""Seconds for the last actions to become durable before connections are closed without them."""


class Host:
    """One agent host. It keeps its log on `storage`, or in the engine that is given as `log`."""

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        agents: Sequence[Agent],
        features: Sequence[Feature] = (),
        config: HostConfig | None = None,
        log: LogEngine | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        monotonic: Callable[[], float] = time.monotonic,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        if log is None:
            if storage is None:
                raise LocalProtocolError("a host needs a storage, or the log of another engine")
            log = LocalLog(storage)
        common = CommonParts(
            config=config or HostConfig(),
            registered=Registration(),
            tasks=Tasks(),
            tracing=Tracing(tracer_provider),
            now=steady(now),
            new_id=new_id,
            monotonic=monotonic,
        )
        spine = Spine(common, log)
        clients = ClientParts(common, spine)
        turns = TurnParts(common, spine, clients, agents)
        sessions = SessionParts(common, spine, clients, turns)
        front = FrontParts(common, spine, clients, turns, sessions)

        self.spine = spine
        self.services = turns.services
        self.registered = common.registered
        self.clients = clients.clients
        self.sessions = sessions.sessions
        self._channels = sessions.channels
        self._tasks = common.tasks
        self._delivery = clients.delivery
        self._catalogue = clients.catalogue
        self._times = clients.times
        self._agents = turns.agents
        self._extensions = turns.extensions
        self._connection_parts = front.connection_parts
        grace = common.config.client_grace
        own = [ActiveClients(grace=grace), turns.commands, turns.approvals, Questions(), TurnTimes()]
        self._features = [*own, *features]
        self._running: AsyncExitStack | None = None

        for part in (front, spine, turns, front.windows, sessions, clients):
            part.register(common.registered)
        for feature in self._features:
            feature.register(common.registered, turns.services)
        common.registered.sessions.prepare.add(turns.tools.prepare)

    def extension(self, name: str, /, *, version: str | None = None, **capability: object) -> Extension:
        """Register a protocol extension, before the host starts. It is advertised to every client."""
        if self._running is not None:
            raise LocalProtocolError(f"the host runs already: register {name!r} before it starts")
        extension = Extension(name, version=version, capability=capability)
        self._extensions.register(extension)
        return extension

    async def serve(self, transport: Transport) -> None:
        """Serve one client until its connection ends."""
        connection = Connection(self._connection_parts, transport)
        self.clients.connected(connection)
        try:
            await connection.run()
        finally:
            self.clients.left(connection)
            await connection.aclose()

    # -- life ------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.spine.log)
            self._times.restore(self.spine.restore())
            await stack.enter_async_context(self._delivery)
            await stack.enter_async_context(self._tasks)
            self._recover()
            await self._start(stack)
            self._running = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._running is not None:
            await self._running.aclose()

    def _recover(self) -> None:
        self._channels.restore()
        self._open_root()
        for recover in self.registered.recover:
            recover()
        self._agents.publish()
        self._catalogue.restore(self.spine.index.sessions())

    def _open_root(self) -> None:
        """Set the root channel to the facts of this run: its extensions, agents, and the number of sessions."""
        meta = {HOST_META: {"version": __version__}, **self._extensions.advertised()}
        if self.spine.store.state(ROOT_URI) is None:
            fresh: RootState = {"agents": self._agents.listed(), "activeSessions": len(self.spine.index), "_meta": meta}
            self.spine.store.open(ROOT_URI, fresh)
        elif (state := self.spine.store.root()).get("_meta") != meta:
            self.spine.store.open(ROOT_URI, {**state, "agents": self._agents.listed(), "_meta": meta})

    async def _start(self, stack: AsyncExitStack) -> None:
        """Start the parts. When the host stops, sessions and clients end first, then the parts in reverse order."""
        stack.enter_context(self._agents.followed())
        for part in (*self._features, *self._agents):
            stack.push_async_callback(_close, part)
            await part.start()
        stack.callback(self._agents.close)
        stack.push_async_callback(self.say_goodbye)
        self.sessions.live.resume()
        self._tasks.spawn(self._catalogue.read(), name="read the list of sessions")
        self._tasks.spawn(self.sessions.live.rest_when_unused(), name="let sessions rest")
        with suppress(InternalError):  # The log has reported the error. Stored states can still be read.
            await self._delivery.durable()

    async def say_goodbye(self) -> None:
        """End what runs, let the clients see its end, and close their connections.

        A host does this when its `async with` ends. Call it earlier if something else, such as a server, would close
        the connections first.
        """
        reason = "the host is shutting down"
        if not self.spine.dispatcher.close(reason):
            return
        await self.sessions.aclose()
        for feature in self._features:
            _tell_stopping(feature)
        with suppress(InternalError, TimeoutError):  # A log that fails must not stop the shutdown.
            async with asyncio.timeout(_GOODBYE_PATIENCE):
                await self._delivery.durable()
        self._catalogue.flush()
        await self.clients.aclose(reason)


def _tell_stopping(feature: Feature) -> None:
    try:
        feature.stopping()
    except Exception:  # The other features still have to stop.
        _log.exception("%s failed when the host stopped", type(feature).__name__)


async def _close(part: Feature | Agent) -> None:
    """End one part. A failure is logged, so that the other parts are ended too."""
    try:
        await part.aclose()
    except Exception:  # The other parts still have to be closed.
        _log.exception("%s did not close cleanly", type(part).__name__)


_MISTAKE = 5 * 60 * 1000
"""Milliseconds. If the clock is further behind the last time than this, the last time was wrong."""


def steady(now: Callable[[], int]) -> Callable[[], int]:
    """A clock that returns `now()`, but stands still while `now()` is a little behind the time that it returned before.

    Time servers, people and virtual machines set clocks back. Even then an answer must not be older than its question,
    and the order of the last changes must stay right. But if a clock was far ahead by mistake and is corrected, this
    clock follows the correction, because otherwise everything would be dated in the future.
    """
    latest = 0

    def steady_now() -> int:
        nonlocal latest
        present = now()
        if not present < latest <= present + _MISTAKE:
            latest = present
        return latest

    return steady_now


__all__ = ["Host", "steady"]
