"""Matches glob patterns of rules and manifests against file paths. Pure.

Bounded, because strangers write the patterns and paths.

`**` spans folders, and `{a,b}` are alternatives. A pattern without `/` matches the file name in any folder, and a
pattern that ends in `/` matches everything below that folder.

A workspace may have thousands of rules with dozens of alternatives each, and a message may name hundreds of paths. So
each pattern is parsed once, most patterns are excluded by their last characters, and the comparisons for one message
are limited.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

_ALTERNATIVES = 64
"""The largest number of patterns into which a pattern with braces is expanded."""

_LONGEST = 1_000
"""Characters of a pattern or a path. Longer ones match nothing."""

_BRACES = 16
"""Pairs of braces in one pattern."""

_TAIL = 12
"""Characters at the end of a name that are compared first. They exclude most patterns."""

_BUDGET = 200_000
"""Comparisons for one message: some 100 ms. Patterns that come after that match nothing."""

_COMPILING = 200
"""The cost of compiling a part with `?` or `[`, in comparisons."""

_UNIVERSAL = frozenset({"**", "*", "**/*", "**/**", "/**", "./**"})


class _Option(NamedTuple):
    """One way to read a pattern: how the last part must end, and all parts."""

    tail: str
    parts: tuple[str, ...]


class Paths:
    """The files that a message names, to be compared with the patterns of many rules."""

    def __init__(self, paths: Iterable[str], *, budget: int = _BUDGET) -> None:
        short = dict.fromkeys(path for path in paths if len(path) <= _LONGEST)
        self._split = [tuple(path.split("/")) for path in short]
        self._tails = {path[-1][-length:] for path in self._split for length in range(1, _TAIL + 1)} | {""}
        self.budget = budget
        """The number of comparisons that remain for this message."""

    def match(self, patterns: Iterable[str]) -> bool:
        """Whether one of the paths (relative, with `/`) matches one of the patterns."""
        return any(
            option.tail in self._tails and self._matches_one(option.parts)
            for pattern in patterns
            if self.budget > 0 and len(pattern) <= _LONGEST
            for option in _options(pattern)
        )

    def matching(self, pattern: str) -> list[str]:
        """The paths that a pattern matches."""
        options = _options(pattern) if len(pattern) <= _LONGEST else ()
        return ["/".join(path) for path in self._split if any(self._matches(one.parts, path) for one in options)]

    def _matches_one(self, parts: tuple[str, ...]) -> bool:
        return any(self._matches(parts, path) for path in self._split if self.budget > 0)

    def _matches(self, parts: tuple[str, ...], path: tuple[str, ...]) -> bool:
        """Compares part by part, and keeps all positions that a `**` allows. So there is no backtracking."""
        positions: set[int] = {0}
        for part in parts:
            self.budget -= 1 + len(positions)
            if self.budget < 0 or not positions:
                return False
            if part == "**":
                positions = set(range(min(positions), len(path) + 1))
            else:
                positions = {at + 1 for at in positions if at < len(path) and self._part_matches(part, path[at])}
        return len(path) in positions

    def _part_matches(self, part: str, name: str) -> bool:
        if "?" not in part and "[" not in part:
            return _stars_match(part, name)
        self.budget -= _COMPILING
        return fnmatch.fnmatchcase(name, part)


def is_universal(pattern: str) -> bool:
    """Whether it matches every file, so that its rule applies without a file in the message."""
    return pattern.strip() in _UNIVERSAL


def _stars_match(part: str, name: str) -> bool:
    """Whether a part whose only wild card is `*` matches: the texts between the stars must occur in this order."""
    first, *middle = part.split("*")
    if not middle:
        return part == name
    last = middle.pop()
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for text in middle:
        at = name.find(text, at, end)
        if at < 0:
            return False
        at += len(text)
    return True


@lru_cache(maxsize=16_384)
def _options(pattern: str) -> tuple[_Option, ...]:
    """The ways to read the braces of a pattern."""
    if pattern.count("{") > _BRACES:
        return ()
    found = dict.fromkeys(map(_segments, islice(_braces(pattern.strip()), _ALTERNATIVES)))
    return tuple(_Option(_tail(parts), parts) for parts in found)


def _tail(parts: tuple[str, ...]) -> str:
    """The text at the end of every name that the last part matches."""
    last = parts[-1] if parts and parts[-1] != "**" else "*"
    return "" if "[" in last else re.split(r"[*?]", last)[-1][-_TAIL:]


def _segments(pattern: str) -> tuple[str, ...]:
    pattern = pattern.removeprefix("./")
    rooted = pattern.startswith("/")
    parts = [part for part in pattern.split("/") if part]
    if pattern.endswith("/"):
        parts.append("**")
    if len(parts) == 1 and not rooted:
        parts.insert(0, "**")
    return tuple(part for index, part in enumerate(parts) if part != "**" or parts[index - 1 : index] != ["**"])


def _braces(pattern: str) -> Iterator[str]:
    """Expand the first group of braces, then the rest."""
    start = pattern.find("{")
    end = _closing(pattern, start)
    if start < 0 or end < 0:
        yield pattern
        return
    for option in _alternatives(pattern[start + 1 : end]):
        yield from _braces(pattern[:start] + option + pattern[end + 1 :])


def _closing(pattern: str, start: int) -> int:
    depth = 0
    for index in range(max(start, 0), len(pattern)):
        depth += (pattern[index] == "{") - (pattern[index] == "}")
        if depth == 0:
            return index if start >= 0 else -1
    return -1


def _alternatives(inner: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, character in enumerate(inner):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield inner[start:index]
            start = index + 1
    yield inner[start:]


__all__ = ["Paths", "is_universal"]
