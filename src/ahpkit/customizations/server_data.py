"""Finds out which files in an MCP server's declaration are data that the server works on, and not programs.

Data files are not part of the trusted content, because the server itself writes them. In doubt a file does not count as
data. `docs/decisions/2026-11-17-data-of-servers.md` says why.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence

from ahpkit.platform.files import CLOSE_ON_EXEC, NON_BLOCKING

BETWEEN_WORDS = re.compile(r"[\s;|&()<>\"'`]+")

_BINARY_ENDINGS = frozenset(
    {
        *(".db", ".db3", ".sqlite", ".sqlite3", ".s3db", ".duckdb", ".parquet", ".arrow", ".kdbx"),
        *(".pdf", ".epub", ".docx", ".xlsx", ".pptx", ".png", ".jpg", ".jpeg", ".webp"),
    }
)
"""Endings of files that are never started, and that never say what to start."""

_TEXT_ENDINGS = frozenset(
    {
        *(".log", ".jsonl", ".ndjson", ".csv", ".tsv", ".pid", ".md", ".markdown", ".ics", ".bib"),
        *(".canvas", ".excalidraw", ".drawio", ".geojson"),
    }
)
"""Endings of text that an interpreter could run. Such a file is data only if a name says so."""

_MIXED_ENDINGS = frozenset({".json", ".txt", ".xml"})
"""Endings of both data and settings. Such a file counts as data only if its name says so and its text names no
programs."""

_DATA_WORDS = frozenset(
    {
        *("db", "database", "data", "memory", "memories", "store", "storage", "cache", "log", "logs", "out", "output"),
        *("pid", "state", "history", "graph", "knowledge", "notes", "todo", "todos", "index", "results"),
        *("export", "exports", "vault"),
    }
)
_SETTING_WORDS = frozenset(
    {
        *("config", "conf", "settings", "options", "server", "servers", "plugin", "plugins", "script", "scripts"),
        *("hook", "hooks", "command", "commands", "startup", "init", "rc", "preload", "require", "requirements"),
    }
)
"""Words in the name of an option, a variable or a file that mean data, and words that mean something else. One word of
the second kind is enough to exclude data."""

_LOADING = frozenset(
    {
        *("-c", "-e", "-f", "-i", "-m", "-r", "-s", "-x", "-S", "--eval", "--import", "--loader", "--module"),
        *("--env-file", "--rcfile", "--file", "--makefile"),
    }
)
"""Options whose value a program may run, whatever its ending."""

_STARTERS = frozenset(
    {
        *("sh", "bash", "dash", "zsh", "ksh", "fish", "source", "env", "exec", "xargs", "nohup", "java", "uv", "uvx"),
        *("python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "lua", "tsx", "ts-node", "npx", "run"),
    }
)
"""The first word after one of these is run, whatever its ending."""

_NAMES_PROGRAMS = re.compile(
    rb'"(?:command|cmd|exec|executable|program|scripts?|shell|run|args|argv|env|hooks|plugins|(?:mcp)?servers)"\s*:',
    re.IGNORECASE,
)
"""Keys of JSON that name a program to start."""

_MOST = 16 * 1024 * 1024
"""Bytes that are searched for such keys. A larger file is treated as if it had one."""

_ESCAPED = re.compile(rb"\\u00([0-7][0-9a-f])", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_VERSION = re.compile(r"[\d.]+$")


class ServerData:
    """Judges the files that one declaration names. `fill`: fills in places in a word, such as the home."""

    def __init__(
        self, args: Sequence[str], env: Mapping[str, str], *, command: str, fill: Callable[[str], str]
    ) -> None:
        self._named_as_data: dict[str, bool | None] = {}
        self._first = fill(next((word for word in args if not word.startswith("-")), ""))
        for name, value in _options([*_flat(args)]):
            self._note(fill(value), False if name in _LOADING else _calls_data(name))
        for name, value in env.items():
            self._note(fill(value), _calls_data(name) or False)
        for word in _started([command, *_flat(args)]):
            self._note(fill(word), False)

    def _note(self, word: str, is_data: bool | None) -> None:
        """Note whether a word names data. If it does not in one place of the declaration, it does not in any."""
        before = self._named_as_data.get(word)
        self._named_as_data[word] = False if False in (before, is_data) else before or is_data

    def holds(self, word: str, path: str) -> bool:
        """Whether a file that a word of the declaration names is data. Reads the file."""
        named_as_data = self._named_as_data.get(word, False)
        if named_as_data is False or _can_be_started(path):
            return False
        ending = _ending(path)
        if ending in _BINARY_ENDINGS:
            return True
        if not named_as_data and word == self._first and ending in _TEXT_ENDINGS:
            return False  # The command may be an interpreter that is not in our list.
        is_called_data = bool(named_as_data or _calls_data(os.path.basename(path)))
        return is_called_data and (ending in _TEXT_ENDINGS or (ending in _MIXED_ENDINGS and not _names_programs(path)))


def may_become_setting(path: str) -> bool:
    """Whether the content of a file decides if it is data."""
    return _ending(path) in _MIXED_ENDINGS


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _flat(words: Sequence[str]) -> Iterator[str]:
    """The words of a declaration. A line of shell is split into its words."""
    for word in words:
        yield word
        pieces = BETWEEN_WORDS.split(word)
        yield from pieces if len(pieces) > 1 else ()


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word that may be a path, and the option it belongs to: `--db x` and `--db=x`; none: an empty name."""
    before = ""
    for word in words:
        if word.startswith("-"):
            before, is_with_value, value = word.partition("=")
            if is_with_value:
                yield from ((before, one) for one in (value, *value.split(":")))
                before = ""
        else:
            yield before, word
            before = ""


def _started(words: Sequence[str]) -> Iterator[str]:
    is_next = True
    for word in words:
        if is_next and not word.startswith("-"):
            yield word
            is_next = False
        is_next = is_next or _VERSION.sub("", os.path.basename(word)) in _STARTERS


def _calls_data(name: str) -> bool | None:
    """Whether a name says that something is data; None: the name does not say."""
    words = {word.lower() for word in _WORD.findall(name)}
    return False if words & _SETTING_WORDS else bool(words & _DATA_WORDS) or None


def _can_be_started(path: str) -> bool:
    """Whether a file is marked as executable or begins as a script does."""
    try:
        return bool(os.stat(path).st_mode & 0o111) or _read(path, 2) == b"#!"
    except OSError:
        return True


def _names_programs(path: str) -> bool:
    try:
        text = _read(path, _MOST + 1)
    except OSError:
        return True
    plain = _ESCAPED.sub(lambda letter: bytes([int(letter[1], 16)]), text)
    return len(text) > _MOST or _NAMES_PROGRAMS.search(plain) is not None


def _read(path: str, most: int) -> bytes:
    """The beginning of a regular file. Pipes are not read, because that would wait."""
    with open(os.open(path, os.O_RDONLY | NON_BLOCKING | CLOSE_ON_EXEC), "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b"#!"


__all__ = ["BETWEEN_WORDS", "ServerData", "may_become_setting"]
