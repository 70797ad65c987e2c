"""Lists the conversations that agents store themselves, and makes sessions of them on demand.

A conversation is only listed until a client subscribes to it. Then it becomes a session of the host, with its history.
A conversation that was disposed of is not listed again, even if its agent still has it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from opentelemetry.trace import NoOpTracerProvider

from ahpkit.host.agent import Agent, AgentError, AgentSession, Chat, SubChat, Turn
from ahpkit.host.agents import Agents
from ahpkit.host.feature import Values
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.chat import MEMORY_PREFIX
from ahpkit.host.turns.new_state import kept_session, new_chat
from ahpkit.host.turns.turn import LiveTurn, TurnPorts
from ahpkit.protocol.chat.actions import ChatAction, chat_turn_started
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.chat.state import ChatState, Message
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import NotFound
from ahpkit.protocol.session.state import SessionSummary
from ahpkit.protocol.session.summary import session_summary
from ahpkit.wire.codec import encode


class RecalledHistory:
    """Implements `ahpkit.host.agent.History`."""

    def __init__(
        self,
        chat: Chat,
        *,
        new_id: Callable[[], str],
        now: Callable[[], int],
        store_content: Callable[[str, bytes, str], str],
    ) -> None:
        self._chat = chat
        self._new_id = new_id
        self._now = now
        self._state = new_chat(chat.uri, title="", now=now())
        self._ports = TurnPorts(
            tracing=Tracing(NoOpTracerProvider()),
            dispatch=self._apply,
            chat_state=lambda: self._state,
            activity=lambda text: None,
            store_content=lambda data, content_type: store_content(chat.session_uri, data, content_type),
            tool=lambda name: None,
            gone=lambda: (),
            gate=None,
            subchat=_no_subchat,
            before_call=_nothing_runs,
            writing=lambda turn_id, path: (),
            room=_nobody_reads,
            now=now,
        )
        self._turn: LiveTurn | None = None

    def turn(self, text: str) -> Turn:
        self._end_turn()
        message: Message = {"text": text, "origin": {"kind": "user"}}
        turn = LiveTurn(self._chat, self._ports, id=self._new_id(), message=message)
        started = chat_turn_started(turn_id=turn.id, started_at=iso_time(self._now()), message=message)
        self._apply(started)
        self._turn = turn
        return turn

    def turns(self) -> list[TurnRecord]:
        """End the last turn, and return all turns."""
        self._end_turn()
        return self._state["turns"]

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.complete()
            turn.end()

    def _apply(self, action: ChatAction) -> None:
        self._state = cast("ChatState", chat_reducer(cast("JsonObject", self._state), {**action}))


async def _nothing_runs(turn_id: str, call_id: str) -> None:
    """A history is imported: nothing runs in it, so there is nothing to wait for."""


async def _nobody_reads() -> None:
    """Clients get a history only when it is complete, so there are no readers to wait for."""


async def _no_subchat(parent: LiveTurn, title: str, prompt: str, tool_call_id: str | None) -> SubChat:
    raise NotFound("a turn of an imported history cannot start a sub-agent")


_PATIENCE = 1.0
"""Seconds for a running agent to answer: the client that asked for the list is waiting."""
_START_PATIENCE = 60.0
"""Seconds for an agent that has to be started first. Agents are started only if a client asks for that."""
_FRESH = 5.0
"""Seconds before the same agent is asked again."""
_MAX_HIDDEN = 1000
"""Disposed conversations remembered per agent."""
_HIDDEN = "agent-sessions-hidden/"
"""Prefix of the durable value with the conversations of an agent that were disposed of."""
_ADOPTED = "adopted/"
"""Prefix of the durable value with the conversation that a session's chat continues."""

_log = logging.getLogger(__name__)


class ListedConversation(NamedTuple):
    """A conversation that an agent keeps, and the URI that it is listed under."""

    uri: str
    agent: Agent
    kept: AgentSession


