"""A conversation that was held elsewhere, told again: the same actions and reducer, but no log and no clients.

What comes out are finished turns, as if they had been held here. Knows no agent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from opentelemetry.trace import NoOpTracerProvider

from ahpkit.host.agent import Chat, SubChat, Turn
from ahpkit.host.new_state import new_chat
from ahpkit.host.tracing import Tracing
from ahpkit.host.turn import LiveTurn
from ahpkit.protocol.channels import reduce
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import NotFound


class HistoryHost(Protocol):
    """What is needed of the host: a place for content, ids and the time."""

    @property
    def new_id(self) -> Callable[[], str]: ...

    @property
    def now(self) -> Callable[[], int]: ...

    def store_content(self, session_uri: str, data: bytes, content_type: str) -> str: ...


class ToldHistory:
    """Implements `ahpkit.host.agent.History`."""

    def __init__(self, chat: Chat, host: HistoryHost) -> None:
        self._chat = chat
        self._host = host
        self._state = new_chat(chat.uri, title="", now=host.now())
        self._turn: LiveTurn | None = None

    def turn(self, text: str) -> Turn:
        self._end_turn()
        message: Message = {"text": text, "origin": {"kind": "user"}}
        turn = LiveTurn(
            self._chat,
            id=self._host.new_id(),
            message=message,
            host=_PastHost(self._host),
            hooks=_NoHooks(),
            dispatch=self._apply,
            chat_state=lambda: self._state,
            activity=lambda text: None,
        )
        self._apply({"type": "chat/turnStarted", "turnId": turn.id, "message": message})
        self._turn = turn
        return turn

    def turns(self) -> list[JsonObject]:
        """Everything that was told: the telling is over."""
        self._end_turn()
        return self._state["turns"]

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.say({"type": "chat/turnComplete", "turnId": turn.id})
            turn.end()

    def _apply(self, action: JsonObject) -> None:
        self._state = reduce(self._chat.uri, self._state, action, now=self._host.now())


class _PastHost:
    """What a turn of the past needs of the host. Nothing in it runs: it has no spans, sub-agents or clients."""

    tracing = Tracing(NoOpTracerProvider())

    def __init__(self, host: HistoryHost) -> None:
        self._host = host

    def store_content(self, session_uri: str, data: bytes, content_type: str) -> str:
        return self._host.store_content(session_uri, data, content_type)

    async def spawn_subchat(self, parent: LiveTurn, title: str, prompt: str, tool_call_id: str | None) -> SubChat:
        raise NotFound("a turn of the past starts no sub-agent")

    def client_tool(self, session_uri: str, model_name: str) -> tuple[str, str] | None:
        return None


class _NoHooks:
    async def before_tool(self, name: str, tool_input: str) -> str | None:
        return None


__all__ = ["HistoryHost", "ToldHistory"]
