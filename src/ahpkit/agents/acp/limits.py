"""Limits of what an agent may send to clients: far above what honest agents send. Pure.

Everything that is shown is part of states that every client gets, and is sent again with each change. A text that was
cut says so.
"""

from __future__ import annotations

MAX_NAME = 1000
"""Characters of a name, a label or a description: as much as fits on a screen."""

MAX_WORDS = 16 * 1024
"""Characters of a title, a notice or an error. Some agents put whole commands into titles."""

MAX_TEXT = 1024 * 1024
"""Characters of one piece of a tool call: its input, or one item of its output. Nobody reads more than that.
"""

MAX_ATTACHED = 8 * 1024 * 1024
"""Characters of one picture, sound or file in a message. Storing a longer one would block the event loop."""

MAX_PIECE = 512 * 1024
"""Characters of streamed text that are taken in one step. Longer text is taken piece by piece."""

MAX_TURN_TEXT = 16 * 1024 * 1024
"""Characters of text and thoughts in one turn: several books, and still a state that a client can load."""

MAX_PARTS = 5_000
"""Tool calls, notices and pieces of text in one turn. Hours of work produce a few hundred."""

MAX_LISTED = 1_000
"""Commands, options, choices, models, or entries of a plan. Nobody picks from a longer list."""

MAX_CHOICES = 2_000
"""The most choices of all options of a session together. They are part of its state."""

MAX_KINDS = 20
"""The number of unknown kinds of update that are kept, and of plans that a session may have."""

MAX_WAITING = 64
"""Questions that wait for a person at the same time. Most agents ask one after another; parallel sub-agents may ask a
few more."""


class Allowance:
    """Counts how much more one turn may show. When nothing is left, the rest of the turn is not shown."""

    def __init__(self) -> None:
        self.parts = MAX_PARTS
        self.text = MAX_TURN_TEXT

    @property
    def left(self) -> bool:
        return self.parts > 0 and self.text > 0

    def part(self) -> bool:
        """Count one more part; False when no more are allowed."""
        self.parts -= self.left
        return self.left

    def words(self, text: str) -> str:
        """The beginning of a text, as long as there is room for it."""
        taken = text[: self.text] if self.left else ""
        self.text -= len(taken)
        return taken


def cut(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long. The end is kept because errors are often there."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters are not shown …]\n{text[-half:]}"


def short(text: str) -> str:
    """A name, cut to the length that names may have."""
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"


__all__ = [
    "MAX_CHOICES",
    "MAX_KINDS",
    "MAX_LISTED",
    "MAX_NAME",
    "MAX_PARTS",
    "MAX_TEXT",
    "MAX_TURN_TEXT",
    "MAX_WAITING",
    "MAX_WORDS",
    "Allowance",
    "cut",
    "short",
]
