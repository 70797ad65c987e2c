"""The host: puts the parts together and owns every task. Knows no transport kind, no agent kind, no argv.

    async with Host(storage, agents=[...]) as host:
        await host.serve(transport)          # once per client

The way of an action: connection → dispatcher (policy) → store (reduce, number) → log (commit) → fan-out.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from opentelemetry.trace import TracerProvider

from ahpkit.host.active_client import ActiveClients
from ahpkit.host.agent import Agent, SubChat
from ahpkit.host.agent_commands import AgentCommands
from ahpkit.host.agent_sessions import AgentSessions
from ahpkit.host.chat_summaries import ChatSummaries
from ahpkit.host.clients import Clients
from ahpkit.host.clock import steady
from ahpkit.host.config import HostConfig
from ahpkit.host.connection import Connection
from ahpkit.host.dispatch import Dispatcher, Ledger
from ahpkit.host.extensions import Extension, Extensions
from ahpkit.host.fanout import Fanout
from ahpkit.host.feature import Applied, ConnectedClient, Feature
from ahpkit.host.limits import MAX_REASON
from ahpkit.host.live_chat import LiveChat, path_of
from ahpkit.host.recovery import end_interrupted_turns
from ahpkit.host.root import SessionCatalogue, agent_info, initial_root
from ahpkit.host.sessions import Sessions
from ahpkit.host.store import Origin, Store, envelope
from ahpkit.host.subchat import LiveSubChat
from ahpkit.host.tools import client_tool, model_tools
from ahpkit.host.tracing import Tracing
from ahpkit.host.turn import LiveTurn
from ahpkit.host.values import DurableValues
from ahpkit.host.verbs import ORDERED, Verb, Verbs
from ahpkit.log.entry import Entry, Step
from ahpkit.log.log import Log
from ahpkit.log.storage import Storage
from ahpkit.protocol.channels import ROOT_URI, channel_of
from ahpkit.protocol.codec import decode_json
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InternalError, InvalidParams, LocalProtocolError, NotFound
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)


class Host:
    """One agent host. Implements `ahpkit.host.feature.Services` for its features."""

    def __init__(
        self,
        storage: Storage,
        *,
        agents: Sequence[Agent],
        features: Sequence[Feature] = (),
        config: HostConfig | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self.config = config or HostConfig()
        self.now = steady(now)
        self.new_id = new_id
        self.monotonic = time.monotonic
        self.agents: dict[str, Agent] = {agent.provider: agent for agent in agents}
        self.log = Log(storage, on_commit=self._committed, on_error=self._disk_trouble, on_refused=self._not_stored)
        self.store = Store(self.log, now=self.now)
        self.values = DurableValues(self.log)
        self.fanout = Fanout()
        self.tracing = Tracing(tracer_provider)
        self.clients = Clients(self)
        self.catalogue = SessionCatalogue(self.store.committed, self.clients)
        self.sessions = Sessions(self)
        self.agent_sessions = AgentSessions(self)
        self.extensions = Extensions(self.clients, spawn=self.spawn)
        self.active_clients = ActiveClients(grace=self.config.client_grace)
        self.commands_board = AgentCommands()
        self.features: list[Feature] = [self.active_clients, self.commands_board, *features]
        self.dispatcher = Dispatcher(self.store, self.features, Ledger(self.log.seen))
        self._summaries = ChatSummaries(self)
        self.authenticated: set[str] = set()
        """Resources a client has pushed a token for since the start; tokens are never kept here."""
        self._subturns: dict[str, LiveTurn] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._room = asyncio.Event()
        self._trouble = asyncio.Event()
        self.verbs: dict[str, Verb] = {}
        self.notifications = Verbs(self).notifications()
        self.ordered_verbs = ORDERED

    # -- life ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.log.__aenter__()
        recovery = self.log.take_recovery()
        for problem in recovery.problems:
            _log.warning("%s", problem)
        self.store.restore(recovery)
        self.values.restore(recovery.values)
        self._wire_up()
        self._open_root()
        await self._start_parts()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.clients.aclose("the host is shutting down")
        await self.sessions.aclose()
        self.catalogue.flush()
        for part in (*self.features, *self.agents.values()):
            try:
                await part.aclose()
            except Exception:
                _log.exception("%s did not close cleanly", type(part).__name__)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.log.__aexit__(None, None, None)

    def _wire_up(self) -> None:
        self.dispatcher.session_state = lambda chat: self.store.state(self.sessions.session_of(chat) or "")
        self.dispatcher.defer = self.sessions.defer
        self.dispatcher.refusing = lambda: self.log.failing
        self.dispatcher.listen(self._to_runner)
        self.dispatcher.listen(self._summaries.on_applied)
        verbs: dict[str, Verb] = dict(Verbs(self).requests())
        for feature in self.features:
            feature.services = self
            verbs |= feature.commands  # type: ignore[arg-type]  # a Connection is the ConnectedClient it takes
            if type(feature).on_applied is not Feature.on_applied:  # Most hear nothing, and there are many actions.
                self.dispatcher.listen(feature.on_applied)
        self.verbs = verbs

    def _open_root(self) -> None:
        uris = [uri for uri in self.store.channels() if (channel := channel_of(uri)) and channel.name == "session"]
        fresh = initial_root(self.agents.values(), len(uris), self.extensions.advertised())
        state = self.store.state(ROOT_URI)
        if state is None or state.get("_meta") != fresh["_meta"]:
            self.store.open(ROOT_URI, fresh if state is None else {**state, **fresh})
        elif state["agents"] != fresh["agents"]:
            self.dispatch(ROOT_URI, {"type": "root/agentsChanged", "agents": fresh["agents"]})
        for uri in uris:
            self.sessions.restore(uri)

    async def _start_parts(self) -> None:
        for feature in self.features:
            await feature.start()
        for agent in self.agents.values():
            agent.changed = self._agents_changed
            await agent.start()
        end_interrupted_turns(self)
        for uri in self.sessions.uris():
            self.sessions.resume(uri)
        with suppress(InternalError):  # Reported by `_disk_trouble`. What is there can be read all the same.
            await self.durable()

    async def serve(self, transport: Transport) -> None:
        """Serve one client until its connection ends."""
        connection = Connection(self, transport)
        self.clients.connected(connection)
        await connection.run()

    def extension(self, name: str, /, *, version: str | None = None, **capability: Any) -> Extension:
        """Register a protocol extension; it is advertised to every client. Do it before the host starts."""
        if self.verbs:
            raise LocalProtocolError(f"the host runs already: register {name!r} before it starts")
        extension = Extension(name, version=version, capability=capability)
        self.extensions.register(extension)
        return extension

    # -- services for features and agents ------------------------------------------------------------------------

    def state(self, uri: str) -> JsonObject | None:
        return self.store.state(uri)

    def session_uris(self) -> Sequence[str]:
        return self.sessions.uris()

    def dispatch(self, uri: str, action: JsonObject) -> int:
        return self.dispatcher.apply(uri, action)

    def open_channel(self, uri: str, state: JsonObject) -> None:
        self.store.open(uri, state)

    def close_channel(self, uri: str) -> None:
        self.store.close(uri)

    def client(self, client_id: str) -> ConnectedClient | None:
        return self.clients.get(client_id)

    def subscribers(self, uri: str) -> Sequence[ConnectedClient]:
        return self.clients.subscribers(uri)

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        self.spawn_task(work, name=name)

    def spawn_task(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the task %r failed", task.get_name(), exc_info=error)

    @property
    def default_directory(self) -> Path:
        return self.config.default_directory

    @property
    def default_provider(self) -> str | None:
        return self.config.default_provider or next(iter(self.agents), None)

    def directory_of(self, uri: str | None) -> Path:
        return path_of(uri, self.default_directory)

    async def checked_directory(self, uri: str | None) -> Path:
        """The directory that a URI names, if sessions may have it; the default one for None."""
        if uri is not None:
            for feature in self.features:
                await feature.check_directory(uri)
        return self.directory_of(uri)

    def advertised(self) -> JsonObject:
        """`_meta` of the initialize result."""
        state = self.store.state(ROOT_URI) or {}
        return state.get("_meta", {})

    async def authenticate(self, resource: str, token: str) -> None:
        """Hand a token to whoever asked for it."""
        for agent in self.agents.values():
            if any(known["resource"] == resource for known in agent.protected_resources):
                await agent.authenticate(resource, token)
                self.authenticated.add(resource)
                return
        for feature in self.features:
            if await feature.authenticate(resource, token):
                return
        raise InvalidParams(f"resource: nothing here asked for a token for {resource!r}")

    def login_needed(self, agent: Agent, session_uri: str) -> None:
        """Tell every client where a token is needed before the agent of a session goes on."""
        for resource in agent.protected_resources:
            params: JsonObject = {"channel": session_uri, "resource": resource["resource"], "reason": "required"}
            self.clients.to_all("auth/required", params)

    # -- turns ---------------------------------------------------------------------------------------------------

    def make_turn(self, chat: LiveChat, turn_id: str, message: Any) -> LiveTurn:
        return LiveTurn(
            chat,
            id=turn_id,
            message=message,
            host=self,
            hooks=_Hooks(chat, self.features),
            dispatch=lambda action: self.dispatch(chat.uri, action),
            chat_state=lambda: self.store.state(chat.uri),
            activity=lambda text: self._summaries.activity(chat, text),
        )

    async def prepare_turn(self, turn: LiveTurn) -> None:
        """Let the features add to a turn before its agent sees it."""
        session = self.store.state(turn.chat.session_uri) or {}
        turn.context.tools.extend(model_tools(session))
        for feature in self.features:
            turn.prompt = await feature.prepare_turn(turn.chat, turn.message, turn.prompt, turn.context)
            turn.canvas = turn.canvas or feature.canvas_runtime(turn.chat)

    def turn_over(self, chat: LiveChat) -> None:
        self._summaries.activity(chat, None)
        self.sessions.turn_over(chat.session_uri)

    def apply_deferred(self, uri: str, action: JsonObject, origin: Origin) -> None:
        """A selection that waited for a turn: it may have become impossible meanwhile."""
        reason = self.dispatcher.check(uri, action, origin.client_id)
        if reason is None:
            self.dispatcher.apply(uri, action, origin)
        else:
            self.reject(uri, action, origin, reason)

    def reject(self, uri: str, action: JsonObject, origin: Origin, reason: str) -> None:
        """Send an action back to whoever dispatched it."""
        if (client := self.clients.get(origin.client_id)) is not None:
            client.notify("action", envelope(uri, action, self.store.committed_head, origin, reason[:MAX_REASON]))

    def client_tool(self, session_uri: str, model_name: str) -> tuple[str, str] | None:
        return client_tool(self.store.state(session_uri) or {}, model_name)

    def store_content(self, session_uri: str, data: bytes, content_type: str) -> str:
        for feature in self.features:
            if (uri := feature.store_content(session_uri, data, content_type)) is not None:
                return uri
        raise NotFound("this host keeps no content")

    async def spawn_subchat(self, parent: LiveTurn, title: str, prompt: str, tool_call_id: str | None) -> SubChat:
        return await self.sessions.subchat(parent, title, prompt, tool_call_id)

    async def begin_subchat(self, parent: LiveTurn, uri: str, session_uri: str, prompt: str) -> SubChat:
        """Start the one turn of a sub-agent's chat."""
        message = {"text": prompt, "origin": {"kind": "agent"}}
        turn_id = self.new_id()
        chat = self.sessions.live_chat(uri, session_uri)
        turn = self.make_turn(chat, turn_id, message)
        turn.context = parent.context
        turn.trace = parent.trace
        self._subturns[uri] = turn
        self.dispatch(uri, {"type": "chat/turnStarted", "turnId": turn_id, "message": message})
        return LiveSubChat(turn, lambda: self._subturns.pop(uri, None) and None)

    def _to_runner(self, applied: Applied) -> None:
        runner = self.sessions.runner(applied.channel)
        if runner is not None:
            runner.on_applied(applied)
        elif (turn := self._subturns.get(applied.channel)) is not None:
            turn.heard(applied.action, applied.before)
            turn.over = not applied.after.get("activeTurn")
        elif applied.action["type"] in ("session/configChanged", "session/modelChanged", "session/agentChanged"):
            for runner in self.sessions.runners(applied.channel):
                self.spawn(runner.configure(), name="configure")

    # -- connections ---------------------------------------------------------------------------------------------

    def admit(self, client: Connection, client_id: str, capabilities: JsonObject | None) -> None:
        """Bind a connection to its client id, or refuse. Without capabilities those it said last still hold."""
        self.clients.admit(client, client_id)
        self.clients.take_capabilities(client, capabilities)
        self.active_clients.on_client_back(client_id)

    def connection_ended(self, client: Connection) -> None:
        for uri in tuple(client.outbox.channels):
            self.unsubscribe(uri, client)
        if self.clients.left(client):
            self.tell_features(lambda feature: feature.on_client_gone(client.client_id))

    def unsubscribe(self, uri: str, client: Connection) -> None:
        self.fanout.unsubscribe(uri, client.outbox)
        if not self.fanout.has_subscribers(uri):
            self.tell_features(lambda feature: feature.on_unsubscribed(uri))

    def tell_features(self, hook: Callable[[Feature], None]) -> None:
        """Tell every feature what happened; one that fails keeps nobody from hearing it."""
        for feature in self.features:
            try:
                hook(feature)
            except Exception:
                _log.exception("the feature %s failed", feature.name)

    def serves_stateless(self, uri: str) -> bool:
        """Whether a channel without state (telemetry, MCP) may be subscribed to."""
        return any(feature.serves_channel(uri) for feature in self.features)

    def can_replay(self, last_seen: int, channels: Iterable[str]) -> bool:
        """Whether the log reaches back far enough to bring a client up to date."""
        if not self.log.oldest_seq - 1 <= last_seen <= self.store.committed_head:
            return False
        return all(self.store.opened_at(uri) <= last_seen for uri in channels)

    # -- the log -------------------------------------------------------------------------------------------------

    async def durable(self) -> None:
        """Wait until everything so far is on disk; raises when the disk does not take it."""
        flushed = asyncio.ensure_future(self.log.flush())
        trouble = asyncio.ensure_future(self._trouble.wait())
        try:
            await asyncio.wait({flushed, trouble}, return_when=asyncio.FIRST_COMPLETED)
            if not flushed.done():
                raise InternalError(f"this is not stored yet and may be lost: {self.log.failing}")
        finally:
            flushed.cancel()
            trouble.cancel()

    async def room(self, uri: str) -> None:
        await self.log.flush()
        await self.clients.drained(uri)

    async def log_room(self) -> None:
        """Slow a connection down while the disk is behind."""
        while self.store.backlog > self.config.max_log_backlog and self.log.failing is None:
            self._room.clear()
            await self._room.wait()

    def _committed(self, entries: list[Entry]) -> None:
        self._trouble.clear()
        turnover = self.store.commit(self.log.durable, entries)
        self.fanout.deliver(entries)
        for uri in turnover.gone:
            self.fanout.close(uri)
        self.catalogue.follow(turnover, {entry.channel for entry in entries})
        for uri in self.log.snapshots_due():
            asyncio.get_running_loop().call_soon(self.store.checkpoint, uri)  # Each may be large: one step for each.
        if self.store.backlog <= self.config.max_log_backlog:
            self._room.set()

    def _not_stored(self, step: Step, reason: str) -> None:
        """The log cannot hold this: it never happened, and whoever sent it hears so."""
        _log.error("a %s could not be stored and is dropped: %s", type(step).__name__, reason)
        if not isinstance(step, Entry):
            return
        self.store.undo(step)
        if step.client_id is not None and step.client_seq is not None:
            origin = Origin(step.client_id, step.client_seq)
            action = decode_json(step.payload)["action"]
            self.reject(step.channel, action, origin, "this action could not be stored, so it was not done")

    def _disk_trouble(self, error: Exception) -> None:
        _log.error("the log cannot be written: %s. New actions are refused until it can.", error)
        self._room.set()
        self._trouble.set()

    def _agents_changed(self) -> None:
        agents = [agent_info(agent) for agent in self.agents.values()]
        if (self.store.state(ROOT_URI) or {}).get("agents") != agents:
            self.dispatch(ROOT_URI, {"type": "root/agentsChanged", "agents": agents})


class _Hooks:
    """Asks every feature before a tool call of one chat."""

    def __init__(self, chat: LiveChat, features: Iterable[Feature]) -> None:
        self._chat = chat
        self._features = features

    async def before_tool(self, name: str, tool_input: str) -> str | None:
        for feature in self._features:
            if (denial := await feature.before_tool(self._chat, name, tool_input)) is not None:
                return denial
        return None


__all__ = ["Host"]
