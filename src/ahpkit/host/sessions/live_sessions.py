"""Keeps sessions live while they are used, and lets the others rest.

While a session rests, only its text and its entry in the index are in memory. `wake` makes it live when a client
subscribes to it or an action is applied to it. After a restart all sessions rest, except those in which something was
under way.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from ahpkit.host.agent import Agent, AgentError
from ahpkit.host.agents import Agents
from ahpkit.host.clients.clients import Clients
from ahpkit.host.registration import SessionHooks
from ahpkit.host.sessions.chat_rules import is_worker
from ahpkit.host.spine.session_index import SessionIndex, Unsettled
from ahpkit.host.spine.store import Store
from ahpkit.host.states import NO_SESSION
from ahpkit.host.turns.runner import ChatRunner
from ahpkit.host.turns.turns import Turns
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)

_LOOK_EVERY = 5.0
"""Seconds between two searches for unused sessions."""

_LOOK_AT = 20
"""Sessions that one search checks."""

_PREPARED_AT_ONCE = 8
"""Sessions that are prepared at the same time. One client may wake thousands of sessions, and others have to be served
meanwhile."""

_WAKE_PATIENCE = 10.0
"""Seconds that a request waits for a session to be prepared. After that it is served anyway."""


@dataclass(slots=True)
class LiveSession:
    """A session that is live."""

    agent: Agent
    ready: asyncio.Future[None]
    used: float = 0.0
    """When something last happened in it, by a monotonic clock."""
    chats: dict[str, ChatRunner] = field(default_factory=dict[str, ChatRunner])

    async def dispose(self) -> None:
        """End the agents of its chats; the session is gone."""
        for runner in self.chats.values():
            await runner.dispose()


class LiveSessions:
    """The table of live sessions by URI. The session that was unused for longest comes first."""

    def __init__(
        self,
        *,
        store: Store,
        index: SessionIndex,
        unsettled: Unsettled,
        clients: Clients,
        hooks: SessionHooks,
        tasks: Tasks,
        agents: Agents,
        turns: Turns,
        monotonic: Callable[[], float],
        rest_after: float,
        max_idle: int,
    ) -> None:
        self._store = store
        self._index = index
        self._unsettled = unsettled
        self._clients = clients
        self._hooks = hooks
        self._tasks = tasks
        self._agents = agents
        self._turns = turns
        self._monotonic = monotonic
        self._rest_after = rest_after
        self._max_idle = max_idle
        self._live: dict[str, LiveSession] = {}
        self._unprepared: dict[str, LiveSession] = {}
        """Sessions that wait to be prepared. The one that was used last is prepared first, and is at the end."""
        self._preparing = 0
        self._started = False
        self._last: tuple[str, LiveSession] | None = None
        """The channel that was woken last, and its session: a cache, because the next action is often in the same
        channel."""
        hooks.chat_moved.add(lambda chat, session: self._forget_last())

    def __getitem__(self, uri: str) -> LiveSession:
        return self._live[uri]

    def __contains__(self, uri: str) -> bool:
        return uri in self._live

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def get(self, uri: str) -> LiveSession | None:
        return self._live.get(uri)

    def add(self, uri: str, agent: Agent) -> LiveSession:
        """Add a session that begins or wakes."""
        self._forget_last()
        session = self._live[uri] = LiveSession(agent, asyncio.get_running_loop().create_future())
        return session

    def remove(self, uri: str) -> None:
        """Remove a session that is gone or rests."""
        del self._live[uri]
        self._forget_last()

    def _forget_last(self) -> None:
        self._last = None

    def add_runner(self, session_uri: str, uri: str) -> ChatRunner:
        """Make the runner of a chat's turns."""
        session = self._live[session_uri]
        runner = self._turns.add_chat(uri, session_uri, session.agent, lambda: asyncio.shield(session.ready))
        session.chats[uri] = runner
        return runner

    def runners(self) -> list[ChatRunner]:
        """The runners of all chats."""
        return [runner for session in self._live.values() for runner in session.chats.values()]

    # -- waking ----------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Continue the sessions in which something was under way in an earlier run. From now on, sessions that wake are
        prepared."""
        self._index.mark_complete()
        self._started = True
        for uri in self._unsettled.uris():
            self.make_live(self._session_of(uri) or "")
        for uri in list(self._live):
            self._resume(uri)

    def _session_of(self, channel: str) -> str | None:
        session = channel.removesuffix("/annotations")
        return session if session in self._index else self._index.session_of(channel)

    def rests(self, channel: str) -> bool:
        """Whether a channel belongs to a session that is not live."""
        if self._last is not None and self._last[0] == channel:
            return False
        session = self._session_of(channel)
        return session is not None and session not in self._live

    def wake(self, channel: str) -> None:
        """Make the session of a channel live, if it rests. Features prepare it in the background."""
        if self._last is not None and self._last[0] == channel:
            self._last[1].used = self._monotonic()
            return
        session = self._session_of(channel)
        if session is None:
            return
        if session not in self._live and self.make_live(session) and self._started:
            self._resume(session)
        self._use(session)
        self._last = channel, self._live[session]

    def _use(self, uri: str) -> None:
        self._forget_last()
        session = self._live[uri] = self._live.pop(uri)
        session.used = self._monotonic()
        if uri in self._unprepared:
            self._unprepared[uri] = self._unprepared.pop(uri)

    async def wake_gently(self, channel: str) -> None:
        """Like `wake`, but a large session is read piece by piece, and other tasks run meanwhile."""
        session = self._session_of(channel)
        if session is None or session in self._live:
            return
        async with self.reading(session):
            self.wake(channel)
        await asyncio.sleep(0)  # Other tasks run between two sessions.

    def reading(self, session: str) -> AbstractAsyncContextManager[None]:
        """Read a session piece by piece, if it rests. Until the end of the block, reading its states is quick."""
        return self._store.reading(*self._channels_of(session))

    async def awake(self, channel: str) -> None:
        """Wake the session of a channel and wait until it is prepared, but not for long."""
        await self.wake_gently(channel)
        self.wake(channel)
        session = self._live.get(self._session_of(channel) or "")
        if session is not None and not session.ready.done():
            await asyncio.wait([session.ready], timeout=_WAKE_PATIENCE)

    def make_live(self, uri: str) -> bool:
        """Make a session live; returns False if it is live already or does not exist."""
        if uri in self._live or uri not in self._index:
            return False
        self._store.wake(uri)
        state = self._store.session(uri) or NO_SESSION
        agent = self._agents.of_session(state["provider"])
        self.add(uri, agent)
        for summary in state["chats"]:
            if self._index.session_of(summary["resource"]) == uri:
                self._store.wake(summary["resource"])
                if not is_worker(summary):
                    self.add_runner(uri, summary["resource"])
        return True

    def _resume(self, uri: str) -> None:
        """Continue the creation of a session that was interrupted; have all other sessions prepared again."""
        session = self._live[uri]
        state = self._store.session(uri) or NO_SESSION
        if state["lifecycle"] == "creating":
            self._hooks.creation_interrupted.tell(uri)
        elif state["lifecycle"] == "failed":
            session.ready.set_exception(AgentError("The session was not created.", error_type="host"))
            session.ready.exception()
        else:
            self._unprepared[uri] = session
            if self._preparing < _PREPARED_AT_ONCE:
                self._preparing += 1
                self._tasks.spawn(self._prepare_waiting(), name="prepare sessions")

    async def _prepare_waiting(self) -> None:
        try:
            while self._unprepared:
                await self._prepare_again(*self._unprepared.popitem())
        finally:
            self._preparing -= 1

    async def _prepare_again(self, uri: str, session: LiveSession) -> None:
        for prepare in self._hooks.prepare if self._live.get(uri) is session else ():
            try:
                await prepare(uri)
            except Exception:  # The session wakes without this feature.
                if self._live.get(uri) is session:  # A session that was deleted meanwhile needs no features.
                    _log.exception("a feature could not prepare %s again", uri)
        if not session.ready.done():
            session.ready.set_result(None)
        for runner in list(session.chats.values()):
            runner.take_next()

    # -- resting ---------------------------------------------------------------------------------------------------

    async def rest_when_unused(self) -> None:
        """Runs for ever: looks for unused sessions and lets them rest."""
        while True:
            await asyncio.sleep(min(self._rest_after / 2, _LOOK_EVERY))
            self.rest_unused()
            await self._store.free()

    def rest_unused(self) -> None:
        """Let sessions rest that were unused for long, or for longest if too many are live. One call checks only a few
        sessions, so its cost does not grow with their number."""
        now = self._monotonic()
        for uri, session in list(itertools.islice(self._live.items(), _LOOK_AT)):
            if len(self._live) <= self._max_idle and now - session.used < self._rest_after:
                return
            if self._is_used(uri, session):
                self._use(uri)
            else:
                self._rest(uri, session)

    def _is_used(self, uri: str, session: LiveSession) -> bool:
        chats = self._index.chats(uri)
        if not session.ready.done() or not all(map(self._store.durable, (uri, *chats))):
            return True
        if any(self._clients.subscribers(channel) for channel in (uri, f"{uri}/annotations", *chats)):
            return True
        if any(channel in self._unsettled for channel in (uri, *chats)):
            return True
        if not all(runner.can_rest for runner in session.chats.values()):
            return True
        return any(busy(uri) for busy in self._hooks.is_busy)

    def _rest(self, uri: str, session: LiveSession) -> None:
        self.remove(uri)
        for chat, runner in session.chats.items():
            self._turns.rest_chat(chat)
            self._tasks.spawn(runner.rest(), name=f"rest {chat}")
        self._hooks.rested.tell(uri)
        self._tasks.spawn(self._rest_channels(uri), name=f"rest {uri}")

    async def _rest_channels(self, uri: str) -> None:
        """Let channels rest one after the other, because each may be large."""
        for channel in self._channels_of(uri):
            await self._store.rest(channel, still=lambda: uri not in self._live)
            await asyncio.sleep(0)

    def _channels_of(self, uri: str) -> list[str]:
        return [uri, f"{uri}/annotations", *self._index.chats(uri)]


__all__ = ["LiveSession", "LiveSessions"]
