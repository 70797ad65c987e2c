"""Reads configuration files (TOML): checks them, and remembers where each value came from.

Three layers, the later ones win: what is built in, the user's file (`config.toml` in the user's configuration
directory, or the file that `--config` names), and the project's `.ahpkit.toml`. A project's file comes with a checkout,
so only keys that can do no harm are taken from it until its owner trusts it (`ahpkit trust add .ahpkit.toml`).

[host]
port = 7110
default_agent = "gemini"

[agents.mine]
command = "my-agent"
args = ["--acp"]

[customizations]
plugins = ["~/plugins/reviews"]

[[mcp.servers]]
name = "time"
command = ["uvx", "mcp-server-time"]
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

from ahpkit.log.datadir import Durability
from ahpkit.platform.files import NON_BLOCKING
from ahpkit.protocol.errors import AhpError
from ahpkit.tools.rules import Rule

CONFIG_VARIABLE = "AHPKIT_CONFIG"
"""The environment variable that names another file than the usual one of the user."""

PROJECT_FILE = ".ahpkit.toml"

_LARGEST = 1024 * 1024
"""The largest size of a configuration file, in bytes."""
_DEEPEST = 32

BUILT_IN = "built in"
"""The origin of a value that no file sets."""


class SettingsError(AhpError):
    """The configuration cannot be used. The text says which key is wrong, and why."""


@dataclass(slots=True)
class Settings:
    """The values of the configuration files. Options of the command line replace them."""

    host: str = "127.0.0.1"
    port: int = 7110
    data_dir: Path | None = None
    durability: Durability = "full"
    default_agent: str | None = None
    default_directory: Path | None = None
    roots: list[Path] = field(default_factory=list[Path])
    client_grace: float = 30.0
    child_memory: int | None = None
    child_processes: int = 16_384
    allowed_hosts: list[str] = field(default_factory=list[str])
    allowed_origins: list[str] = field(default_factory=list[str])
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_authority: bool = False
    terminals: bool = False
    plugins: list[Path] = field(default_factory=list[Path])
    off: list[str] = field(default_factory=list[str])
    remember_toggles: bool = True
    allow_hooks: bool = False
    trusted: list[Path] = field(default_factory=list[Path])
    extensions: list[str] = field(default_factory=list[str])
    page_url: str | None = None
    webhook: str | None = None
    command: list[str] = field(default_factory=list[str])
    agents_by: str = "stdio"
    servers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    rules: list[Rule] = field(default_factory=list[Rule])
    agent: str | None = None
    model: str | None = None
    auto_start: bool = True
    agents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    origins: dict[str, str] = field(default_factory=dict[str, str], compare=False)
    """For each dotted key: the file that sets it. Keys that are not listed have their built-in value."""
    left_out: dict[str, list[str]] = field(default_factory=dict[str, list[str]], compare=False)
    """For each project file: the keys that were ignored because the file is not trusted."""


def user_file() -> Path:
    """The path of the user's configuration file, whether the file exists or not."""
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(os.path.expanduser(named))
    import platformdirs  # Imported late: see `default_data_dir`.

    return platformdirs.user_config_path("ahpkit") / "config.toml"


def project_file(directory: Path) -> Path | None:
    """The nearest `.ahpkit.toml`, in a directory or above it."""
    for folder in (directory, *directory.parents):
        if not may_be_project(folder):
            return None
        if (found := folder / PROJECT_FILE).is_file():
            return found
    return None


def may_be_project(directory: Path) -> bool:
    """Whether a directory may have a project file. The home directory and the directories above it may not."""
    return not Path.home().is_relative_to(directory)


def default_data_dir() -> Path:
    """The directory for sessions, if no other one is given."""
    import platformdirs  # Imported here: it is not needed if a directory is given.

    return platformdirs.user_data_path("ahpkit")


# The types of values. Each function returns the setting, or raises `ValueError` with a text that says what was
# expected.


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a string that is not empty")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _port(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 65535:
        raise ValueError("a whole number from 0 to 65535")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError("a whole number, 0 or more; 0 means no limit")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < float("inf"):
        raise ValueError("a number of seconds, 0 or more")
    return float(value)


def _durability(value: Any) -> Durability:
    if value not in get_args(Durability):
        raise ValueError(f"one of {', '.join(get_args(Durability))}")
    return value


def _path(value: Any) -> Path:
    try:
        return Path(_text(value)).expanduser()
    except RuntimeError:
        raise ValueError("a path; ~NAME at its beginning is the home of a user of this machine") from None


def _web_url(value: Any) -> str:
    if not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", text := _text(value)):
        raise ValueError("an address such as https://host.example")
    return text


def _hook_url(value: Any) -> str:
    if not re.fullmatch(r"https?://[^\s]+", text := _text(value)):
        raise ValueError("an address that begins with http:// or https://")
    return text


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in cast("list[Any]", value)):
        raise ValueError("a list of strings")
    return cast("list[str]", value)


