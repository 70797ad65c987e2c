"""The class `Host`. It puts the parts together.

    async with Host(storage, agents=[...]) as host:
        await host.serve(transport)          # once per client

The way of an action: connection → dialect → policy → store (reduce) → log (commit) → delivery → fan-out → outlet.

Each part gets what it uses by its constructor; nothing below this module knows a `Host`. Life has two phases. `recover`
puts right what an earlier run left, by actions only and without waiting:

1. the root channel is there again, and the sessions of the earlier run are known;
2. turns that were interrupted end with an error;
3. each feature recovers what is its own, in the order of the features;
4. the list of agents is brought in step.

Then everything is started. A start that fails ends everything that was started before it.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

from opentelemetry.trace import TracerProvider

from ahpkit import __version__
from ahpkit.dialects.base import Reading
from ahpkit.host.agent import Agent
from ahpkit.host.agents import Agents
from ahpkit.host.clients.active_client import ActiveClients
from ahpkit.host.clients.agent_extensions import AgentExtensions
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.commands import Commands
from ahpkit.host.clients.connection import Connection, Shared
from ahpkit.host.clients.dialect_choice import DialectChoice, Surroundings
from ahpkit.host.clients.extensions import HOST_META, Extension, Extensions, ExtensionsOfAgents
from ahpkit.host.clients.handshake import Handshake
from ahpkit.host.clients.turn_windows import TurnWindows
from ahpkit.host.clock import steady
from ahpkit.host.config import HostConfig
from ahpkit.host.feature import Feature, Registration
from ahpkit.host.services import HostServices
from ahpkit.host.sessions.catalogue import SessionCatalogue
from ahpkit.host.sessions.commands import SessionCommands
from ahpkit.host.sessions.directories import Directories
from ahpkit.host.sessions.kept_conversations import KeptConversations
from ahpkit.host.sessions.session_times import SessionTimes
from ahpkit.host.sessions.sessions import SessionPorts, Sessions
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.delivery import Delivery
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.host.spine.fanout import Fanout
from ahpkit.host.spine.session_index import SessionIndex, Unsettled, WaitingSelections
from ahpkit.host.spine.store import Store
from ahpkit.host.tasks import Tasks
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.agent_commands import AgentCommands
from ahpkit.host.turns.approvals import Approvals
from ahpkit.host.turns.questions import Questions
from ahpkit.host.turns.session_tools import SessionTools
from ahpkit.host.turns.turns import Turns, TurnsPorts
from ahpkit.log.engine import LocalLog, LogEngine
from ahpkit.log.storage import Storage
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import InternalError, LocalProtocolError
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)

_GOODBYE_PATIENCE = 5.0
"""Seconds for the last actions to become durable before connections are closed without them."""


class Spine:
    """Store, dispatcher, log and fan-out: the way every action takes."""

    def __init__(
        self, log: LogEngine, registered: Registration, *, now: Callable[[], int], wake: Callable[[str], None]
    ) -> None:
        self.log = log
        self.values = DurableValues(log.set_value)
        self.kinds = ChannelKinds(self.values)
        self.store = Store(log, self.kinds, now=now)
        self.index = SessionIndex(self.values)
        self.unsettled = Unsettled(self.values, self.index)
        self.waiting = WaitingSelections(self.index, self.store.state)
        self.fanout = Fanout()
        self.dispatcher = Dispatcher(
            self.store,
            log=log,
            kinds=self.kinds,
            index=self.index,
            waiting=self.waiting,
            registered=registered,
            wake=wake,
        )

    def restore(self) -> None:
        """Take over the states and values of an earlier run."""
        recovery = self.log.take_recovery()
        for problem in recovery.problems:
            _log.warning("%s", problem)
        self.values.restore(recovery.values)
        self.store.restore(recovery)


class Host:
    """One agent host. `log` stands in for a log on `storage` where another engine keeps it."""

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
        config = config or HostConfig()
        now = steady(now)
        registered = Registration()
        tasks = Tasks()
        tracing = Tracing(tracer_provider)
        spine = Spine(log, registered, now=now, wake=lambda uri: sessions.wake(uri))
        store, dispatcher, index = spine.store, spine.dispatcher, spine.index

        clients = Clients(store, spine.fanout, registered, reader_patience=config.reader_patience)
        times = SessionTimes(spine.values)
        catalogue = SessionCatalogue(store.committed, clients, times, kinds=spine.kinds.name_of)
        delivery = Delivery(
            log,
            store,
            spine.fanout,
            listener=catalogue.follow,
            on_refused=clients.reject,
            max_backlog=config.max_log_backlog,
        )
        host_agents = Agents(
            agents,
            default=config.default_provider,
            clients=clients,
            registered=registered,
            state_of=store.state,
            dispatch=dispatcher.apply,
            spawn=lambda work: tasks.spawn(work, name="agents"),
        )
        approvals = Approvals(config.rules)
        session_tools = SessionTools(
            registered.tool_sources,
            state_of=store.state,
            dispatch=dispatcher.apply,
            agent_tools=lambda uri: host_agents.tools_of(store.state(uri) or {}),
        )
        services = HostServices(
            values=spine.values,
            store=store,
            kinds=spine.kinds,
            dispatcher=dispatcher,
            delivery=delivery,
            index=index,
            open_matters=spine.unsettled,
            clients=clients,
            agents=host_agents,
            tasks=tasks,
            session_tools=session_tools,
            turns=lambda: turns,
            now=now,
            new_id=new_id,
        )
        extensions = Extensions(tasks)
        agent_commands = AgentCommands()
        turns = Turns(
            TurnsPorts(
                store=store,
                dispatcher=dispatcher,
                index=index,
                waiting=spine.waiting,
                clients=clients,
                registered=registered,
                services=services,
                tasks=tasks,
                tracing=tracing,
                agents=host_agents,
                extensions=AgentExtensions(extensions, clients, patience=config.extension_patience),
                commands=agent_commands,
                approvals=approvals,
                tools=session_tools,
                default_directory=config.default_directory,
                new_id=new_id,
                now=now,
            )
        )
        kept = KeptConversations(
            host_agents,
            spine.values,
            taken=store.taken,
            monotonic=monotonic,
            default_directory=config.default_directory,
        )
        sessions = Sessions(
            SessionPorts(
                store=store,
                kinds=spine.kinds,
                dispatcher=dispatcher,
                index=index,
                unsettled=spine.unsettled,
                waiting=spine.waiting,
                clients=clients,
                registered=registered,
                tasks=tasks,
                agents=host_agents,
                turns=turns,
                kept=kept,
                times=times,
                durable=delivery.durable,
                monotonic=monotonic,
                rest_after=config.rest_after,
                max_idle=config.max_idle,
                default_directory=config.default_directory,
                new_id=new_id,
                now=now,
            )
        )

        directories = Directories(
            store=store, index=index, dispatcher=dispatcher, registered=registered, runner_of=turns.runner
        )

        def reading(client_id: str) -> Reading:
            return Reading(client_id, now(), store.state)

        windows = TurnWindows(store, delivery, clients)
        handshake = Handshake(
            clients=clients,
            windows=windows,
            store=store,
            kinds=spine.kinds,
            log=log,
            dispatcher=dispatcher,
            flush=delivery.flush,
            registered=registered,
            tasks=tasks,
            dialects=DialectChoice(Surroundings(index, catalogue, spine.kinds.name_of), spine.values, config.spoken),
            adopt=sessions.adopt,
            sessions=sessions,
            reading=reading,
            slow_actions=directories.slow_actions(),
            default_directory=config.default_directory,
            max_replay=config.max_replay_bytes,
        )
        session_commands = SessionCommands(
            sessions=sessions,
            clients=clients,
            turns=turns,
            agents=host_agents,
            catalogue=catalogue,
            kept=kept,
            windows=windows,
            store=store,
            kinds=spine.kinds,
            registered=registered,
        )

        self.spine = spine
        self.services = services
        self.registered = registered
        self._tasks = tasks
        self._delivery = delivery
        self.clients = clients
        self._catalogue = catalogue
        self._agents = host_agents
        self.sessions = sessions
        self._extensions = extensions
        own = [ActiveClients(grace=config.client_grace), agent_commands, approvals, Questions()]
        self._features = [*own, *features]
        self._shared = Shared(
            commands=Commands(registered, extensions, handshake.notifications(), ExtensionsOfAgents(turns.open_agent)),
            delivery=delivery,
            tasks=tasks,
            tracing=tracing,
            config=config,
            monotonic=monotonic,
            reading=reading,
            sessions=sessions,
        )
        self._running: AsyncExitStack | None = None

        for command in (*handshake.commands(), *session_commands.commands()):
            registered.command(command)
        registered.listen(spine.unsettled.heard)
        turns.register(registered)
        windows.register(registered)
        registered.listen(sessions.heard)
        registered.recover(sessions.recover)
        registered.listen(lambda applied: times.heard(applied, now()))
        for feature in self._features:
            feature.register(registered, services)
        registered.prepare_session(session_tools.prepare)
        for agent in host_agents:
            agent.changed = host_agents.publish

    def extension(self, name: str, /, *, version: str | None = None, **capability: Any) -> Extension:
        """Register a protocol extension; it is advertised to every client. Do it before the host starts."""
        if self._running is not None:
            raise LocalProtocolError(f"the host runs already: register {name!r} before it starts")
        extension = Extension(name, version=version, capability=capability)
        self._extensions.register(extension)
        return extension

    async def serve(self, transport: Transport) -> None:
        """Serve one client until its connection ends."""
        connection = Connection(self._shared, transport)
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
            self.spine.restore()
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
        self.sessions.restore()
        self._open_root()
        for recover in self.registered.recoveries:
            recover()
        self._agents.publish()
        self._catalogue.restore(self.spine.index.sessions())

    def _open_root(self) -> None:
        """The root channel tells the truth about this run: its extensions, and how many sessions there are."""
        meta = {HOST_META: {"version": __version__}, **self._extensions.advertised()}
        state = self.spine.store.state(ROOT_URI)
        if state is None:
            fresh = {"agents": self._agents.listed(), "activeSessions": len(self.spine.index), "_meta": meta}
            self.spine.store.open(ROOT_URI, fresh)
        elif state.get("_meta") != meta:
            self.spine.store.open(ROOT_URI, {**state, "agents": self._agents.listed(), "_meta": meta})

    async def _start(self, stack: AsyncExitStack) -> None:
        """Each part that is started is ended with the host, the last one first; sessions and clients before all."""
        for part in (*self._features, *self._agents):
            stack.push_async_callback(_close, part)
            await part.start()
        stack.callback(self._agents.close)
        stack.push_async_callback(self.say_goodbye)
        self.sessions.resume()
        self._tasks.spawn(self._catalogue.read(), name="read the list of sessions")
        self._tasks.spawn(self.sessions.rest_when_unused(), name="let sessions rest")
        with suppress(InternalError):  # The log has reported it. What is there can be read all the same.
            await self._delivery.durable()

    async def say_goodbye(self) -> None:
        """End what runs, let the clients hear how it ended, and close their connections.

        A host that ends does this by itself. Call it before when something else, such as a server, would close the
        connections first.
        """
        reason = "the host is shutting down"
        if self.spine.dispatcher.closed == reason:
            return
        self.spine.dispatcher.closed = reason
        await self.sessions.aclose()
        for feature in self._features:
            _tell_stopping(feature)
        with suppress(InternalError, TimeoutError):  # A disk that fails, or a log that never answers, stops nobody.
            async with asyncio.timeout(_GOODBYE_PATIENCE):
                await self._delivery.durable()
        self._catalogue.flush()
        await self.clients.aclose(reason)


def _tell_stopping(feature: Feature) -> None:
    try:
        feature.stopping()
    except Exception:
        _log.exception("%s failed when the host stopped", type(feature).__name__)


async def _close(part: Feature | Agent) -> None:
    """End one part; when that fails, the others are ended all the same."""
    try:
        await part.aclose()
    except Exception:
        _log.exception("%s did not close cleanly", type(part).__name__)


__all__ = ["Host", "Spine"]
