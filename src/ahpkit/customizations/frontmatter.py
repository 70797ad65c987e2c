"""Splits a text file into its header and its body, and reads the header.

Strict YAML first. Of 13,658 real headers 1,805 are not YAML: unquoted `**/*.ts`, `[a] [b]`, a `: ` in a description,
descriptions that go on at the left margin. Such a header is cut into one chunk per top-level key. Each chunk is read
separately, then with its faulty lines quoted. If that fails too, its text is the value, so a bad line affects one value
and not the whole header. Each fault becomes a diagnostic with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from ahpkit.customizations.diagnostics import Diagnostic, Report
from ahpkit.customizations.text import decode
from ahpkit.customizations.yaml_values import Parsed, YamlError, parse

_DIALOGUE = frozenset({"Context", "User", "user", "Assistant", "assistant", "Human", "System", "Example", "Note"})
"""Words that begin lines of example conversations in descriptions. No product reads them as keys."""

_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$")
_NESTED = re.compile(r"(\s*(?:- )?(?:[\w.-]+:[ ]+|- ))(\S.*)$")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?\s*(#.*)?$")

_UNREADABLE: Any = object()

_LINES_QUOTED = 200
"""The number of lines of a value that are tried separately. Longer values are taken as text, so that the time is
bounded."""


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
        """The value as one line of text, without quotes and block markers."""
        lines = [] if _BLOCK.match(self.first) else [self.first]
        words = [line.strip() for line in (*lines, *self.rest) if line.strip()]
        return _unquoted(" ".join(words))


def chunks(header: str) -> Iterator[Chunk]:
    """Cut a header at its top-level keys. Text before the first key is left out."""
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
    """Read a header key by key. The first of two equal keys counts, because later ones are often lines of an
    example."""
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
    """The text of one value, for keys that YAML would read in another way than their author meant (`argument-hint:
    [file]`)."""
    return next((chunk.raw for chunk in chunks(header) if chunk.key == key), None)


def _value(chunk: Chunk) -> tuple[Any, bool]:
    """The chunk's value, and whether it could be read unchanged."""
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
    """The chunk, with quotes around every line that cannot be parsed by itself."""
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
    """The text without the quotes around it. `"a "b" c"` is not YAML, but it is clear what its author meant."""
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


def _parses(text: str) -> bool:
    try:
        parse(text)
    except YamlError:
        return False
    return True


def _spaces(header: str) -> str:
    """Replaces tabs by two spaces, because YAML must not be indented by tabs."""
    return re.sub(r"(?m)^[ \t]*\t[ \t]*", lambda match: match[0].replace("\t", "  "), header)


HEADER_LIMIT = 64 * 1024
"""Characters of a header; the longest real one has 5,800."""

_FENCE = re.compile(r"---[ \t]*$")
_WRAPPER = re.compile(r"(`{3,}|~{3,})[\w-]*[ \t]*$")
_HEADER_LINE = re.compile(r"[A-Za-z_][\w.-]*[ \t]*:(\s|$)|[ \t]+\S|-[ \t]|#")
_USUAL_KEYS = frozenset(
    {
        *("name", "description", "title", "globs", "alwaysApply", "applyTo", "paths", "tools", "allowed-tools"),
        *("model", "mode", "argument-hint", "agent", "author", "version", "license", "tags", "category"),
    }
)
"""Every header has one of these keys. Broken text between two rules without any of them is prose."""

_HARMLESS = frozenset({"globs", "applyTo", "paths", "argument-hint", "description"})
"""Keys whose values people write without quotes (`**/*.ts`, `[file] [line]`, `Use when: …`). On one line their meaning
is certain, so nothing is reported."""

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A file as header and body. Values are strings, None, lists and mappings of those."""

    meta: dict[str, Any]
    body: str
    header: str = ""
    problems: tuple[Diagnostic, ...] = ()
    """The faults that were found. Lines count from 1 within the file."""

    def raw(self, key: str) -> str | None:
        """The text after `key:` in the header."""
        return raw_value(self.header, key)


def read_document(data: bytes) -> Document:
    """Split and read a file; never fails."""
    report = Report()
    text, odd = decode(data)
    if odd:
        report.warn("encoding", odd)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    header, body, offset = _split(text, report)
    meta = None if header is None else _meta(header, offset, report)
    if header is None or meta is None:
        return Document({}, text, "", tuple(report.items))
    return Document(meta, body, header, tuple(report.items))


def _split(text: str, report: Report) -> tuple[str | None, str, int]:
    """Header (None: there is none), body, and the number of lines before the header's first."""
    lines = text.split("\n")
    start = _opening(lines, report)
    if start is None:
        return None, text, 0
    size = 0
    for number in range(start, len(lines)):
        if _FENCE.match(lines[number]):
            return "\n".join(lines[start:number]), _body(lines, start, number), start
        size += len(lines[number]) + 1
        if size > HEADER_LIMIT:
            break
    return _unclosed(lines, start, report)