def _matching(form: str, says: str) -> Callable[[Any], list[str]]:
    def read(value: Any) -> list[str]:
        texts = _texts(value)
        if not all(re.fullmatch(form, text) for text in texts):
            raise ValueError(f"a list of {says}")
        return texts

    return read


def _paths(value: Any) -> list[Path]:
    return [_path(item) for item in _texts(value)]


_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")


def _servers(value: Any) -> list[dict[str, Any]]:
    """MCP servers, each one a table. A table may contain what `.mcp.json` may contain."""
    tables = cast("list[Any]", value) if isinstance(value, list) else [None]
    if not all(isinstance(table, dict) for table in tables):
        raise ValueError("tables: [[mcp.servers]]")
    servers = [_server(cast("dict[str, Any]", table), number) for number, table in enumerate(tables, 1)]
    names = [server["name"] for server in servers]
    if len(set(names)) < len(names):
        raise ValueError("servers with names of their own")
    return servers


def _server(table: dict[str, Any], number: int) -> dict[str, Any]:
    try:
        _check_server(table)
    except ValueError as error:
        raise ValueError(f"{error}; look at server {number}, {table.get('name')!r}") from error
    return table


def _check_server(table: dict[str, Any]) -> None:
    unknown = table.keys() - _SERVER.keys()
    if unknown:
        raise ValueError(f"servers with these keys and no others: {', '.join(_SERVER)}")
    for key, value in table.items():
        try:
            _SERVER[key](value)
        except ValueError as error:
            raise ValueError(f"servers with {key} as {error}") from error
    if not isinstance(name := table.get("name"), str) or not _SERVER_NAME.fullmatch(name):
        raise ValueError("servers with a name of letters, digits, - and _")
    if ("command" in table) == ("url" in table):
        raise ValueError("servers with either a command or a url")


def _agents_by(value: Any) -> str:
    if value not in ("stdio", "http"):
        raise ValueError("stdio or http")
    return value


def _command(value: Any) -> Any:
    return _texts(value) if isinstance(value, list) and value else _text(value)


def _strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in cast("dict[str, Any]", value).values()):
        raise ValueError("a table of strings")
    return cast("dict[str, str]", value)


_SERVER: Mapping[str, Callable[[Any], Any]] = {
    "name": _text,
    "command": _command,
    "args": _texts,
    "env": _strings,
    "cwd": _text,
    "url": _text,
    "headers": _strings,
    "type": _text,
    "oauth": _strings,
    "shared": _flag,
    "direct": _flag,
    "enabled": _flag,
}

_TABLES: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "host": {
        "host": _text,
        "port": _port,
        "data_dir": _path,
        "durability": _durability,
        "default_agent": _text,
        "default_directory": _path,
        "roots": _paths,
        "client_grace": _seconds,
        "child_memory": _count,
        "child_processes": _count,
        "allowed_hosts": _matching(
            r"[^/\s:]+|[^/\s:]*:[^/\s]*:[^/\s]*", "names such as host.example, without scheme, port and path"
        ),
        "allowed_origins": _matching(
            r"[A-Za-z][\w+.-]*://[^/\s]+", "origins such as https://host.example, without a slash at the end"
        ),
        "tls_certificate": _path,
        "tls_key": _path,
        "tls_authority": _flag,
        "terminals": _flag,
    },
    "customizations": {
        "plugins": _paths,
        "off": _texts,
        "remember_toggles": _flag,
        "allow_hooks": _flag,
        "trusted": _paths,
    },
    "canvas": {"extensions": _texts, "page_url": _web_url},
    "mcp": {"servers": _servers, "agents_by": _agents_by},
    "notify": {"webhook": _hook_url, "command": _texts},
    "session": {"agent": _text, "model": _text},
    "client": {"auto_start": _flag},
}
"""The keys that each table may have. `agents` has a table for each agent; the agents know its keys."""

_SECRET = frozenset({"servers"})
"""Keys whose values are not repeated in errors, because they may contain keys and tokens."""

_HARMLESS = frozenset({"session.agent", "session.model", "host.default_agent"})
"""Keys that a project may set without being trusted: they choose among what the host offers, and run nothing new."""


def layered_settings(
    config_file: Path | None, directory: Path, *, trusts: Callable[[Path, Settings], bool]
) -> Settings:
    """Reads the user's file (or the file that was named), then the project's file. Raises `SettingsError`.

    `trusts` decides whether a project file is used as a whole. It gets the file and the settings of the user.
    """
    settings, own = Settings(), config_file or user_file()
    if config_file is not None or own.exists():
        _take(own, _read(own), settings)
    if (project := project_file(directory)) is not None and project != own:
        content = _read(project)
        _take(project, content if trusts(project, settings) else _harmless(project, content, settings), settings)
    return _checked(settings)


def harmful_content(path: Path) -> dict[str, Any]:
    """The content of a project file that is used only if the file is trusted."""
    content = _read(path)
    return {
        table: kept
        for table, keys in content.items()
        if (kept := _without(table, cast("dict[str, Any]", keys), _HARMLESS) if isinstance(keys, dict) else keys)
    }


