"""The host's configuration file: TOML, checked, with errors that name the key. Knows no click and starts nothing.

[host]
port = 7110
default_agent = "gemini"

[agents.mine]
command = "my-agent"
args = ["--acp"]

[customizations]
plugins = ["~/plugins/reviews"]
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
    "notify": {"webhook": _hook_url, "command": _texts},
}
"""Which keys each table may have. `agents` has tables of its own: what is in them, the agents know."""


def load_settings(path: Path | None) -> Settings:
    """Read a file; without one, the defaults. Raises `SettingsError`."""
    settings = Settings()
    for table, content in ({} if path is None else _read(path)).items():
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: {table} must be a table: [{table}]")
        if table == "agents":
            settings.agents = _agents(path, cast("dict[str, Any]", content))
        elif table in _TABLES:
            _take_table(path, table, cast("dict[str, Any]", content), settings)
        else:
            raise SettingsError(f"{path}: unknown table [{table}]; known: {', '.join([*_TABLES, 'agents'])}")
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


def _agents(path: Path | None, tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for name, content in tables.items():
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: agents.{name} must be a table: [agents.{name}]")
    return tables


__all__ = ["Settings", "SettingsError", "default_data_dir", "load_settings"]
