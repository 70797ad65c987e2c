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

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ahpkit.protocol.errors import AhpError


class SettingsError(AhpError):
    """The configuration file cannot be used; the text says which key and why."""


@dataclass(slots=True)
class Settings:
    """What a configuration file may say. Options of the command line win over it."""

    host: str = "127.0.0.1"
    port: int = 7110
    data_dir: Path | None = None
    durability: str = "full"
    default_agent: str | None = None
    default_directory: Path | None = None
    client_grace: float = 30.0
    allowed_hosts: list[str] = field(default_factory=list[str])
    allowed_origins: list[str] = field(default_factory=list[str])
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    terminals: bool = False
    plugins: list[Path] = field(default_factory=list[Path])
    remember_toggles: bool = True
    allow_hooks: bool = False
    trusted: list[Path] = field(default_factory=list[Path])
    extensions: list[str] = field(default_factory=list[str])
    agents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


_TABLES: dict[str, dict[str, type]] = {
    "host": {
        "host": str,
        "port": int,
        "data_dir": Path,
        "durability": str,
        "default_agent": str,
        "default_directory": Path,
        "client_grace": float,
        "allowed_hosts": list,
        "allowed_origins": list,
        "tls_certificate": Path,
        "tls_key": Path,
        "terminals": bool,
    },
    "customizations": {"plugins": list, "remember_toggles": bool, "allow_hooks": bool, "trusted": list},
    "canvas": {"extensions": list},
}
"""Which keys each table may have, and what type their values are."""

_ACCEPTED: dict[type, tuple[type, ...]] = {Path: (str,), float: (float, int)}

_PATH_LISTS = frozenset({"plugins", "trusted"})


def load_settings(path: Path | None) -> Settings:
    """Read a file; without one, the defaults."""
    settings = Settings()
    if path is None:
        return settings
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from error
    for table, fields in content.items():
        if not isinstance(fields, dict):
            raise SettingsError(f"{path}: {table} must be a table: [{table}]")
        if table == "agents":
            settings.agents = _agents(path, content[table])
        else:
            _read_table(path, table, content[table], settings)
    return settings


def _read_table(path: Path, table: str, fields: dict[str, Any], settings: Settings) -> None:
    known = _TABLES.get(table)
    if known is None:
        raise SettingsError(f"{path}: unknown table [{table}]; known: {', '.join([*_TABLES, 'agents'])}")
    for key, value in fields.items():
        if key not in known:
            raise SettingsError(f"{path}: unknown key {table}.{key}; known: {', '.join(known)}")
        setattr(settings, key, _convert(path, f"{table}.{key}", key, value, known[key]))


def _convert(path: Path, name: str, key: str, value: Any, kind: type) -> Any:
    accepted = _ACCEPTED.get(kind, (kind,))
    if type(value) not in accepted:
        raise SettingsError(f"{path}: {name} must be a {accepted[0].__name__}, not {value!r}")
    if kind is Path:
        return Path(value).expanduser()
    if kind is list and not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{path}: {name} must be a list of strings")
    return [Path(item).expanduser() for item in value] if key in _PATH_LISTS else value


def _agents(path: Path, tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for name, fields in tables.items():
        if not isinstance(fields, dict):
            raise SettingsError(f"{path}: agents.{name} must be a table")
    return tables


__all__ = ["Settings", "SettingsError", "load_settings"]
