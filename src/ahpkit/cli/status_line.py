"""Builds the status line: the agent, what it does, since when, tokens, cost. Pure; the time is passed in."""

from __future__ import annotations

from typing import Any

from ahpkit.cli.text import plain, shorten
from ahpkit.cli.usage import cost_of, short_count
from ahpkit.client import events
from ahpkit.client.events import TurnEvent

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_LONGEST = 40
"""Characters of what it does."""


class StatusLine:
    """Follows the events of one turn."""

    def __init__(self, agent: str, model: str | None, began: float) -> None:
        self._who = f"{agent} ({model})" if model else agent
        self._began = began
        self._doing = "starts"
        self._usage: Any = {}

    def take(self, event: TurnEvent) -> None:
        match event:
            case events.TextDelta():
                self._doing = "answers"
            case events.ReasoningDelta():
                self._doing = "thinks"
            case events.ToolCallStarted(call=call) | events.ToolCallRunning(call=call):
                running: Any = call
                self._doing = shorten(plain(running.get("invocationMessage")) or call["displayName"], _LONGEST)
            case events.ToolCallCompleted() | events.ToolCallCancelled():
                self._doing = "works"
            case events.ConfirmationNeeded() | events.InputNeeded():
                self._doing = "waits for somebody"
            case events.Usage(usage=usage):
                self._usage = usage
            case _:
                pass

    def text(self, now: float) -> str:
        """The line at a moment."""
        seconds = max(int(now - self._began), 0)
        elapsed = f"{seconds} s" if seconds < 60 else f"{seconds // 60}:{seconds % 60:02} min"
        spinner = _SPINNER[int(now * 2) % len(_SPINNER)]
        return " · ".join([f"{spinner} {self._who}", self._doing, elapsed, *self._spent()])

    def _spent(self) -> list[str]:
        words = {"inputTokens": "in", "outputTokens": "out"}
        counts = [f"{short_count(self._usage[key])} {word}" for key, word in words.items() if key in self._usage]
        cost, currency = cost_of(self._usage)
        price = [] if cost is None else [f"{'$' if currency == 'USD' else currency + ' '}{cost:.4f}"]
        return [*([", ".join(counts)] if counts else []), *price]


__all__ = ["StatusLine"]
