"""Every type of 0.4.0 has the members it was specified with, whatever 1.0.0 becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from ahpkit.dialects.v0_4.registry import TYPES
from support import for_each

TABLE = Path(__file__).with_name("members.txt").read_text(encoding="utf-8")
"""One type per line: its name and its members, `?` after those that may be absent; the values of an enumeration."""

ROWS = dict(line.split(": ", 1) for line in TABLE.splitlines())


def members(shape: Any) -> str | None:
    """The row of a type; None for one that is made of others, such as a union."""
    if is_typeddict(shape):
        hints = get_type_hints(shape, include_extras=True)
        names = [f"{key}?" if get_origin(hint) is NotRequired else key for key, hint in hints.items()]
        return " ".join(sorted(set(names) - {"_meta", "_meta?"}))
    values = get_args(shape)
    if values and all(isinstance(value, str) for value in values):
        return " | ".join(values)
    return None


def test_no_type_is_missing_and_none_is_new() -> None:
    assert {name for name, shape in TYPES.items() if members(shape) is not None} == ROWS.keys()


@for_each(ROWS)
def test_a_type_has_its_members(name: str) -> None:
    assert members(TYPES[name]) == ROWS[name]
