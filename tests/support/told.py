"""A history that records its calls."""

from __future__ import annotations

from ahpkit.testing.recording import RecordingTurn


class Told:
    """Implements `ahpkit.host.agent.History`."""

    def __init__(self) -> None:
        self.turns: list[RecordingTurn] = []

    def turn(self, text: str) -> RecordingTurn:
        self.turns.append(RecordingTurn(text))
        return self.turns[-1]

    def conversation(self) -> list[tuple[str, str]]:
        return [(turn.message["text"], turn.answer) for turn in self.turns]


__all__ = ["Told"]
