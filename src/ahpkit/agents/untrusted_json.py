"""Reads JSON from an untrusted source: returns a value if it has the expected type, else nothing. Never raises."""

from __future__ import annotations

from typing import Any, cast

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.type_schemas import MAX_INTEGER


def obj(value: Any) -> JsonObject:
    """`value` if it is an object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def objects(value: Any) -> list[JsonObject]:
    """The objects in a list."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]


def strings(value: Any) -> list[str]:
    """The strings in a list."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def text(value: Any) -> str | None:
    """`value` if it is a string that is not empty."""
    return value if isinstance(value, str) and value else None


def number(value: Any) -> int | float | None:
    """`value` if it is a number; a boolean does not count."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def integer(value: Any) -> int | None:
    """`value` if it is a whole number that every client reads exactly. A fraction of zero is accepted."""
    found = number(value)
    return int(found) if found is not None and abs(found) <= MAX_INTEGER and found == found // 1 else None


__all__ = ["integer", "number", "obj", "objects", "strings", "text"]