def _opening(lines: list[str], report: Report) -> int | None:
    """The index of the line after the opening fence. The fence belongs on line 1, but blank lines or a code fence may
    precede it."""
    if _FENCE.match(lines[0]):
        return 1
    for number, line in enumerate(lines[:10]):
        if _FENCE.match(line):
            if not any(_FENCE.match(later) for later in lines[number + 1 :]):
                return None
            report.warn("front-matter-late", "the front matter begins after line 1; it was read anyway", line=1)
            return number + 1
        if line.strip() and not _WRAPPER.match(line):
            return None
    return None


def _body(lines: list[str], start: int, end: int) -> str:
    body = lines[end + 1 :]
    if start > 1 and any(_WRAPPER.match(line) for line in lines[: start - 1]):
        while body and not body[-1].strip():
            body.pop()
        if body and _WRAPPER.match(body[-1]):
            body.pop()
    return "\n".join(body).lstrip("\n")


def _unclosed(lines: list[str], start: int, report: Report) -> tuple[str | None, str, int]:
    """The end of a header without a closing fence: the first line that does not look like a part of a header."""
    end, size = start, 0
    while end < len(lines) and _HEADER_LINE.match(lines[end]) and size <= HEADER_LIMIT:
        size += len(lines[end]) + 1
        end += 1
    if end == start:
        return None, "\n".join(lines), 0
    if size > HEADER_LIMIT:
        report.warn("front-matter-too-long", f"the front matter is longer than {HEADER_LIMIT} characters", line=1)
    else:
        report.warn("front-matter-unclosed", "the front matter has no closing `---`", line=1)
    return "\n".join(lines[start:end])[:HEADER_LIMIT], "\n".join(lines[end:]).lstrip("\n"), start


def _meta(header: str, offset: int, report: Report) -> dict[str, Any] | None:
    """The content of the header. None if it is not a header but text between two rules, which belongs to the body."""
    if _CONTROLS.search(header):
        header = _CONTROLS.sub("", header)
        report.warn("control-characters", "control characters in the front matter were removed")
    try:
        parsed = parse(header)
    except YamlError as error:
        return _lenient(header, offset, error, report)
    return _mapping(parsed, report)


def _mapping(parsed: Parsed, report: Report) -> dict[str, Any] | None:
    _duplicates(parsed.duplicates, "last", report)
    if isinstance(parsed.value, str):
        return _no_header(report)
    if isinstance(parsed.value, list):
        report.warn("front-matter-shape", "the front matter is a list, not keys and values: ignored", line=1)
        return {}
    return cast("dict[str, Any]", parsed.value or {})


def _lenient(header: str, offset: int, error: YamlError, report: Report) -> dict[str, Any] | None:
    found = read_leniently(header)
    if _USUAL_KEYS.isdisjoint(found.meta):
        return _no_header(report)
    line = None if error.line is None else offset + error.line + 1
    keys = ", ".join(f"`{chunk.key}`" for chunk in found.helped)
    read = f"; {keys} read as written" if keys else ""
    if not (found.helped and all(map(_harmless, found.helped))):
        report.warn("front-matter-rescued", f"the front matter is not valid YAML ({error}){read}", line=line)
    _duplicates(found.duplicates, "first", report)
    return found.meta


def _harmless(chunk: Chunk) -> bool:
    """Whether a value is on one line and its meaning is certain without quotes. It is not certain with a bracket that
    is never closed."""
    opened = chunk.first[:1] in "[{" and not chunk.first.endswith(("]", "}"))
    return chunk.key in _HARMLESS and not any(line.strip() for line in chunk.rest) and not opened


def _no_header(report: Report) -> None:
    report.note("front-matter-shape", "the text between the first two `---` is not front matter", line=1)


def _duplicates(keys: list[str], winner: str, report: Report) -> None:
    if keys:
        names = ", ".join(f"`{key}`" for key in list(dict.fromkeys(keys))[:5])
        report.warn("duplicate-key", f"{names} given more than once; the {winner} one counts")


__all__ = [
    "HEADER_LIMIT",
    "Chunk",
    "Document",
    "LenientHeader",
    "chunks",
    "raw_value",
    "read_document",
    "read_leniently",
]
