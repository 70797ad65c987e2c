"""Reads YAML as strings, lists and mappings, within limits, and converts them to the types that people mean. Pure.

It uses parser events instead of a loader. So nothing recurses (deeply nested YAML crashes the C composer), an alias
counts as much as its expansion, and `on`, `1.10` or `2025-01-01` stay texts. The reader of a header converts each value
to its type with the functions at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

_yaml: Any = yaml
"""PyYAML has no types."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C scanner is ten times faster; the pure one reads the same events."""

_DEPTH_LIMIT = 32
"""The deepest nesting of a header. Real headers reach 5."""

_NODE_LIMIT = 20_000
"""The largest number of values in a header, with aliases expanded. Without this limit, a header of seven lines could
expand to millions of values."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class YamlError(Exception):
    """The text is not YAML, or exceeds a limit. `line` counts from 0."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Parsed:
    """A value, and the keys that occurred twice in one mapping."""

    value: Any
    duplicates: list[str] = field(default_factory=list[str])


def parse(text: str) -> Parsed:
    """The first document of `text`; raises `YamlError`."""
    builder = _Builder()
    try:
        for event in _yaml.parse(text, Loader=_LOADER):
            builder.take(event)
            if builder.done:
                break
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise YamlError(problem, None if mark is None else mark.line) from None
    return Parsed(builder.result, builder.duplicates)


class _Builder:
    """Puts values together from events, with a stack of the collections that are still open."""

    def __init__(self) -> None:
        self.result: Any = None
        self.done = False
        self.duplicates: list[str] = []
        self._open: list[_Collection] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._count(1)
            self._put(_scalar(event), getattr(event, "anchor", None), 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._finish()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentEndEvent):
            self.done = True

    def _begin(self, event: Any) -> None:
        if len(self._open) >= _DEPTH_LIMIT:
            raise YamlError(f"nested deeper than {_DEPTH_LIMIT} levels", event.start_mark.line)
        self._count(1)
        self._open.append(_Collection(isinstance(event, yaml.MappingStartEvent), event.anchor))

    def _finish(self) -> None:
        collection = self._open.pop()
        self._put(collection.value(self.duplicates), collection.anchor, collection.size)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise YamlError(f"alias *{event.anchor} has no anchor", event.start_mark.line)
        value, size = self._anchors[event.anchor]
        self._count(size)
        self._put(value, None, size)

    def _put(self, value: Any, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if self._open:
            self._open[-1].add(value, size)
        else:
            self.result = value

    def _count(self, size: int) -> None:
        self._nodes += size
        if self._nodes > _NODE_LIMIT:
            raise YamlError(f"more than {_NODE_LIMIT} values")


class _Collection:
    """A sequence or mapping whose end was not reached yet."""

    def __init__(self, mapping: bool, anchor: str | None) -> None:
        self.mapping = mapping
        self.anchor = anchor
        self.size = 1
        self._items: list[Any] = []

    def add(self, value: Any, size: int) -> None:
        self._items.append(value)
        self.size += size

    def value(self, duplicates: list[str]) -> list[Any] | dict[str, Any]:
        if not self.mapping:
            return self._items
        result: dict[str, Any] = {}
        for key, value in zip(self._items[::2], self._items[1::2], strict=True):
            name = key if isinstance(key, str) else _key_text(key)
            if name in result:
                duplicates.append(name)
            result[name] = value
        return result


def _scalar(event: Any) -> str | None:
    """The value of a scalar: null if it is a plain null, otherwise the text as written."""
    if not event.style and event.value in _NULLS:
        return None
    return event.value


def _key_text(key: Any) -> str:
    """A key that is not a string, as text: `? [a, b]` and `{{x}}` occur in real files."""
    if key is None:
        return ""
    if isinstance(key, list):
        return "[" + ", ".join(_key_text(item) for item in cast("list[Any]", key)) + "]"
    if isinstance(key, dict):
        return "{" + ", ".join(cast("dict[str, Any]", key)) + "}"
    return str(key)


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


__all__ = ["Parsed", "YamlError", "flag", "globs", "parse", "text", "words"]
