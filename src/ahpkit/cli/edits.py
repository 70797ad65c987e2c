"""File edits for a reader: which file, and what changes line by line. Knows no connection: it is given what reads."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

Reader = Callable[[str], Awaitable[str | None]]
"""Reads a resource by its URI; None when it has no text to show."""

_FILES = 10
"""Files of one edit whose lines are shown: nobody reads more before pressing a key."""

_CONTEXT = 2
"""Lines around a change."""


async def describe_edits(edits: Sequence[Any], read: Reader) -> list[str]:
    """Each edit in a line, and its changes below it."""
    lines: list[str] = []
    for number, edit in enumerate(edits):
        lines.append(_headline(edit))
        if number < _FILES:
            lines += await _changes(edit, read)
    return lines


def _headline(edit: Any) -> str:
    verb = "create" if "before" not in edit else "delete" if "after" not in edit else "change"
    uri = (edit.get("after") or edit["before"])["uri"]
    counts = edit.get("diff", {})
    changed = [f"{sign}{counts[key]}" for key, sign in (("added", "+"), ("removed", "-")) if key in counts]
    return " ".join([verb, uri, *changed])


async def _changes(edit: Any, read: Reader) -> list[str]:
    sides = [await read(edit[side]["content"]["uri"]) if side in edit else "" for side in ("before", "after")]
    before, after = sides
    return [] if before is None or after is None else diff_lines(before, after)


def diff_lines(before: str, after: str) -> list[str]:
    """What changes from one text to another, with a few lines around it."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    return list(compared)[2:]  # Not the two names, which are the same.


__all__ = ["Reader", "describe_edits", "diff_lines"]
