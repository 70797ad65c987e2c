"""A sub-agent's chat: a turn of its own, driven by the turn that spawned it. Knows no agent and no connection."""

from __future__ import annotations

from collections.abc import Callable

from ahpkit.host.agent import AgentError, Turn
from ahpkit.host.turn import LiveTurn


class LiveSubChat:
    """Implements `ahpkit.host.agent.SubChat`."""

    def __init__(self, turn: LiveTurn, closed: Callable[[], None]) -> None:
        self.turn: Turn = turn
        self._live = turn
        self.uri = turn.chat.uri
        self._closed = closed

    async def __aenter__(self) -> Turn:
        return self.turn

    async def __aexit__(self, *exc: object) -> None:
        error = exc[1]
        if error is None:
            self._live.say({"type": "chat/turnComplete", "turnId": self.turn.id})
        elif isinstance(error, Exception):
            message = error.message if isinstance(error, AgentError) else "The sub-agent failed."
            info = {"errorType": "agent", "message": message}
            self._live.say({"type": "chat/error", "turnId": self.turn.id, "error": info})
        else:
            self._live.say({"type": "chat/turnCancelled", "turnId": self.turn.id})
        self._live.end()
        self._closed()


__all__ = ["LiveSubChat"]