class AgentConversations:
    """The conversations that the agents of a host store."""

    def __init__(
        self,
        agents: Agents,
        values: Values,
        *,
        taken: Callable[[str], bool],
        monotonic: Callable[[], float],
        default_directory: Path,
    ) -> None:
        self._agents = agents
        self._values = values
        self._taken = taken
        """`taken(uri)`: whether a channel with this URI exists already."""
        self._monotonic = monotonic
        self._default_directory = default_directory
        self._stored: dict[str, Sequence[AgentSession]] = {}
        """Provider → the conversations that its agent listed last."""
        self._asked: dict[str, float] = {}

    async def look(self, *, start: bool = False) -> None:
        """Ask the agents for their conversations: those that run, and with `start` also the others."""
        await asyncio.gather(*(self._ask(agent, start) for agent in self._agents if start or self._is_stale(agent)))

    def summaries(self) -> list[SessionSummary]:
        """Summaries of the conversations that are not sessions of the host yet, for lists of sessions."""
        return [_summary(listed) for listed in self._listed()]

    def find(self, uri: str) -> ListedConversation | None:
        """The conversation that is listed under a URI."""
        return next((listed for listed in self._listed() if listed.uri == uri), None)

    def adopted(self, listed: ListedConversation) -> None:
        """Note that a session is made of this conversation. Its history comes later."""
        self._values.set(_ADOPTED + listed.uri, listed.kept.memory)

    def to_recall(self, uri: str) -> JsonObject:
        """The conversation whose history a session still has to get; None if there is none."""
        return self._values.get(_ADOPTED + uri) or {}

    def recalled(self, uri: str) -> None:
        """Note that a session has got its history."""
        self._values.set(_ADOPTED + uri, None)

    def disposed(self, uri: str, provider: str) -> None:
        """A session is gone: its history need not be loaded any more."""
        if memory := self.to_recall(uri):
            self.hide(provider, memory)
            self.recalled(uri)

    def hide(self, provider: str, memory: JsonObject) -> None:
        """Never list this conversation again."""
        self._values.set(_HIDDEN + provider, [*self._hidden(provider), memory][-_MAX_HIDDEN:])

    def _hidden(self, provider: str) -> list[JsonObject]:
        """The conversations of an agent that are never listed again."""
        return self._values.get(_HIDDEN + provider) or []

    def dismiss(self, uri: str) -> bool:
        """Hide a conversation by the URI under which it is listed. Returns False if there is no such conversation."""
        listed = self.find(uri)
        if listed is not None:
            self.hide(listed.agent.provider, listed.kept.memory)
        return listed is not None

    async def _ask(self, agent: Agent, start: bool) -> None:
        self._asked[agent.provider] = self._monotonic()
        try:
            async with asyncio.timeout(_START_PATIENCE if start else _PATIENCE):
                kept = await agent.sessions(self._default_directory, start=start)
        except (AgentError, TimeoutError) as error:
            _log.warning("agent %s did not list its sessions: %s", agent.provider, str(error) or "no answer in time")
            return
        if kept is not None:
            self._stored[agent.provider] = kept

    def _is_stale(self, agent: Agent) -> bool:
        asked = self._asked.get(agent.provider)
        return asked is None or self._monotonic() - asked > _FRESH

    def _listed(self) -> Iterator[ListedConversation]:
        ours = [memory for _, memory in self._values.items(MEMORY_PREFIX)] if self._stored else []
        for provider, kept in self._stored.items():
            left_out = {_key(memory) for memory in (*ours, *self._hidden(provider))}
            for one in kept:
                uri = _uri(provider, one)
                if _key(one.memory) not in left_out and not self._taken(uri):
                    yield ListedConversation(uri, self._agents.find(provider), one)


def _summary(listed: ListedConversation) -> SessionSummary:
    time = iso_time(listed.kept.modified_at or 0)
    state = kept_session(listed.agent.provider, listed.kept)
    return session_summary(listed.uri, state, created_at=time, modified_at=time)


def _key(memory: JsonObject) -> bytes:
    return encode(dict(sorted(memory.items())))


def _uri(provider: str, kept: AgentSession) -> str:
    """The URI of a conversation. It is the same in every list, and after a restart."""
    name = f"ahpkit/{provider}/" + _key(kept.memory).decode()
    return f"ahp-session:/{uuid.uuid5(uuid.NAMESPACE_URL, name)}"


__all__ = ["AgentConversations", "ListedConversation", "RecalledHistory"]
