"""Completes `#` and `@` in a message with the files below the session's working directories.

Every list is bounded. Files are found level by level, without hidden ones and without folders that tools fill. A list
is reused for a few seconds while a person types.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from ahpkit.host.turns.completions import TypedWord, word_at
from ahpkit.protocol.chat.commands import CompletionItem

MARKS = ("#", "@")
"""The characters that begin a mention of a file."""

MAX_FILES = 10_000
"""Files of a directory that are offered. Those near the top come first."""

KEPT = 5_000
"""Milliseconds for which a list of files is reused."""

_MAX_ENTRIES = 50_000
"""Entries of one folder that are read."""

_FILLED_BY_TOOLS = frozenset({"node_modules", "__pycache__", "venv", "target", "bower_components"})

Shows = Callable[[Path], bool]
"""Whether a directory may be read."""


class Mentions:
    """Lists of the files of directories. Each list is kept for a moment."""

    def __init__(self, shows: Shows, *, max_files: int = MAX_FILES) -> None:
        self._shows = shows
        self._max_files = max_files
        self._lists: dict[Path, tuple[int, Sequence[str]]] = {}

    def items(self, directories: Sequence[Path], text: str, offset: int, *, now: int) -> list[CompletionItem]:
        """Files for the word at `offset`; `now` is in milliseconds. Blocks: it reads directories."""
        word = word_at(text, offset)
        if not word.typed.startswith(MARKS):
            return []
        found = [(file, folder) for folder in directories for file in self._files(folder, now)]
        wanted = word.typed[1:].casefold()
        ranked = sorted((fit, len(file), file, folder) for file, folder in found if (fit := _fit(file, wanted)) < _NOT)
        uris = {folder: folder.as_uri() for folder in directories}
        return [_item(word, file, uris[folder]) for _, _, file, folder in ranked]

    def _files(self, directory: Path, now: int) -> Sequence[str]:
        made, files = self._lists.get(directory, (0, ()))
        if not files or now - made > KEPT:
            files = list_files(directory, self._shows, at_most=self._max_files)
            fresh = {folder: kept for folder, kept in self._lists.items() if now - kept[0] <= KEPT}
            self._lists = {**fresh, directory: (now, files)}
        return files


def list_files(directory: Path, shows: Shows, *, at_most: int) -> Sequence[str]:
    """Paths of files below a directory, relative to it, level by level. Links are not followed."""
    files: list[str] = []
    waiting = deque([""])
    for _ in range(at_most):  # Folders are counted, too: there may be many without a file.
        if not waiting or len(files) >= at_most:
            break
        inner = waiting.popleft()
        if not shows(directory / inner):
            continue
        for entry in _entries(directory / inner):
            path = f"{inner}/{entry.name}" if inner else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif entry.is_file(follow_symlinks=False):
                files.append(path)
    return files[:at_most]


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            some = itertools.islice(entries, _MAX_ENTRIES)
            shown = [entry for entry in some if not entry.name.startswith(".") or entry.name == ".github"]
    except OSError:  # The folder is gone, or cannot be read.
        return []
    named = (entry for entry in shown if entry.name not in _FILLED_BY_TOOLS and _is_a_word(entry.name))
    return sorted(named, key=lambda entry: entry.name)


def _is_a_word(name: str) -> bool:
    """Whether a name can be used in a message: it has no spaces and no control characters."""
    return name.isprintable() and " " not in name


_NOT = 4


def _fit(file: str, wanted: str) -> int:
    """How well a path fits the typed word, from best to worst: the name begins with it, the path begins with it, the
    name contains it, the path contains it; None: not at all."""
    path = file.casefold()
    name = path.rpartition("/")[2]
    tests = (name.startswith(wanted), path.startswith(wanted), wanted in name, wanted in path)
    return tests.index(True) if True in tests else _NOT


def _item(word: TypedWord, file: str, folder: str) -> CompletionItem:
    return {
        "insertText": f"{word.typed[0]}{file} ",
        "rangeStart": word.start,
        "rangeEnd": word.end,
        "attachment": {
            "type": "resource",
            "label": file,
            "uri": f"{folder}/{quote(file)}",
            "displayKind": "document",
            "_meta": {"description": "file"},
        },
    }


__all__ = ["Mentions", "list_files"]
