"""Reads JSON with comments and trailing commas, and remembers the position of every value.

Comments and trailing commas are allowed, because editors write them into these files. Positions are kept, because
`range` must point at the declaration of a hook or server in its file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, cast

from ahpkit.protocol.common.state import TextPosition, TextRange

_DEPTH_LIMIT = 64
"""Nesting of a manifest; real ones reach 8."""

_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_SURROGATES = re.compile("[\ud800-\udfff]")


class JsonError(Exception):
    """This is not JSON. `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Node:
    """A value with its span. `start` of an object's member is where its key begins."""

    value: Any
    start: int
    end: int
    members: dict[str, Node] = field(default_factory=dict[str, "Node"])
    items: list[Node] = field(default_factory=list["Node"])

    @property
    def object(self) -> dict[str, Any] | None:
        """The members, if the value is an object."""
        value: object = self.value
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None

    @property
    def is_list(self) -> bool:
        return isinstance(self.value, list)

    def get(self, key: str) -> Any:
        """The value of one member; None when there is none."""
        member = self.members.get(key)
        return None if member is None else member.value


@dataclass(slots=True)
class Json:
    """A parsed text: its root, the keys that occur twice, and whether strict JSON would refuse it."""

    text: str
    root: Node
    duplicates: list[str]
    lenient: bool

    def range(self, node: Node) -> TextRange:
        """The span of a value (with its key, for a member) in lines and UTF-16 columns, both from 0."""
        return {"start": _position(self.text, node.start), "end": _position(self.text, node.end)}

    def line(self, node: Node) -> int:
        """The line a value begins on, from 1."""
        return self.text.count("\n", 0, node.start) + 1


def parse(text: str) -> Json:
    """Read a text with exactly one value; raises `JsonError`."""
    parser = _Parser(text)
    node = parser.value(0)
    parser.skip()
    if parser.at < len(text):
        raise parser.error("text after the end")
    return Json(text, node, parser.duplicates, parser.lenient)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.duplicates: list[str] = []
        self.lenient = False

    def error(self, message: str) -> JsonError:
        return JsonError(message, self.text.count("\n", 0, self.at) + 1)

    def skip(self) -> str:
        """Skip blanks and comments; returns the next character, or an empty text at the end."""
        character = self.text[self.at : self.at + 1]
        if character > " " and character != "/":
            return character
        match = _SKIP.match(self.text, self.at)
        end = match.end() if match else self.at
        if "/" in self.text[self.at : end]:
            self.lenient = True
        self.at = end
        return self.text[end : end + 1]

    def value(self, depth: int) -> Node:
        if depth > _DEPTH_LIMIT:
            raise self.error(f"nested deeper than {_DEPTH_LIMIT} levels")
        character = self.skip()
        if character == "{":
            return self._object(depth)
        if character == "[":
            return self._array(depth)
        return self._scalar(_STRING if character == '"' else _LITERAL)

    def _scalar(self, pattern: re.Pattern[str]) -> Node:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.error("a value was expected" if self.skip() else "the text ends too early")
        start, self.at = self.at, match.end()
        try:
            value: Any = json.loads(match[0], strict=False)
        except ValueError:
            raise self.error("a value that is not JSON") from None
        if isinstance(value, str) and _SURROGATES.search(value):
            value = _SURROGATES.sub("\ufffd", value)
        return Node(value, start, self.at)

    def _object(self, depth: int) -> Node:
        node = Node({}, self.at, self.at)
        while self._more(node, "}"):
            key = self._scalar(_STRING)
            if self.skip() != ":":
                raise self.error("`:` was expected")
            self.at += 1
            member = self.value(depth + 1)
            member.start = key.start
            if key.value in node.members:
                self.duplicates.append(key.value)
            node.members[key.value] = member
            node.value[key.value] = member.value
        return node

    def _array(self, depth: int) -> Node:
        node = Node([], self.at, self.at)
        while self._more(node, "]"):
            item = self.value(depth + 1)
            node.items.append(item)
            node.value.append(item.value)
        return node

    def _more(self, node: Node, closing: str) -> bool:
        """Move to the next element, or past the end of the collection."""
        first = self.at == node.start
        if first:
            self.at += 1
        character = self.skip()
        comma = not first and character == ","
        if comma:
            self.at += 1
            character = self.skip()
        if character == closing:
            self.lenient = self.lenient or comma
            self.at += 1
            node.end = self.at
            return False
        if not first and not comma:
            raise self.error(f"`,` or `{closing}` was expected" if character else "the text ends too early")
        return True


def _position(text: str, offset: int) -> TextPosition:
    begin = text.rfind("\n", 0, offset) + 1
    return {"line": text.count("\n", 0, offset), "character": len(text[begin:offset].encode("utf-16-le")) // 2}


__all__ = ["Json", "JsonError", "Node", "parse"]
