"""Shows file edits: which file, and what changes line by line.

An agent reports edits explicitly, or they can be read from the input of its tool: tools use few names for a path, an
old and a new text, and a patch can be recognised.
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
"""Reads a resource by its URI; None when it has no text to show."""

_FILES = 10
"""Files of a tool call whose lines are shown: nobody reads more before pressing a key."""

_PATHS = ("file_path", "filePath", "filepath", "path", "file", "filename", "abs_path", "absolute_path", "target_file")
_OLD = ("old_string", "old_str", "oldString", "oldText", "old_text", "old", "search")
_NEW = ("new_string", "new_str", "newString", "newText", "new_text", "new", "replace")
_WHOLE = ("content", "contents", "file_text", "fileText", "text", "code_edit")
_PATCHES = ("diff", "patch", "unified_diff", "patchText", "patch_text", "input")
_SEVERAL = ("edits", "replacements", "changes")
"""How the inputs of tools that change files name things."""

_PATCH = re.compile(r"^(\*\*\* Begin Patch|--- |diff --git |@@ )", re.MULTILINE)

_CONTEXT = 2
"""Lines around a change."""


async def describe_edits(edits: Sequence[Any], read: Reader) -> list[str]:
    """The edits of a tool call: each in a line, and the changes of the first ones below it."""
    lines: list[str] = []
    for number, edit in enumerate(edits):
        lines.append(headline(edit))
        if number < _FILES:
            lines += await changed_lines(edit, read)
    return lines


def headline(edit: Any, directories: Sequence[str] = (), note: str = "") -> str:
    """One edit in a line: what happens to which file, how many lines, and a remark."""
    names = [shown_name(edit[side]["uri"], directories) for side in ("before", "after") if side in edit]
    verb = "create" if "before" not in edit else "delete" if "after" not in edit else "change"
    if len(set(names)) == 2:
        verb = "rename"
    counts = edit.get("diff", {})
    changed = [f"{sign}{counts[key]}" for key, sign in (("added", "+"), ("removed", "-")) if key in counts]
    return " ".join([verb, " → ".join(dict.fromkeys(names)), *changed, *([f"({note})"] if note else [])])


def shown_name(uri: str, directories: Sequence[str] = ()) -> str:
    """A file as a person knows it: its path below one of these directories, else its path, else its URI."""
    path = local_path(uri)
    if path is None:
        return uri
    for directory in directories:
        root = local_path(directory)
        if root is not None and path.is_relative_to(root):
            return str(path.relative_to(root))
    return str(path)


async def changed_lines(edit: Any, read: Reader) -> list[str]:
    """What changes line by line; nothing where one side is no text."""
    sides = [await read(edit[side]["content"]["uri"]) if side in edit else "" for side in ("before", "after")]
    before, after = sides
    return [] if before is None or after is None else diff_lines(before, after)


def diff_lines(before: str, after: str) -> list[str]:
    """What changes from one text to another, with a few lines around it."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    return list(compared)[2:]  # Not the two names, which are the same.


async def describe_input(tool_input: str, read: Reader) -> list[str]:
    """What a tool is about to change, by its input: nothing when it changes no file, or does not say how."""
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
    """Path, old and new text of each edit; no old text when the whole file is written."""
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
    """A patch among the arguments, or one for each of several files."""
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
