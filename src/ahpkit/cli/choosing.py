"""Interprets keys and lines where a person chooses or answers something. Pure: the console reads the keys.

A choice is one key with nothing after it, or a word and Enter. Everything else a person types there is a message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahpkit.cli.line_editor import Key, Paste
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
    """What can be chosen, in one line; `text` is what was typed instead, or needs Enter."""
    if (name := meant(choices, text)) is not None:
        return f"Enter takes it: {choices[name].says}"
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


Question = Mapping[str, Any]
"""A `ChatInputQuestion` of any kind."""

_WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}

_HINTS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "y or n",
    "single-select": "a number from the list",
    "multi-select": "numbers from the list, separated by spaces",
}


def hint(question: Question) -> str:
    """What to type, in a few words, with the limits it must keep."""
    text: str = _HINTS.get(question["kind"]) or question.get("format") or "text"
    text += _limits(question)
    if question.get("allowFreeformInput"):
        text += ", or your own words"
    if "defaultValue" in question:
        default = question["defaultValue"]
        text += f" [{'ny'[default] if isinstance(default, bool) else default}]"
    return text


def _limits(question: Question) -> str:
    """How much or how many: " from 0 to 150", ", at most 2", ", 3 to 20 characters"."""
    low, high, kind = question.get("min"), question.get("max"), question["kind"]
    if low is None and high is None:
        return ""
    numbers = kind in ("integer", "number")
    both = f"from {low} to {high}" if numbers else f"{low} to {high}"
    amount = both if None not in (low, high) else f"at most {high}" if low is None else f"at least {low}"
    return f" {amount}" if numbers else f", {amount}" + (" characters" if kind == "text" else "")


def read_answer(question: Question, line: str) -> Any:
    """The answer: a plain value, or the wire's form for free text. Raises `ValueError` that says what is expected."""
    read = _READERS.get(question["kind"])
    return read(question, line.strip()) if read else line


def _integer(question: Question, line: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", line, re.ASCII):
        raise ValueError("please give a whole number")
    return int(line)


def _number(question: Question, line: str) -> float:
    try:
        number = float(line)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("please give a number")
    return number


def _boolean(question: Question, line: str) -> bool:
    if line.casefold() not in _WORDS:
        raise ValueError("please answer y or n")
    return _WORDS[line.casefold()]


def _single(question: Question, line: str) -> Any:
    option = _option(question["options"], line)
    if option is not None:
        return option
    _check_free(question, [line])
    return {"state": "submitted", "value": {"kind": "selected", "value": "", "freeformValues": [line]}}


def _many(question: Question, line: str) -> Any:
    # Own words may have spaces in them; numbers need no comma.
    items = [item for item in re.split(r"\s*,\s*" if "," in line else r"\s+", line) if item]
    found = {item: _option(question["options"], item) for item in items}
    picked = list(dict.fromkeys(option for option in found.values() if option is not None))
    free = [item for item, option in found.items() if option is None]
    if not free:
        return picked
    _check_free(question, free)
    return {"state": "submitted", "value": {"kind": "selected-many", "value": picked, "freeformValues": free}}


def _check_free(question: Question, unknown: Sequence[str]) -> None:
    """Own words are allowed where the question says so.

    A number that no option has is a typing error, not an answer.
    """
    numbers = [word for word in unknown if re.fullmatch(r"[+-]?\d+", word)]
    if numbers or not question.get("allowFreeformInput"):
        what = f"{_HINTS[question['kind']]}, 1 to {len(question['options'])}"
        raise ValueError(f"{(numbers or unknown)[0]!r} is not in the list: please give {what}")


def _option(options: Sequence[Mapping[str, Any]], word: str) -> str | None:
    """The option with that number, id or label."""
    if word.isascii() and word.isdecimal() and 1 <= int(word) <= len(options):
        return options[int(word) - 1]["id"]
    meant = (
        option["id"] for option in options if word.casefold() in (option["id"].casefold(), option["label"].casefold())
    )
    return next(meant, None)


_READERS: dict[str, Callable[[Question, str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "single-select": _single,
    "multi-select": _many,
}


__all__ = [
    "Choice",
    "Choices",
    "Choosing",
    "Chosen",
    "Left",
    "Message",
    "Outcome",
    "Question",
    "Unclear",
    "hint",
    "meant",
    "possible",
    "read_answer",
]