def _without(table: str, keys: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if f"{table}.{key}" not in names}


def _harmless(path: Path, content: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The keys of a project file that do no harm. The others are remembered in `left_out`."""
    taken: dict[str, Any] = {}
    for table, keys in content.items():
        if table == "rules":
            settings.left_out.setdefault(str(path), []).append("rules")
            continue
        if not isinstance(keys, dict):
            raise SettingsError(f"{path}: {table} must be a table: [{table}]")
        for key, value in cast("dict[str, Any]", keys).items():
            if f"{table}.{key}" in _HARMLESS:
                taken.setdefault(table, {})[key] = value
            else:
                settings.left_out.setdefault(str(path), []).append(f"{table}.{key}")
    return taken


def _take(path: Path, tables: dict[str, Any], settings: Settings) -> None:
    for table, content in tables.items():
        if table == "rules":
            settings.rules = [*settings.rules, *_rules(path, content)]
            settings.origins["rules"] = str(path)
            continue
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: {table} must be a table: [{table}]")
        if table == "agents":
            settings.agents |= _agents(path, cast("dict[str, Any]", content))
            settings.origins |= {f"agents.{name}": str(path) for name in cast("dict[str, Any]", content)}
        elif table in _TABLES:
            _take_table(path, table, cast("dict[str, Any]", content), settings)
        else:
            raise SettingsError(f"{path}: unknown table [{table}]; {_meant(table, [*_TABLES, 'agents', 'rules'])}")


def _checked(settings: Settings) -> Settings:
    if settings.tls_key is not None and settings.tls_certificate is None:
        where = settings.origins["host.tls_key"]
        raise SettingsError(f"{where}: host.tls_key needs host.tls_certificate beside it")
    return settings


def described(settings: Settings) -> list[tuple[str, Any, str]]:
    """The dotted key, the value and the origin of every setting, in the order of the documentation."""
    rows = [(f"{table}.{key}", getattr(settings, key)) for table, keys in _TABLES.items() for key in keys]
    rows += [(f"agents.{name}", table) for name, table in settings.agents.items()]
    rows += [("rules", [rule.as_json() for rule in settings.rules])]
    return [(key, value, settings.origins.get(key, BUILT_IN)) for key, value in rows]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(_text_of(path))
        _check_shape(content)
        return content
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 text") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from error


def _text_of(path: Path) -> str:
    """The text of a file. A project file comes with a checkout: it may be a link to anything, and of any size."""
    with open(path, "rb", opener=_without_waiting) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise ValueError(f"it is not a file of at most {_LARGEST // 1024} KiB")
        text = (file.read(_LARGEST) or b"").decode()
    if any(line.count(".") > _LARGEST // 1024 for line in text.splitlines()):
        raise ValueError("it is nested too deeply")
    return text


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | NON_BLOCKING)


def _check_shape(content: dict[str, Any]) -> None:
    """Check that keys are printable, because they are printed, and that tables are not nested too deeply."""
    todo: list[tuple[Any, int]] = [(content, 0)]
    while todo:
        value, depth = todo.pop()
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            if odd := next((key for key in table if not key.isprintable()), None):
                raise ValueError(f"the key {odd[:40]!r} has characters that cannot be shown")
            todo += ((item, depth + 1) for item in table.values())
        elif isinstance(value, list):
            todo += ((item, depth + 1) for item in cast("list[Any]", value))


def _meant(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def _take_table(path: Path, table: str, content: dict[str, Any], settings: Settings) -> None:
    known = _TABLES[table]
    for key, value in content.items():
        if key not in known:
            raise SettingsError(f"{path}: unknown key {table}.{key}; {_meant(key, known)}")
        try:
            setattr(settings, key, known[key](value))
            settings.origins[f"{table}.{key}"] = str(path)
        except ValueError as error:
            given = "" if key in _SECRET else f", not {value!r}"
            raise SettingsError(f"{path}: {table}.{key} must be {error}{given}") from error


def _rules(path: Path, content: Any) -> list[Rule]:
    tables = cast("list[Any]", content) if isinstance(content, list) else [None]
    if not all(isinstance(table, dict) for table in tables):
        raise SettingsError(f"{path}: rules must be tables: [[rules]]")
    found: list[Rule] = []
    for number, table in enumerate(cast("list[dict[str, Any]]", tables), 1):
        words = dict(table)
        try:
            if isinstance(words.get("workspace"), str) and words["workspace"]:
                words["workspace"] = _path(words["workspace"]).absolute().as_uri()
            found.append(Rule.made(words, id=f"configured-{number}"))
        except ValueError as error:
            raise SettingsError(f"{path}: rule {number} of [[rules]]: {error}") from error
    return found


def _agents(path: Path, tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for name, content in tables.items():
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: agents.{name} must be a table: [agents.{name}]")
    return tables


__all__ = [
    "BUILT_IN",
    "PROJECT_FILE",
    "Settings",
    "SettingsError",
    "default_data_dir",
    "described",
    "harmful_content",
    "layered_settings",
    "may_be_project",
    "project_file",
    "user_file",
]
