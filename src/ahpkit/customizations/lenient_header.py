"""Reads front matter that strict YAML rejects, key by key.

Of 13,658 real headers 1,805 are not YAML: unquoted `**/*.ts`, `[a] [b]`, a `: ` in a description, descriptions that
go on at the left margin. The header is cut into one chunk per top-level key. Each chunk is read on its own, then with
its offending lines quoted, and if that fails too its text is the value: one bad line costs one value, not the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from ahpkit.customizations.yaml_values import YamlError, parse

_DIALOGUE = frozenset({"Context", "User", "user", "Assistant", "assistant", "Human", "System", "Example", "Note"})
"""Words that open the lines of example conversations inside descriptions; no product reads them as keys."""

_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$")
_NESTED = re.compile(r"(\s*(?:- )?(?:[\w.-]+:[ ]+|- ))(\S.*)$")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?\s*(#.*)?$")

_UNREADABLE: Any = object()

_LINES_QUOTED = 200
"""Lines of one value that are tried one by one; longer values are taken as text, so that time stays bounded."""


@dataclass(frozen=True, slots=True)
class LenientHeader:
    """What could be read of a broken header, the chunks that had to be repaired, and keys given twice."""

    meta: dict[str, Any]
    helped: list[Chunk]
    duplicates: list[str]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One top-level key, the text on its line, and the lines that follow it. `line` counts from 0 within the header."""

    key: str
    first: str
    rest: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        return "\n".join((f"{self.key}: {self.first}", *self.rest))

    @property
    def raw(self) -> str:
        """The value as one line of text, quotes and block markers taken off."""
        lines = [] if _BLOCK.match(self.first) else [self.first]
        words = [line.strip() for line in (*lines, *self.rest) if line.strip()]
        return _unquoted(" ".join(words))


def chunks(header: str) -> Iterator[Chunk]:
    """Cut a header at its top-level keys; what stands before the first key is left out."""
    key, first, start = "", "", 0
    rest: list[str] = []
    for number, line in enumerate(header.split("\n")):
        match = _KEY.match(line)
        if match is not None and match[1] not in _DIALOGUE:
            if key:
                yield Chunk(key, first, tuple(rest), start)
            key, first, start = match[1], (match[2] or "").strip(), number
            rest = []
        else:
            rest.append(line)
    if key:
        yield Chunk(key, first, tuple(rest), start)


def read_leniently(header: str) -> LenientHeader:
    """Read a header key by key; the first of two equal keys counts, for later ones are often lines of an example."""
    found = LenientHeader({}, [], [])
    for chunk in chunks(_spaces(header)):
        if chunk.key in found.meta:
            found.duplicates.append(chunk.key)
            continue
        found.meta[chunk.key], as_is = _value(chunk)
        if not as_is:
            found.helped.append(chunk)
    return found


def raw_value(header: str, key: str) -> str | None:
    """The text of one value, for keys whose YAML reading is not what its author meant (`argument-hint: [file]`)."""
    return next((chunk.raw for chunk in chunks(header) if chunk.key == key), None)


def _value(chunk: Chunk) -> tuple[Any, bool]:
    """The chunk's value, and whether it could be read as it stands."""
    if (value := _parse_chunk(chunk, chunk.text)) is not _UNREADABLE:
        return value, True
    if len(chunk.rest) <= _LINES_QUOTED and (value := _parse_chunk(chunk, _quoted(chunk))) is not _UNREADABLE:
        return value, False
    return chunk.raw, False


def _parse_chunk(chunk: Chunk, text: str) -> Any:
    try:
        value = cast("dict[str, Any]", parse(text).value)
    except YamlError:
        return _UNREADABLE
    if isinstance(value, dict) and list(value) == [chunk.key]:  # pyright: ignore[reportUnnecessaryIsInstance]  # YAML may say anything.
        return value[chunk.key]
    return _UNREADABLE


def _quoted(chunk: Chunk) -> str:
    """The chunk with every line quoted that does not parse by itself."""
    first = chunk.first if _parses(f"k: {chunk.first}") else _quote(chunk.first)
    return "\n".join((f"{chunk.key}: {first}", *(_quote_line(line) for line in chunk.rest)))


def _quote_line(line: str) -> str:
    match = _NESTED.match(line)
    if match is None or _parses(line.strip()):
        return line
    return match[1] + _quote(match[2])


def _quote(text: str) -> str:
    return "'" + _unquoted(text.strip()).replace("'", "''") + "'"


def _unquoted(text: str) -> str:
    """Without the quotes around it: `"a "b" c"` is not YAML, but it is clear what its author meant."""
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


def _parses(text: str) -> bool:
    try:
        parse(text)
    except YamlError:
        return False
    return True


def _spaces(header: str) -> str:
    """Tabs may not indent YAML; two spaces may."""
    return re.sub(r"(?m)^[ \t]*\t[ \t]*", lambda match: match[0].replace("\t", "  "), header)


__all__ = ["Chunk", "LenientHeader", "chunks", "raw_value", "read_leniently"]
