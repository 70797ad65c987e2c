"""Puts the parts of a host together, room by room: spine, clients, turns, sessions, front.

Each class makes the parts of one room from those of the rooms before it. An earlier room may have to call a later one:
the dispatcher wakes sessions, for example. For this, the later room's `register` adds functions to the tables of
`Registration`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from ahpkit.dialects.base import ClientFacts
from ahpkit.host.agent import Agent
from ahpkit.host.agents import Agents
from ahpkit.host.clients.agent_extensions import AgentExtensions
from ahpkit.host.clients.client_actions import ClientActions
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.commands import Commands
from ahpkit.host.clients.connection import ConnectionParts
from ahpkit.host.clients.dialect_choice import ClientNotes, DialectChoice, Surroundings
from ahpkit.host.clients.extensions import Extensions, ExtensionsOfAgents
from ahpkit.host.clients.handshake import Handshake
from ahpkit.host.clients.turn_windows import TurnWindows
from ahpkit.host.config import HostConfig
from ahpkit.host.registration import Registration
from ahpkit.host.services import HostServices
from ahpkit.host.sessions.agent_conversations import AgentConversations
from ahpkit.host.sessions.catalogue import STAMPING, SessionCatalogue, SessionTimes
from ahpkit.host.sessions.commands import SessionCommands
from ahpkit.host.sessions.creation import SessionCreation
from ahpkit.host.sessions.directories import Directories, NewDirectories
from ahpkit.host.sessions.live_sessions import LiveSessions
from ahpkit.host.sessions.session_chats import SessionChats
from ahpkit.host.sessions.session_search import SessionSearch
from ahpkit.host.sessions.sessions import SessionChannels, Sessions
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.delivery import Delivery
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.host.spine.fanout import Fanout
from ahpkit.host.spine.session_index import SessionIndex, Unsettled, WaitingSelections
from ahpkit.host.spine.store import Store
from ahpkit.host.states import NO_SESSION
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.approvals import Approvals
from ahpkit.host.turns.completions import AgentCommands
from ahpkit.host.turns.new_state import OPENING_PREFIX
from ahpkit.host.turns.session_tools import SessionTools
from ahpkit.host.turns.turns import SENDING, Turns, TurnsPorts
from ahpkit.log.engine import LogEngine
from ahpkit.log.entry import Entry
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonParts:
    """What the parts of every room are given: settings, clocks, ids, tasks, and what features have registered."""

    config: HostConfig
    registered: Registration
    tasks: Tasks
    tracing: Tracing
    now: Callable[[], int]
    new_id: Callable[[], str]
    monotonic: Callable[[], float]


class Spine:
    """Store, dispatcher, log and fan-out: every action passes through them."""

    def __init__(self, common: CommonParts, log: LogEngine) -> None:
        self.log = log
        self.values = DurableValues(log.set_value)
        self.kinds = ChannelKinds(self.values)
        self.store = Store(log, self.kinds, now=common.now)
        self.index = SessionIndex(self.values)
        self.unsettled = Unsettled(self.values, self.index)
        self.waiting = WaitingSelections(self.index, self.store)
        self.fanout = Fanout()
        self.dispatcher = Dispatcher(
            self.store,
            log=log,
            kinds=self.kinds,
            index=self.index,
            waiting=self.waiting,
            hooks=common.registered.actions,
        )

    def register(self, registered: Registration) -> None:
        registered.actions.listen(self.unsettled.on_applied, "session/", "chat/")

    def restore(self) -> Sequence[Entry]:
        """Take over the states and values that an earlier run has stored; returns the actions after these states."""
        recovery = self.log.take_recovery()
        for problem in recovery.problems:
            _log.warning("%s", problem)
        self.values.restore(recovery.values)
        self.store.restore(recovery)
        return recovery.tail


class ClientParts:
    """The connected clients, the list of sessions, and the delivery, which updates both with each commit."""

    def __init__(self, common: CommonParts, spine: Spine) -> None:
        config = common.config
        self.clients = Clients(
            spine.store,
            spine.fanout,
            events=common.registered.clients,
            channels=common.registered.channels,
            not_stored=common.registered.actions.not_stored,
            reader_patience=config.reader_patience,
        )
        self.times = SessionTimes(spine.values, common.now)
        self.catalogue = SessionCatalogue(
            spine.store.committed,
            self.clients,
            self.times,
            kinds=spine.kinds.name_of,
            opening=lambda chat: spine.values.get(f"{OPENING_PREFIX}{chat}"),
            reading=spine.store.reading,
        )
        self.delivery = Delivery(
            spine.log,
            spine.store,
            spine.fanout,
            listener=self.catalogue.follow,
            on_refused=self.clients.not_stored,
            before_checkpoint=self.times.keep,
            max_backlog=config.max_log_backlog,
        )

    def register(self, registered: Registration) -> None:
        registered.actions.listen(self.times.on_applied, *STAMPING)


class TurnParts:
    """Agents, their tools and approvals, the turns that use all of them, and the services for features."""

    def __init__(self, common: CommonParts, spine: Spine, clients: ClientParts, agents: Sequence[Agent]) -> None:
        config, store, apply = common.config, spine.store, spine.dispatcher.apply
        self.agents = Agents(
            agents,
            default=config.default_provider,
            clients=clients.clients,
            hooks=common.registered.agents,
            states=store,
            dispatch=apply,
            spawn=lambda work: common.tasks.spawn(work, name="agents"),
        )
        self.approvals = Approvals(config.rules)
        self.commands = AgentCommands()
        self.extensions = Extensions(common.tasks)
        self.tools = SessionTools(
            common.registered.tools,
            states=store,
            dispatch=apply,
            agent_tools=lambda uri: self.agents.tools_of(store.session(uri) or NO_SESSION),
        )
        self.turns = Turns(
            TurnsPorts(
                store=store,
                values=spine.values,
                dispatcher=spine.dispatcher,
                index=spine.index,
                unsettled=spine.unsettled,
                waiting=spine.waiting,
                clients=clients.clients,
                delivery=clients.delivery,
                hooks=common.registered.turns,
                tasks=common.tasks,
                tracing=common.tracing,
                agents=self.agents,
                extensions=AgentExtensions(self.extensions, clients.clients, patience=config.extension_patience),
                commands=self.commands,
                approvals=self.approvals,
                tools=self.tools,
                default_directory=config.default_directory,
                new_id=common.new_id,
                now=common.now,
            )
        )
        self.services = self._make_services(common, spine, clients)

    def _make_services(self, common: CommonParts, spine: Spine, clients: ClientParts) -> HostServices:
        return HostServices(
            values=spine.values,
            store=spine.store,
            kinds=spine.kinds,
            dispatcher=spine.dispatcher,
            delivery=clients.delivery,
            index=spine.index,
            open_matters=spine.unsettled,
            clients=clients.clients,
            agents=self.agents,
            tasks=common.tasks,
            session_tools=self.tools,
            turns=self.turns,
            now=common.now,
            new_id=common.new_id,
        )

    def register(self, registered: Registration) -> None:
        self.agents.register(registered)
        self.turns.register(registered)


class SessionParts:
    """The parts that create, restore, rest and dispose of sessions, and the conversations that agents store
    themselves."""

    def __init__(self, common: CommonParts, spine: Spine, clients: ClientParts, turns: TurnParts) -> None:
        config, store = common.config, spine.store
        self.conversations = AgentConversations(
            turns.agents,
            spine.values,
            taken=store.taken,
            monotonic=common.monotonic,
            default_directory=config.default_directory,
        )
        hooks, apply = common.registered.sessions, spine.dispatcher.apply
        self.live = _live_sessions(common, spine, clients, turns)
        chats = _session_chats(common, spine, turns, self.live, self.conversations)
        creation = SessionCreation(
            live=self.live,
            chats=chats,
            states=store,
            dispatch=apply,
            agents=turns.agents,
            turns=turns.turns,
            conversations=self.conversations,
            hooks=hooks,
            new_id=common.new_id,
            now=common.now,
        )
        self.channels = SessionChannels(
            store=store,
            kinds=spine.kinds,
            index=spine.index,
            unsettled=spine.unsettled,
            times=clients.times,
            max_sessions=config.max_sessions,
        )
        self.sessions = Sessions(
            channels=self.channels,
            live=self.live,
            chats=chats,
            creation=creation,
            directories=NewDirectories(hooks, config.default_directory),
            agents=turns.agents,
            conversations=self.conversations,
            hooks=hooks,
            states=store,
            dispatch=apply,
            durable=clients.delivery.durable,
            tasks=common.tasks,
            new_id=common.new_id,
            now=common.now,
        )
        self.directories = Directories(
            store=store,
            index=spine.index,
            dispatcher=spine.dispatcher,
            checks=common.registered.sessions.check_directory,
            runner_of=turns.turns.runner,
        )

    def register(self, registered: Registration) -> None:
        registered.actions.wake.provide(self.live.wake)
        registered.actions.listen(self.sessions.chats.on_applied, "session/defaultChatChanged")
        registered.sessions.creation_interrupted.add(self.sessions.finish)
        registered.recover.add(self.sessions.recover)


def _live_sessions(common: CommonParts, spine: Spine, clients: ClientParts, turns: TurnParts) -> LiveSessions:
    return LiveSessions(
        store=spine.store,
        index=spine.index,
        unsettled=spine.unsettled,
        clients=clients.clients,
        hooks=common.registered.sessions,
        tasks=common.tasks,
        agents=turns.agents,
        turns=turns.turns,
        monotonic=common.monotonic,
        rest_after=common.config.rest_after,
        max_idle=common.config.max_idle,
    )


def _session_chats(
    common: CommonParts, spine: Spine, turns: TurnParts, live: LiveSessions, conversations: AgentConversations
) -> SessionChats:
    return SessionChats(
        live,
        store=spine.store,
        kinds=spine.kinds,
        dispatch=spine.dispatcher.apply,
        index=spine.index,
        unsettled=spine.unsettled,
        conversations=conversations,
        hooks=common.registered.sessions,
        turns=turns.turns,
        max_chats=common.config.max_chats,
        new_id=common.new_id,
        now=common.now,
    )


class FrontParts:
    """What serves a connection: the handshake, the commands, and what all connections share."""

    def __init__(
        self, common: CommonParts, spine: Spine, clients: ClientParts, turns: TurnParts, sessions: SessionParts
    ) -> None:
        @lru_cache(1_000)
        def client_facts(client_id: str) -> ClientFacts:
            return ClientFacts(client_id, common.now, cast("Callable[[str], JsonObject | None]", spine.store.state))

        self._store = spine.store
        self.notes = ClientNotes(spine.values)
        self.windows = TurnWindows(spine.store, clients.delivery, clients.clients)
        actions = _client_actions(common, spine, clients, turns, sessions)
        handshake = _handshake(common, spine, clients, sessions, actions, self.notes, self.windows)
        of_sessions = _session_commands(common, spine, clients, turns, sessions, self.windows)
        search = SessionSearch(spine.index, spine.store)
        self._commands = (*handshake.commands(), *of_sessions.commands(), *search.commands())
        of_agents = ExtensionsOfAgents(turns.turns.open_agent)
        self.connection_parts = ConnectionParts(
            commands=Commands(common.registered.commands, turns.extensions, handshake.notifications(), of_agents),
            delivery=clients.delivery,
            tasks=common.tasks,
            tracing=common.tracing,
            config=common.config,
            monotonic=common.monotonic,
            client_facts=client_facts,
            sessions=sessions.live,
            take=actions.take,
        )

    def register(self, registered: Registration) -> None:
        registered.recover.add(lambda: self.notes.begin(self._store.committed_head))
        for command in self._commands:
            registered.commands.add(command)


def _client_actions(
    common: CommonParts, spine: Spine, clients: ClientParts, turns: TurnParts, sessions: SessionParts
) -> ClientActions:
    return ClientActions(
        clients=clients.clients,
        store=spine.store,
        log=spine.log,
        dispatcher=spine.dispatcher,
        sessions=sessions.live,
        slow_actions={**sessions.directories.slow_actions(), **dict.fromkeys(SENDING, turns.turns.send)},
        offered_again=common.registered.clients.offered_again,
        flush=clients.delivery.flush,
        tasks=common.tasks,
    )


def _handshake(
    common: CommonParts,
    spine: Spine,
    clients: ClientParts,
    sessions: SessionParts,
    actions: ClientActions,
    notes: ClientNotes,
    windows: TurnWindows,
) -> Handshake:
    def has_logged(client_id: str) -> bool:
        return not spine.log.is_new(client_id, 0)

    surroundings = Surroundings(spine.index, clients.catalogue, spine.kinds.name_of)
    return Handshake(
        clients=clients.clients,
        windows=windows,
        store=spine.store,
        kinds=spine.kinds,
        log=spine.log,
        actions=actions,
        channels=common.registered.channels,
        notes=notes,
        dialects=DialectChoice(surroundings, notes, common.config.spoken, has_logged),
        adopt=sessions.sessions.adopt,
        sessions=sessions.live,
        default_directory=common.config.default_directory,
        max_replay=common.config.max_replay_bytes,
    )


def _session_commands(
    common: CommonParts,
    spine: Spine,
    clients: ClientParts,
    turns: TurnParts,
    sessions: SessionParts,
    windows: TurnWindows,
) -> SessionCommands:
    return SessionCommands(
        sessions=sessions.sessions,
        clients=clients.clients,
        turns=turns.turns,
        agents=turns.agents,
        catalogue=clients.catalogue,
        conversations=sessions.conversations,
        windows=windows,
        store=spine.store,
        kinds=spine.kinds,
        completions=common.registered.completions,
        settings=common.registered.sessions.settings,
    )


__all__ = ["ClientParts", "CommonParts", "FrontParts", "SessionParts", "Spine", "TurnParts"]
