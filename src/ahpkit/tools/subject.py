"""Reads a tool call as rules see it: who runs it, its command line, the files that it names. Pure.

Tools name their parameters as they like. So a text that may be a file can only be a reason to ask a person, never to
allow a call.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast
from urllib.parse import unquote, urlsplit

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
_SYSTEM = frozenset({"", "/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"})
_COMMAND_KEYS = ("command", "cmd")
_HARMLESS = frozenset(
    {"description", "justification", "timeout", "timeout_ms", "timeoutMs", "sandbox_permissions", "yield_time_ms"}
)
_FOLDER_KEYS = frozenset({"cwd", "workdir", "working_directory", "directory"})

_PATH_KEYS = frozenset(
    {
        *("path", "paths", "file", "files", "filename", "filepath", "filepaths"),
        *("filePath", "filePaths", "file_path", "file_paths", "notebook_path", "abs_path"),
        *("oldPath", "newPath", "old_path", "new_path", "source_path", "destination_path"),
    }
)
"""Parameters that always name files."""
_PAIRS = ({"source", "destination"}, {"src", "dst"}, {"src", "dest"}, {"from", "to"})
"""Pairs of parameters that name files if both are given and one of them looks like a file."""
_PAIRED = frozenset(chain(*_PAIRS))
_TEXT_KEYS = frozenset(
    {
        *("content", "contents", "text", "body", "data", "code", "message", "query", "replacement"),
        *("oldText", "newText", "old_text", "new_text", "oldString", "newString", "old_string", "new_string"),
        *("old_str", "new_str", "file_text", "insert_text"),
    }
)
"""Parameters with a text that is written or searched."""
_NO_FILE_KEYS = _TEXT_KEYS | _HARMLESS | {*_COMMAND_KEYS}

_GLOB = re.compile(r"[*?\[]")
_WILD = re.compile(r"[*?\[{$]")
"""Characters that some tools replace by names of files: wildcards, alternatives, variables."""

_UP = re.compile(r"(?:^|[/,{])\.\.(?:$|[/,}])")

_MAX_TEXTS = 1000
"""The number of texts of an input that are examined."""
_MAX_NAMES = 600
"""Names of folders and files that are looked up for one call. Each costs a few microseconds of the event loop."""
_FOR_EACH_FILE = 10
"""The number of names that a file counts in addition to its own, for the workspace in which it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The facts about a call that rules look at."""

    owner: str
    """A stable name of the owner that runs the call: `agent:goose`, `client:Editor`, `mcp:<where it is declared>`,
    `host`."""
    tool: str
    is_server: bool = False
    """Whether the owner is an MCP server. A rule may be about all tools of a server."""
    command: str | None = None
    """The command line that the call would run, if it does nothing else."""
    paths: tuple[str, ...] = ()
    """The files that the call names, as absolute paths."""
    real: tuple[str, ...] = ()
    """The same files with all links followed. If empty, they are the same as `paths`."""
    perhaps: tuple[str, ...] = ()
    """Texts that may be further files, as absolute paths: as they are named, and with links followed."""
    folders: tuple[str, ...] = ()
    """Folders that the call names, and folders in which a name with wildcards (`src/*.py`) may find files."""
    more: bool = False
    """Whether the call does more than was examined, so that rules cannot judge all of it."""

    @property
    def named(self) -> tuple[str, ...]:
        """The files by their names and by their real paths, each one once."""
        return tuple(dict.fromkeys((*self.paths, *self.real)))

    @property
    def touched(self) -> tuple[str, ...]:
        """The real paths of the files."""
        return self.real or self.paths


def subject_of(
    owner: str,
    tool: str,
    tool_input: str,
    *,
    workspace: str,
    is_server: bool = False,
    paths: Sequence[str] = (),
    home: str = "",
    real: Callable[[str], str] = posixpath.normpath,
    is_folder: Callable[[str], bool] = lambda path: False,
) -> Subject:
    """The subject of a call. `paths` are files that are known from elsewhere, such as the files of an edit.

    `real` follows the links of an absolute path. It gets the path as it is written: `link/..` is not always where the
    link is. `is_folder` says whether there is a folder of that name.
    """
    given = _object(tool_input)
    found, perhaps, more_texts = _files(given)
    command = _command(given, lambda folder: _inside(folder, workspace, real))
    if not (found or paths or perhaps):  # Most calls of servers name no file.
        more = more_texts or _runs_more(given)
        return Subject(owner=owner, tool=tool, is_server=is_server, command=command, more=more)
    sure, unsure, more_files = _few_enough([*found, *paths], perhaps)
    named = [raw for text in sure for raw in _readings(text, workspace, home)]
    maybe = [raw for text in unsure for raw in _readings(text, workspace, home)]
    touched = _unique(name for raw in named for name in (real(raw), real(posixpath.normpath(raw))))
    possible = _unique(name for raw in maybe for name in (posixpath.normpath(raw), real(raw)))
    return Subject(
        owner=owner,
        tool=tool,
        is_server=is_server,
        command=command,
        paths=_unique(map(posixpath.normpath, named)),
        real=touched,
        perhaps=possible,
        folders=_unique(
            chain((name for name in (*touched, *possible) if is_folder(name)), _searched((*named, *maybe), real))
        ),
        more=more_texts or more_files or _runs_more(given) or any(map(_is_unclear, (*sure, *unsure))),
    )


def _unique(values: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _object(tool_input: str) -> dict[str, Any]:
    """The input, or nothing if it is ambiguous: of two members with the same name a tool may use either."""
    try:
        value: Any = _READER.decode(tool_input) if tool_input else {}
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a member twice")
    return found


_READER = json.JSONDecoder(object_pairs_hook=_once)

# -- files ---------------------------------------------------------------------------------------------------------


def _few_enough(sure: list[str], unsure: list[str]) -> tuple[list[str], list[str], bool]:
    """The files that are looked up, up to the limit for one call, and whether there are more."""
    left = _MAX_NAMES
    for number, text in enumerate((*sure, *unsure)):
        left -= _FOR_EACH_FILE + text.count("/")
        if left < 0:
            return sure[:number], unsure[: max(0, number - len(sure))], True
    return sure, unsure, False


def _files(given: Mapping[str, Any]) -> tuple[list[str], list[str], bool]:
    """The texts of an input that are files, the texts that may be files, and whether there are more texts than are
    examined."""
    sure: list[str] = []
    unsure: list[str] = []
    for count, (key, text, beside) in enumerate(_texts("", given, frozenset())):
        if count >= _MAX_TEXTS:
            return sure, unsure, True
        if key in _PATH_KEYS or _is_file_uri(text) or _is_paired(key, beside):
            sure.append(text)
        elif key not in _NO_FILE_KEYS and _looks_like_file(key, text):
            unsure.append(text)
    return sure, unsure, False


def _texts(key: str, value: Any, beside: frozenset[str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Every text that is not empty, with its key and, if it has a partner, the texts of both."""
    if isinstance(value, str):
        if value:
            yield key, value, beside
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(key, item, beside)
    elif isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        for name, item in entries.items():
            yield from _texts(name, item, _partners(name, entries))


