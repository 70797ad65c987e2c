"""Builds turns from the history that an agent repeats on `session/load`. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from ahpkit.agents.acp.content import Contents, shown_as_text
from ahpkit.agents.acp.turn import TURN_UPDATES, TurnMapper
from ahpkit.agents.untrusted_json import obj
from ahpkit.host.agent import History, Turn
from ahpkit.protocol.common.state import JsonObject

MAX_UPDATES = 100_000
"""Updates of one history that are taken; what comes after them is only counted."""

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


class Replay:
    """Takes the updates in order; `end` after the last."""

    def __init__(self, history: History, contents: Callable[[Turn], Contents], *, most: int = MAX_UPDATES) -> None:
        self._most = most
        self._history = history
        self._contents = contents
        self._turn: TurnMapper | None = None
        self._words: list[str] = []
        self._message_id: object = None
        self._updates = 0

    def update(self, kind: str, update: JsonObject) -> None:
        """Take one of the variants that belong to a turn."""
        self._updates += 1
        if self._updates > self._most:
            return
        if kind == "user_message_chunk":
            self._said(update)
        else:
            TURN_UPDATES[kind](self._answering(), update)

    def end(self) -> None:
        if self._words:
            self._answering()
        if self._turn is not None and self._updates > self._most:
            self._turn.notice(f"The history is longer: {self._updates - self._most} updates are not shown.")
        self._finish()

    def _said(self, update: JsonObject) -> None:
        """Words of the user. Some agents send them in pieces, some put blocks of their own before them."""
        self._finish()
        words, id = shown_as_text(obj(update.get("content"))) or "", update.get("messageId")
        if self._words and id == self._message_id:
            self._words[-1] += words
        elif words:
            self._words.append(words)
        self._message_id = id

    def _answering(self) -> TurnMapper:
        if self._turn is None:
            words, self._words = "\n\n".join(self._words), []
            turn = self._history.turn(without_reminders(words))
            self._turn = TurnMapper(turn, self._contents(turn))
        return self._turn

    def _finish(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.close(ended_well=True)


def without_reminders(words: str) -> str:
    """What a person said, without what agents add for the model and repeat as if the person had said it."""
    first, *others = words.split(_REMINDER)
    kept = [first]
    for piece in others:
        _, closing, after = piece.partition(_REMINDER_END)
        kept.append(after if closing else _REMINDER + piece)
    return "".join(kept).strip()


__all__ = ["MAX_UPDATES", "Replay", "without_reminders"]
