"""Interprets keys and lines where a person chooses something. Pure: the console reads the keys and keeps the time.

A choice is one key with nothing after it, or a word and Enter. Everything else a person types there is a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ahpkit.cli.keys import Key, Paste
from ahpkit.cli.text import shorten

_END_OF_INPUT = "\x04"
_BACKSPACE = ("\x7f", "\x08")
_CLEAR = "\x15"

_LONGEST = 40
"""Characters of a wrong word that are repeated."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that can be chosen."""

    says: str
    """What it does, in words."""
    key: str = ""
    """The key that means it; without, it takes a word and Enter."""
    words: tuple[str, ...] = ()
    """What means it, followed by Enter."""


Choices = Mapping[str, Choice]
"""By the name that the asker gave each."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The person chose this."""

    name: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """The person typed something else: say what can be chosen."""

    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """The person writes a message: these keys are its beginning."""

    keys: tuple[Key, ...]


class Left:
    """The person does not want to choose now: Ctrl-D."""


Outcome = Chosen | Unclear | Message | Left


def meant(choices: Choices, text: str) -> str | None:
    """The choice that a whole line means: its key, or one of its words."""
    word = text.strip().casefold()
    return next((name for name, one in choices.items() if word and word in _words(one)), None)


def possible(choices: Choices, text: str = "") -> str:
    """What can be chosen, in one line; `text` is what was typed instead."""
    listed = ", ".join(f"{one.key or next(iter(one.words), '')} = {one.says}" for one in choices.values())
    return (f"{shorten(text, _LONGEST)!r} is not a choice; " if text.strip() else "") + f"possible: {listed}"


def _words(one: Choice) -> set[str]:
    return {word.casefold() for word in (one.key, *one.words) if word}


class Choosing:
    """What was typed at one question so far."""

    def __init__(self, choices: Choices) -> None:
        self.text = ""
        self._choices = choices
        self._told = ""

    @property
    def undecided(self) -> bool:
        """Whether a moment without a key means something."""
        return bool(self.text) and self.text != self._told

    def press(self, key: Key) -> Outcome | None:
        """Take a key; None: more is needed."""
        if isinstance(key, Paste):
            return Message((*self.text, key))
        if key == _END_OF_INPUT:
            return Left()
        if key in "\r\n":
            return self._entered()
        if key in _BACKSPACE or key == _CLEAR:
            self.text = "" if key == _CLEAR else self.text[:-1]
        elif len(key) == 1 and key.isprintable():
            self.text += key
            if len(self.text) > 1 and not self._may_become_a_choice():
                return Message(tuple(self.text))
        return None

    def quiet(self) -> Outcome | None:
        """Nothing was typed for a moment."""
        name = next((name for name, one in self._choices.items() if one.key and one.key == self.text.casefold()), None)
        if name is not None:
            return Chosen(name)
        self._told = self.text
        unclear = Unclear(self.text)
        if not self._may_become_a_choice():
            self.text = self._told = ""
        return unclear

    def _entered(self) -> Outcome:
        name = meant(self._choices, self.text)
        if name is not None:
            return Chosen(name)
        unclear, self.text, self._told = Unclear(self.text), "", ""
        return unclear

    def _may_become_a_choice(self) -> bool:
        begun = self.text.casefold()
        return any(word.startswith(begun) for one in self._choices.values() for word in _words(one))


__all__ = ["Choice", "Choices", "Choosing", "Chosen", "Left", "Message", "Outcome", "Unclear", "meant", "possible"]
