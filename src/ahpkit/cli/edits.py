"""Shows file edits: which file, and which lines change.

Some agents report edits explicitly. Otherwise edits are read from the input of a tool: tools use few names for a path,
an old and a new text, and a patch can be recognised.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, cast

from ahpkit.platform.files import local_path

Reader = Callable[[str], Awaitable[str | None]]
"""Reads a resource by its URI as text; None if the resource has no text to show."""

_FILES = 10
"""The number of files of a tool call whose lines are shown. Nobody reads more before pressing a key."""

_PATHS = ("file_path", "filePath", "filepath", "path", "file", "filename", "abs_path", "absolute_path", "target_file")
_OLD = ("old_string", "old_str", "oldString", "oldText", "old_text", "old", "search")
_NEW = ("new_string", "new_str", "newString", "newText", "new_text", "new", "replace")
_WHOLE = ("content", "contents", "file_text", "fileText", "text", "code_edit")
_PATCHES = ("diff", "patch", "unified_diff", "patchText", "patch_text", "input")
_SEVERAL = ("edits", "replacements", "changes")
"""Names that tools use for the parts of an edit in their input."""

_PATCH = re.compile(r"^(\*\*\* Begin Patch|--- |diff --git |@@ )", re.MULTILINE)

_CONTEXT = 2
"""Unchanged lines that are shown around a change."""


async def describe_edits(edits: Sequence[Any], read: Reader) -> list[str]:
    """The lines that show the edits of a tool call: one for each edit, and the changed lines of the first ones below
    it."""
    lines: list[str] = []
    for number, edit in enumerate(edits):
        lines.append(headline(edit))
        if number < _FILES:
            lines += await changed_lines(edit, read)
    return lines


def headline(edit: Any, directories: Sequence[str] = (), note: str = "") -> str:
    """One line for an edit: what happens to which file, how many lines change, and a remark."""
    names = [shown_name(edit[side]["uri"], directories) for side in ("before", "after") if side in edit]
    verb = "create" if "before" not in edit else "delete" if "after" not in edit else "change"
    if len(set(names)) == 2:
        verb = "rename"
    counts = edit.get("diff", {})
    changed = [f"{sign}{counts[key]}" for key, sign in (("added", "+"), ("removed", "-")) if key in counts]
    return " ".join([verb, " → ".join(dict.fromkeys(names)), *changed, *([f"({note})"] if note else [])])


def shown_name(uri: str, directories: Sequence[str] = ()) -> str:
    """The name of a file for a person: its path below one of these directories, else its whole path, else its URI."""
    path = local_path(uri)
    if path is None:
        return uri
    for directory in directories:
        root = local_path(directory)
        if root is not None and path.is_relative_to(root):
            return str(path.relative_to(root))
    return str(path)


async def changed_lines(edit: Any, read: Reader) -> list[str]:
    """The changed lines of an edit; empty if one side is not text."""
    sides = [await read(edit[side]["content"]["uri"]) if side in edit else "" for side in ("before", "after")]
    before, after = sides
    return [] if before is None or after is None else diff_lines(before, after)


def diff_lines(before: str, after: str) -> list[str]:
    """The lines that differ between two texts, with a few lines around them."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    return list(compared)[2:]  # Without the first two lines: they are names, and the names are the same.


async def describe_input(tool_input: str, read: Reader) -> list[str]:
    """The lines that show what a tool is about to change, read from its input; empty if it changes no file or does not
    say how."""
    try:
        given = json.loads(tool_input)
    except ValueError:
        return tool_input.splitlines() if _PATCH.search(tool_input) else []
    if not isinstance(given, dict):
        return []
    arguments = cast("dict[str, Any]", given)
    lines: list[str] = []
    for path, before, after in _edits(arguments, _first(arguments, _PATHS)):
        if before is None:
            known = await read(Path(path).as_uri()) if PurePath(path).is_absolute() else None
            lines += [f"{'write' if known is None else 'change'} {path}", *diff_lines(known or "", after)]
        else:
            lines += [f"change {path}".rstrip(), *diff_lines(before, after)]
    return lines or _patch(arguments)


def _edits(arguments: Mapping[str, Any], path: str | None) -> Iterator[tuple[str, str | None, str]]:
    """The path, the old text and the new text of each edit. The old text is None if the tool writes the whole file."""
    old, new, whole = (_first(arguments, names) for names in (_OLD, _NEW, _WHOLE))
    if old is not None and new is not None:
        yield path or "", old, new
    elif path is not None and whole is not None:
        yield path, None, whole
    for name in _SEVERAL:
        several = arguments.get(name)
        for one in cast("list[Any]", several) if isinstance(several, list) else ():
            if isinstance(one, dict):
                part = cast("dict[str, Any]", one)
                yield from _edits(part, _first(part, _PATHS) or path)


def _patch(arguments: Mapping[str, Any]) -> list[str]:
    """The patches among the arguments: one, or one for each of several files."""
    lines: list[str] = []
    for name, value in arguments.items():
        if name in _PATCHES and isinstance(value, str) and _PATCH.search(value):
            lines += value.splitlines()
        elif name == "changes" and isinstance(value, dict):
            for path, change in cast("dict[str, Any]", value).items():
                patch = _patch(cast("dict[str, Any]", change)) if isinstance(change, dict) else []
                lines += [f"change {path}", *patch] if patch else []
    return lines


def _first(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


__all__ = ["Reader", "changed_lines", "describe_edits", "describe_input", "headline", "shown_name"]