def _partners(key: str, entries: Mapping[str, Any]) -> frozenset[str]:
    if key not in _PAIRED:
        return frozenset()
    pair = next((pair for pair in _PAIRS if key in pair and pair <= entries.keys()), None)
    return frozenset(value for name in pair or () if isinstance(value := entries[name], str))


def _is_paired(key: str, beside: frozenset[str]) -> bool:
    return any("/" in text or "." in text for text in beside) and not any("://" in text for text in beside)


def _looks_like_file(key: str, text: str) -> bool:
    named = re.search(r"path|file|dir|folder|root|base|source|dest|target|output|uri", key, re.IGNORECASE)
    return named is not None or "/" in text or text.startswith(("~", ".."))


def _readings(text: str, workspace: str, home: str) -> list[str]:
    """The absolute paths that a text may stand for. The system ignores everything after a NUL. Some tools remove
    spaces, or read a backslash as a slash and `%2e` as a dot."""
    text = text.partition("\0")[0]
    if _is_file_uri(text):
        text = unquote(_uri(text)[1]).partition("\0")[0]
    spelled = dict.fromkeys([text, text.strip(), text.replace("\\", "/"), unquote(text).partition("\0")[0]])
    found = [posixpath.join(workspace, spelling) for spelling in spelled]
    if home and (text == "~" or text.startswith("~/")):
        found.append(posixpath.join(home, text[2:]))
    return found


