"""Converts what people write into headers to the types that they mean. Pure.

Values come as strings, None, lists and mappings (`yaml_values` gives scalars no type).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def flag(value: Any) -> bool | None:
    """A boolean in any spelling that the products accept; None if it is not a boolean."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, (str, int)) else ""
    return True if word in _TRUE else False if word in _FALSE else None


def text(value: Any) -> str | None:
    """Prose; a list of lines is joined. None: it is not prose."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(item, str) for item in items):
            return "\n".join(cast("list[str]", items))
    return None


def words(value: Any) -> list[str]:
    """A list of names: `[a, b]`, `a, b`, or one per line."""
    return [item for item in (part.strip().strip("'\"").strip() for part in _parts(value)) if item]


def globs(value: Any) -> list[str]:
    """Glob patterns; commas separate them, but not inside braces (`**/*.{ts,tsx}`)."""
    return [pattern for pattern in words(value) if pattern not in ("[]", "null")]


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("[") and text.endswith("]") and "," in text:
            text = text[1:-1]
        yield from split_commas(text)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _parts(item) if isinstance(item, (str, list)) else ()


def split_commas(value: str) -> Iterator[str]:
    """Split at commas and line breaks outside of braces, brackets, parentheses and quotes."""
    depth, quote, start = 0, "", 0
    for index, character in enumerate(value):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character if value.find(character, index + 1) != -1 else ""
        elif character in "{[(":
            depth += 1
        elif character in "}])":
            depth = max(0, depth - 1)
        elif character in ",\n" and depth == 0:
            yield value[start:index]
            start = index + 1
    yield value[start:]


__all__ = ["flag", "globs", "split_commas", "text", "words"]
