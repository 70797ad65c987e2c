"""The host's configuration file: TOML, checked, with errors that name the key. Knows no click and starts nothing.

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

[[rules]]
decision = "allow"
owner = "mcp:time"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from ahpkit.log.durability import Durability
from ahpkit.protocol.errors import AhpError
from ahpkit.tools.rules import Rule


class SettingsError(AhpError):
    """The configuration cannot be used; the text says which key and why."""


@dataclass(slots=True)
class Settings:
    """What a configuration file may say. Options of the command line win over it."""

    host: str = "127.0.0.1"
    port: int = 7110
    data_dir: Path | None = None
    durability: Durability = "full"
    default_agent: str | None = None
    default_directory: Path | None = None
    roots: list[Path] = field(default_factory=list[Path])
    client_grace: float = 30.0
    allowed_hosts: list[str] = field(default_factory=list[str])
    allowed_origins: list[str] = field(default_factory=list[str])
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_authority: bool = False
    terminals: bool = False
    plugins: list[Path] = field(default_factory=list[Path])
    remember_toggles: bool = True
    allow_hooks: bool = False
    trusted: list[Path] = field(default_factory=list[Path])
    extensions: list[str] = field(default_factory=list[str])
    page_url: str | None = None
    webhook: str | None = None
    command: list[str] = field(default_factory=list[str])
    servers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    rules: list[Rule] = field(default_factory=list[Rule])
    agents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


def default_data_dir() -> Path:
    """Where sessions are kept when nobody says where."""
    import platformdirs  # Here: whoever says where does not need it.

    return platformdirs.user_data_path("ahpkit")


# What a value may be. Each returns the setting or raises `ValueError` with what was expected.


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


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < float("inf"):
        raise ValueError("a number of seconds, 0 or more")
    return float(value)


def _durability(value: Any) -> Durability:
    if value not in get_args(Durability):
        raise ValueError(f"one of {', '.join(get_args(Durability))}")
    return value


def _path(value: Any) -> Path:
    return Path(_text(value)).expanduser()


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


def _paths(value: Any) -> list[Path]:
    return [_path(item) for item in _texts(value)]


_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")


def _servers(value: Any) -> list[dict[str, Any]]:
    """MCP servers, each a table; what else a table may hold is what `.mcp.json` may hold."""
    tables = cast("list[Any]", value) if isinstance(value, list) else [None]
    if not all(isinstance(table, dict) for table in tables):
        raise ValueError("tables: [[mcp.servers]]")
    servers = [_server(cast("dict[str, Any]", table)) for table in tables]
    names = [server["name"] for server in servers]
    if len(set(names)) < len(names):
        raise ValueError("servers with names of their own")
    return servers


def _server(table: dict[str, Any]) -> dict[str, Any]:
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
    return table


def _command(value: Any) -> Any:
    return _texts(value) if isinstance(value, list) and value else _text(value)


def _strings(value: Any) -> dict[str, str]:
    found = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": None}
    if not all(isinstance(item, str) for item in found.values()):
        raise ValueError("a table of strings")
    return found


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
        "allowed_hosts": _texts,
        "allowed_origins": _texts,
        "tls_certificate": _path,
        "tls_key": _path,
        "tls_authority": _flag,
        "terminals": _flag,
    },
    "customizations": {"plugins": _paths, "remember_toggles": _flag, "allow_hooks": _flag, "trusted": _paths},
    "canvas": {"extensions": _texts, "page_url": _web_url},
    "mcp": {"servers": _servers},
    "notify": {"webhook": _hook_url, "command": _texts},
}
"""Which keys each table may have. `agents` has tables of its own: what is in them, the agents know."""


def load_settings(path: Path | None) -> Settings:
    """Read a file; without one, the defaults. Raises `SettingsError`."""
    settings = Settings()
    for table, content in ({} if path is None else _read(path)).items():
        if table == "rules":
            settings.rules = _rules(path, content)
            continue
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: {table} must be a table: [{table}]")
        if table == "agents":
            settings.agents = _agents(path, cast("dict[str, Any]", content))
        elif table in _TABLES:
            _take_table(path, table, cast("dict[str, Any]", content), settings)
        else:
            raise SettingsError(f"{path}: unknown table [{table}]; known: {', '.join([*_TABLES, 'agents', 'rules'])}")
    if settings.tls_key is not None and settings.tls_certificate is None:
        raise SettingsError(f"{path}: host.tls_key needs host.tls_certificate beside it")
    return settings


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 text") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from error


def _take_table(path: Path | None, table: str, content: dict[str, Any], settings: Settings) -> None:
    known = _TABLES[table]
    for key, value in content.items():
        if key not in known:
            raise SettingsError(f"{path}: unknown key {table}.{key}; known: {', '.join(known)}")
        try:
            setattr(settings, key, known[key](value))
        except ValueError as error:
            raise SettingsError(f"{path}: {table}.{key} must be {error}, not {value!r}") from error


def _rules(path: Path | None, content: Any) -> list[Rule]:
    tables = cast("list[Any]", content) if isinstance(content, list) else [None]
    if not all(isinstance(table, dict) for table in tables):
        raise SettingsError(f"{path}: rules must be tables: [[rules]]")
    found: list[Rule] = []
    for number, table in enumerate(cast("list[dict[str, Any]]", tables), 1):
        words = dict(table)
        if isinstance(words.get("workspace"), str) and words["workspace"]:
            words["workspace"] = Path(words["workspace"]).expanduser().absolute().as_uri()
        try:
            found.append(Rule.made(words, id=f"configured-{number}"))
        except ValueError as error:
            raise SettingsError(f"{path}: rule {number} of [[rules]]: {error}") from error
    return found


def _agents(path: Path | None, tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for name, content in tables.items():
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: agents.{name} must be a table: [agents.{name}]")
    return tables


__all__ = ["Settings", "SettingsError", "default_data_dir", "load_settings"]
