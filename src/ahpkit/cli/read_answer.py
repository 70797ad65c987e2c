"""What a typed line means as the answer to a question. Pure; knows no console. Limits are the host's to check."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    """What to type, in a few words."""
    text: str = _HINTS.get(question["kind"]) or question.get("format") or "text"
    if question.get("allowFreeformInput"):
        text += ", or your own words"
    if "defaultValue" in question:
        default = question["defaultValue"]
        text += f" [{'ny'[default] if isinstance(default, bool) else default}]"
    return text


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
    if not question.get("allowFreeformInput"):
        raise ValueError(f"{unknown[0]!r} is not in the list: please give {_HINTS[question['kind']]}")


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

__all__ = ["Question", "hint", "read_answer"]
