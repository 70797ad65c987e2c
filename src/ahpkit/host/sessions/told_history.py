"""Builds finished turns from a conversation that an agent repeats, with the same actions and reducer as live turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from opentelemetry.trace import NoOpTracerProvider

from ahpkit.host.agent import Chat, SubChat, Turn
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.new_state import new_chat
from ahpkit.host.turns.turn import LiveTurn, TurnPorts
from ahpkit.protocol.chat.actions import ChatAction, chat_turn_started
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.chat.state import ChatState, Message
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import NotFound


class ToldHistory:
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
        """End the history, and return its turns."""
        self._end_turn()
        return self._state["turns"]

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.complete()
            turn.end()

    def _apply(self, action: ChatAction) -> None:
        self._state = cast("ChatState", chat_reducer(cast("JsonObject", self._state), {**action}))


async def _no_subchat(parent: LiveTurn, title: str, prompt: str, tool_call_id: str | None) -> SubChat:
    raise NotFound("a turn of an imported history cannot start a sub-agent")


__all__ = ["ToldHistory"]
