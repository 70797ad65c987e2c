"""Glob patterns of rules against paths of files. Pure, and linear enough for patterns written by strangers.

`**` spans folders, `{a,b}` are alternatives, a pattern without `/` means the file name wherever it is, and a pattern
that ends in `/` means everything below.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

_ALTERNATIVES = 64
"""Patterns one pattern with braces may stand for."""

_UNIVERSAL = frozenset({"**", "*", "**/*", "**/**", "/**", "./**"})


def is_universal(pattern: str) -> bool:
    """It matches every file there is, so it does not wait for one to be mentioned."""
    return pattern.strip() in _UNIVERSAL


def any_match(patterns: Iterable[str], paths: Iterable[str]) -> bool:
    """One of the paths (relative, with `/`) matches one of the patterns."""
    split = [tuple(path.split("/")) for path in paths]
    return any(_matches(option, path) for pattern in patterns for option in _options(pattern) for path in split)


@lru_cache(maxsize=4096)
def _options(pattern: str) -> tuple[tuple[str, ...], ...]:
    """The pattern as lists of segments, one for each way to read its braces."""
    return tuple(_segments(option) for option in islice(_braces(pattern.strip()), _ALTERNATIVES))


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


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Segment by segment, keeping every position a `**` makes possible: no backtracking."""
    positions = {0}
    for part in pattern:
        if part == "**":
            positions = set(range(min(positions), len(path) + 1)) if positions else positions
        else:
            positions = {at + 1 for at in positions if at < len(path) and fnmatch.fnmatchcase(path[at], part)}
    return len(path) in positions


__all__ = ["any_match", "is_universal"]
