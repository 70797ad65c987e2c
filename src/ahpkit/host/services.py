"""Implements the services of the host that features may use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from ahpkit.host.agent import Turn
from ahpkit.host.agents import Agents
from ahpkit.host.clients.clients import Clients
from ahpkit.host.feature import ConnectedClient, Measures
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.delivery import Delivery
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.host.spine.session_index import SessionIndex, Unsettled
from ahpkit.host.spine.store import Store
from ahpkit.host.states import States
from ahpkit.host.turns.session_tools import SessionTools
from ahpkit.host.turns.turns import Turns
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject
from ahpkit.tools.registry import Tool
from ahpkit.wire.tasks import Tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class HostServices(States):
    """Implements `ahpkit.host.feature.Services`."""

    values: DurableValues
    store: Store
    kinds: ChannelKinds
    dispatcher: Dispatcher
    delivery: Delivery
    index: SessionIndex
    open_matters: Unsettled
    clients: Clients
    agents: Agents
    tasks: Tasks
    session_tools: SessionTools
    turns: Turns
    now: Callable[[], int]
    new_id: Callable[[], str]

    def state(self, uri: str) -> ChannelState | None:
        return self.store.state(uri)

    def reading(self, *uris: str) -> AbstractAsyncContextManager[None]:
        return self.store.reading(*uris)

    def session_uris(self) -> Sequence[str]:
        return self.index.sessions()

    def session_of(self, chat_uri: str) -> str | None:
        return self.index.session_of(chat_uri)

    def unsettled(self) -> Sequence[str]:
        return self.open_matters.uris()

    def channels(self, kind: str) -> Sequence[str]:
        # The kind is looked up only for channels outside of sessions: most channels belong to sessions.
        others = (uri for uri in self.store.channels() if not self.index.has_channel(uri))
        return [uri for uri in others if self.kinds.name_of(uri) == kind]

    def dispatch(self, uri: str, action: StateAction) -> None:
        self.dispatcher.apply(uri, action)

    def open_channel(self, uri: str, state: ChannelState, *, kind: str | None = None, is_retold: bool = False) -> None:
        self.store.open(uri, state, kind=kind, is_retold=is_retold)

    def close_channel(self, uri: str) -> None:
        self.store.close(uri)

    async def rest_channel(self, uri: str) -> None:
        await self.store.rest(uri)

    def may_wait(self) -> None:
        self.dispatcher.may_wait()

    async def durable(self) -> None:
        await self.delivery.durable()

    async def room(self, uri: str) -> None:
        await self.delivery.flush()
        await self.clients.drained(uri)

    def measures(self) -> Measures:
        connections = self.clients.clients()
        return Measures(
            commits=self.delivery.commits,
            deliveries=self.delivery.deliveries,
            backlog=self.store.backlog,
            unread=sum(connection.outlet.unread for connection in connections),
            connections=len(connections),
            sessions=len(self.index),
        )

    def client(self, client_id: str) -> ConnectedClient | None:
        return self.clients.get(client_id)

    def subscribers(self, uri: str) -> Sequence[ConnectedClient]:
        return self.clients.subscribers(uri)

    def tools_changed(self, session_uri: str) -> None:
        self.session_tools.refresh(session_uri)

    def tools(self, session_uri: str) -> Sequence[Tool]:
        return list(self.session_tools.registry(session_uri))

    def tool(self, session_uri: str, name: str) -> Tool | None:
        return self.session_tools.registry(session_uri).find(name)

    def follow_tools(self, session_uri: str, changed: Callable[[], None]) -> Callable[[], None]:
        return self.session_tools.follow(session_uri, changed)

    def running_turn(self, chat_uri: str) -> Turn | None:
        return self.turns.running_turn(chat_uri)

    def loads_servers(self, session_uri: str) -> Sequence[str]:
        session = self.store.session(session_uri)
        return () if session is None else self.agents.of_session(session["provider"]).loads_servers

    def writes_outside_calls(self, session_uri: str) -> bool | None:
        session = self.store.session(session_uri)
        return True if session is None else self.agents.of_session(session["provider"]).writes_outside_calls

    def sampling(self, session_uri: str) -> JsonObject | None:
        return self.turns.sampling(session_uri)

    async def sample(self, session_uri: str, request: JsonObject) -> JsonObject:
        return await self.turns.sample(session_uri, request)

    async def check_call(self, session_uri: str, tool: Tool, tool_input: str, client_id: str) -> str | None:
        return await self.turns.check_call(session_uri, tool, tool_input, client_id)

    def spawn(self, work: Coroutine[object, None, None], *, name: str) -> asyncio.Task[None]:
        return self.tasks.spawn(work, name=name)


__all__ = ["HostServices"]