def _is_file_uri(text: str) -> bool:
    """Not by `ahpkit.platform.files`, which refuses a URI that is not well formed. A tool may accept it all the same,
    so a rule must see the path in it."""
    return text[:5].lower() == "file:"


def _uri(uri: str) -> tuple[str, str]:
    """The machine and the path of a `file:` URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "", uri
    return parts.netloc.lower(), parts.path


def _is_unclear(text: str) -> bool:
    """Whether it is unclear which file a name means: a file of another machine, or `..` beside a wildcard."""
    machine = _uri(text)[0] if _is_file_uri(text) else ""
    return machine not in ("", "localhost") or (_UP.search(text) is not None and _WILD.search(text) is not None)


def _searched(names: Sequence[str], real: Callable[[str], str]) -> Iterator[str]:
    """The folders in which names with wildcards or variables may find files."""
    for name in names:
        if _WILD.search(name) is not None:
            yield real(fixed_part(name, _WILD) or "/")


def fixed_part(pattern: str, wild: re.Pattern[str] = _GLOB) -> str:
    """The folders of a pattern before the first wildcard."""
    parts = pattern.split("/")
    count = next((number for number, part in enumerate(parts) if wild.search(part)), len(parts))
    return "/".join(parts[:count])


# -- commands ------------------------------------------------------------------------------------------------------


def _runs_more(given: Mapping[str, Any]) -> bool:
    """Whether the call runs a command line, so that it is unclear which files it touches. A single word may be the name
    of an operation, such as `view` of an editor."""
    lines = [_line(given[key]) for key in _COMMAND_KEYS if key in given]
    return any(line is None or re.fullmatch(r"\w*", line) is None for line in lines)


def _command(given: Mapping[str, Any], is_inside: Callable[[str], bool]) -> str | None:
    """The command line of an input, if nothing else in the input matters. It must run in a folder that `is_inside`."""
    named = [key for key in _COMMAND_KEYS if key in given]
    others = given.keys() - set(named) - _HARMLESS
    folders = {key: given[key] for key in others & _FOLDER_KEYS}
    if len(named) != 1 or others - _FOLDER_KEYS:
        return None
    if any(not isinstance(folder, str) or not is_inside(folder) for folder in folders.values()):
        return None
    return _line(given[named[0]])


def _line(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    words = cast("list[Any]", value) if isinstance(value, list) else []
    if not words or not all(isinstance(word, str) for word in words):
        return None
    if len(words) == 3 and _is_shell(words[0]) and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def _is_shell(program: str) -> bool:
    """Whether a program is a shell of the system. A program in another folder may only have the name of a shell."""
    folder, name = posixpath.split(program)
    return name in _SHELLS and folder in _SYSTEM


def _inside(path: str, workspace: str, real: Callable[[str], str]) -> bool:
    whole, base = real(posixpath.join(workspace, path)), real(workspace)
    return whole == base or whole.startswith(f"{base.rstrip('/')}/")


__all__ = ["Subject", "fixed_part", "subject_of"]
