"""Conversations that agents keep by themselves: found, listed beside the host's own, opened like them. Knows no ACP.

One is only listed until a client subscribes to it. Then it becomes a session of the host, with its history. One that
was disposed of is not listed again, also when its agent still has it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ahpkit.host.agent import Agent, AgentError, AgentSession
from ahpkit.host.live_chat import MEMORY_PREFIX
from ahpkit.host.new_state import kept_session
from ahpkit.protocol.codec import encode
from ahpkit.protocol.common.state import JsonObject

if TYPE_CHECKING:
    from ahpkit.host.host import Host

_PATIENCE = 1.0
"""Seconds for an agent that runs: whoever asked for the list waits."""
_START_PATIENCE = 60.0
"""Seconds for an agent that has to be started first, which somebody asked for."""
_FRESH = 5.0
"""Seconds in which the same agent is not asked again."""
_MAX_HIDDEN = 1000
"""Disposed conversations remembered per agent."""
_HIDDEN = "agent-sessions-hidden/"
"""Before an agent's name: the durable value with the conversations that were disposed of."""
_ADOPTED = "adopted/"
"""Before a session's URI: the durable value that says which conversation its chat is to go on with."""

_log = logging.getLogger(__name__)


class AgentSessions:
    """What the agents of a host keep."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._kept: dict[str, Sequence[AgentSession]] = {}
        self._asked: dict[str, float] = {}

    async def look(self, *, start: bool = False) -> None:
        """Ask the agents that run, and with `start` the others too."""
        able = [agent for agent in self._host.agents.values() if type(agent).sessions is not Agent.sessions]
        await asyncio.gather(*(self._ask(agent, start) for agent in able if start or self._is_stale(agent)))

    def summaries(self) -> list[JsonObject]:
        """What is kept and is no session of the host, as lists show it."""
        return [kept_session(uri, agent.provider, kept)["summary"] for uri, agent, kept in self._listed()]

    def adopt(self, uri: str) -> bool:
        """Make a kept conversation a session of the host, once; False when there is none with that URI."""
        if self.to_recall(uri):
            return True
        for listed, agent, kept in self._listed():
            if listed == uri:
                self._host.values.set(_ADOPTED + uri, kept.memory)
                self._host.sessions.adopt(uri, agent, kept)
                return True
        return False

    def to_recall(self, uri: str) -> JsonObject:
        """The conversation that a session is made of, while its history is still to come; else nothing."""
        return self._host.values.get(_ADOPTED + uri) or {}

    def recalled(self, uri: str) -> None:
        """A session has its history."""
        self._host.values.set(_ADOPTED + uri, None)

    def disposed(self, uri: str, provider: str) -> None:
        """A session is gone; if its history was still to come, nobody wants it."""
        if memory := self.to_recall(uri):
            self.hide(provider, memory)
            self.recalled(uri)

    def hide(self, provider: str, memory: JsonObject) -> None:
        """Never list this conversation again."""
        key = _HIDDEN + provider
        hidden: list[JsonObject] = self._host.values.get(key) or []
        self._host.values.set(key, [*hidden, memory][-_MAX_HIDDEN:])

    def dismiss(self, uri: str) -> bool:
        """Hide a conversation by the URI it is listed under; False when there is none."""
        for listed, agent, kept in self._listed():
            if listed == uri:
                self.hide(agent.provider, kept.memory)
                return True
        return False

    async def _ask(self, agent: Agent, start: bool) -> None:
        self._asked[agent.provider] = self._host.monotonic()
        try:
            async with asyncio.timeout(_START_PATIENCE if start else _PATIENCE):
                kept = await agent.sessions(self._host.default_directory, start=start)
        except (AgentError, TimeoutError) as error:
            _log.warning("agent %s did not list its sessions: %s", agent.provider, error or "no answer in time")
            return
        if kept is not None:
            self._kept[agent.provider] = kept

    def _is_stale(self, agent: Agent) -> bool:
        asked = self._asked.get(agent.provider)
        return asked is None or self._host.monotonic() - asked > _FRESH

    def _listed(self) -> Iterator[tuple[str, Agent, AgentSession]]:
        ours: list[Any] = [memory for _, memory in self._host.values.items(MEMORY_PREFIX)] if self._kept else []
        for provider, kept in self._kept.items():
            hidden: list[Any] = self._host.values.get(_HIDDEN + provider) or []
            left_out = {_key(memory) for memory in (*ours, *hidden)}
            for one in kept:
                uri = _uri(provider, one)
                if _key(one.memory) not in left_out and not self._host.store.taken(uri):
                    yield uri, self._host.agents[provider], one


def _key(memory: JsonObject) -> bytes:
    return encode(dict(sorted(memory.items())))


def _uri(provider: str, kept: AgentSession) -> str:
    """The same for the same conversation, also after a restart."""
    name = f"ahpkit/{provider}/" + _key(kept.memory).decode()
    return f"ahp-session:/{uuid.uuid5(uuid.NAMESPACE_URL, name)}"


__all__ = ["AgentSessions"]
