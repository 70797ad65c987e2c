"""Describes the differences between two JSON values for people.

JSON's types count: `true` is not `1`. Numbers are compared by value, whole or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, cast

__all__ = ["ABSENT", "Difference", "differences", "without_nulls"]


class _Absent:
    """Stands for a value that is not there, which is not null."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()

_SHOWN = 300
"""Characters of a value that are printed: a line or two. The path says where to look for the rest."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the values differ."""

    path: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path}\n  expected {_shown(self.expected)}\n  got      {_shown(self.got)}"

    def to_json(self) -> dict[str, Any]:
        """For machines: an absent value is an absent key."""
        values = {"expected": self.expected, "got": self.got}
        return {"path": self.path, **{key: value for key, value in values.items() if value is not ABSENT}}


def differences(expected: Any, got: Any, path: str = "$") -> Iterator[Difference]:
    """Every innermost place where `got` is not what was expected."""
    if isinstance(expected, dict) and isinstance(got, dict):
        yield from _in_objects(cast("dict[str, Any]", expected), cast("dict[str, Any]", got), path)
    elif isinstance(expected, list) and isinstance(got, list):
        pairs = zip_longest(cast("list[Any]", expected), cast("list[Any]", got), fillvalue=ABSENT)
        for index, (left, right) in enumerate(pairs):
            yield from differences(left, right, f"{path}[{index}]")
    elif isinstance(expected, bool) is not isinstance(got, bool) or expected != got:
        yield Difference(path, expected, got)


def without_nulls(value: Any) -> Any:
    """`value` without the members that are null: reducer fixtures write null for "absent"."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: without_nulls(member) for key, member in members if member is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[Any]", value)]
    return value


def _in_objects(expected: dict[str, Any], got: dict[str, Any], path: str) -> Iterator[Difference]:
    for key in {**expected, **got}:
        place = f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"
        yield from differences(expected.get(key, ABSENT), got.get(key, ABSENT), place)


def _shown(value: Any) -> str:
    if value is ABSENT:
        return repr(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
