"""Interprets keys and lines that a person types to choose or to answer something. Pure: the console reads the keys.

A choice is made by one key with nothing after it, or by a word and Enter. Everything else that a person types is a
message.
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
"""Characters of a wrong word that the answer repeats."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that can be chosen."""

    says: str
    """What the choice does, in words."""
    key: str = ""
    """The key that chooses it at once; if empty, the person types a word and Enter."""
    words: tuple[str, ...] = ()
    """Words that choose it, followed by Enter."""


Choices = Mapping[str, Choice]
"""Choices, by the names that the caller gave them."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The person made a choice."""

    name: str


@dataclass(frozen=True, slots=True)
class UnclearChoice:
    """The person typed something that is not a choice. The caller shows the choices."""

    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """The person began to write a message, with these keys."""

    keys: tuple[Key, ...]


class QuestionLeft:
    """The person pressed Ctrl-D: they do not want to choose now."""


Outcome = Chosen | UnclearChoice | Message | QuestionLeft


def meant(choices: Choices, text: str) -> str | None:
    """The name of the choice that a whole line makes, by its key or by one of its words; None if it makes none."""
    word = text.strip().casefold()
    return next((name for name, one in choices.items() if word and word in _words(one)), None)


def possible(choices: Choices, text: str = "") -> str:
    """One line that lists the choices. `text` is what the person typed: either no choice, or a choice that needs
    Enter."""
    if (name := meant(choices, text)) is not None:
        return f"Enter takes it: {choices[name].says}"
    listed = ", ".join(f"{one.key or next(iter(one.words), '')} = {one.says}" for one in choices.values())
    return (f"{shorten(text, _LONGEST)!r} is not a choice; " if text.strip() else "") + f"possible: {listed}"


def _words(one: Choice) -> set[str]:
    return {word.casefold() for word in (one.key, *one.words) if word}


class Choosing:
    """Collects the keys that were typed at one question."""

    def __init__(self, choices: Choices) -> None:
        self.text = ""
        self._choices = choices
        self._explained = ""

    @property
    def undecided(self) -> bool:
        """Whether the keys so far become a choice if no other key follows soon."""
        return bool(self.text) and self.text != self._explained

    def press(self, key: Key) -> Outcome | None:
        """Take one key. None: more keys are needed."""
        if isinstance(key, Paste):
            return Message((*self.text, key))
        if key == _END_OF_INPUT:
            return QuestionLeft()
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
        """Called when no key came for a moment."""
        name = next((name for name, one in self._choices.items() if one.key and one.key == self.text.casefold()), None)
        if name is not None:
            return Chosen(name)
        self._explained = self.text
        unclear = UnclearChoice(self.text)
        if not self._may_become_a_choice():
            self.text = self._explained = ""
        return unclear

    def _entered(self) -> Outcome:
        name = meant(self._choices, self.text)
        if name is not None:
            return Chosen(name)
        unclear, self.text, self._explained = UnclearChoice(self.text), "", ""
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
    """A few words that say what to type, with the question's limits."""
    text: str = _HINTS.get(question["kind"]) or question.get("format") or "text"
    text += _limits(question)
    if question.get("allowFreeformInput"):
        text += ", or your own words"
    if "defaultValue" in question:
        default = question["defaultValue"]
        text += f" [{'ny'[default] if isinstance(default, bool) else default}]"
    return text


def _limits(question: Question) -> str:
    """The limits of a question in words: " from 0 to 150", ", at most 2", ", 3 to 20 characters"."""
    low, high, kind = question.get("min"), question.get("max"), question["kind"]
    if low is None and high is None:
        return ""
    numbers = kind in ("integer", "number")
    both = f"from {low} to {high}" if numbers else f"{low} to {high}"
    amount = both if None not in (low, high) else f"at most {high}" if low is None else f"at least {low}"
    return f" {amount}" if numbers else f", {amount}" + (" characters" if kind == "text" else "")


def read_answer(question: Question, line: str) -> Any:
    """The answer that a line gives: a plain value, or the protocol's object for free text. Raises `ValueError` that
    says what is expected."""
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
    # Free text may contain spaces, so it is not split at them. Numbers need no comma between them.
    items = [item for item in re.split(r"\s*,\s*" if "," in line else r"\s+", line) if item]
    found = {item: _option(question["options"], item) for item in items}
    picked = list(dict.fromkeys(option for option in found.values() if option is not None))
    free = [item for item, option in found.items() if option is None]
    if not free:
        return picked
    _check_free(question, free)
    return {"state": "submitted", "value": {"kind": "selected-many", "value": picked, "freeformValues": free}}


def _check_free(question: Question, unknown: Sequence[str]) -> None:
    """Accept free text where the question allows it. A number that no option has is a typing error, not an answer."""
    numbers = [word for word in unknown if re.fullmatch(r"[+-]?\d+", word)]
    if numbers or not question.get("allowFreeformInput"):
        what = f"{_HINTS[question['kind']]}, 1 to {len(question['options'])}"
        raise ValueError(f"{(numbers or unknown)[0]!r} is not in the list: please give {what}")


def _option(options: Sequence[Mapping[str, Any]], word: str) -> str | None:
    """The id of the option with that number, id or label; None if there is none."""
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
    "Message",
    "Outcome",
    "Question",
    "QuestionLeft",
    "UnclearChoice",
    "hint",
    "meant",
    "possible",
    "read_answer",
]
