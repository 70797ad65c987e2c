"""The settings of one ACP agent, from an option, a table or code. Starts nothing and reads no file."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast, get_args

from ahpkit.agents.acp.questions import Policy
from ahpkit.agents.acp.registry import KNOWN_AGENTS, KnownAgent
from ahpkit.wire.errors import AhpError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_PASSED_ON = re.compile(
    r"HOME|LOGNAME|USER|PATH|SHELL|TERM|COLORTERM|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
)
"""Variables that every program needs to find its files and the network. Other variables are passed on only if they are
named."""


class AcpConfigError(AhpError):
    """An agent's settings cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpAgentConfig:
    """Settings of one agent."""

    name: str
    """The provider name that clients see."""
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are set for the agent."""
    pass_env: tuple[str, ...] = ()
    """Variables of the host's own environment that the agent gets too. `NAME_*` stands for all variables that begin
    with `NAME_`."""
    keys: tuple[str, ...] = ()
    """The variables among them that may hold the agent's key, the usual one first."""
    cwd: Path | None = None
    """The directory in which the process runs; without it, the chat's working directory."""
    title: str = ""
    description: str = ""
    default_model: str | None = None
    permissions: Policy = "ask"
    loads_servers: tuple[str, ...] = ()
    """Files of a workspace whose MCP servers the agent starts itself, so that the host does not start them too."""
    files: bool = False
    """Tell the agent that it may read and write files through the host. Several agents work worse when told so."""
    start_timeout: float = 60.0
    """Seconds to answer `initialize` and to open a session. Some agents install parts of themselves first."""
    cancel_timeout: float = 5.0
    """Seconds to end a cancelled turn before the process is ended."""
    idle_timeout: float = 900.0
    """Seconds without a turn after which the process of a chat is ended, if the agent can take the chat up again."""
    unwatched_timeout: float = 120.0
    """The same for a chat that no client follows, such as a chat of `ahpkit prompt`."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise AcpConfigError(f"{self.name!r} is not an agent name: letters, digits, '.', '_' and '-' only")
        if not self.command:
            raise AcpConfigError(f"agent {self.name}: the command is empty")

    @property
    def display_name(self) -> str:
        return self.title or self.name

    def environment(self, host: Mapping[str, str]) -> dict[str, str]:
        """The agent's whole environment, made from the host's."""
        common = {key: value for key, value in host.items() if _PASSED_ON.fullmatch(key)}
        return common | self.named(host) | dict(self.env)

    def named(self, host: Mapping[str, str]) -> dict[str, str]:
        """The variables of the host's environment that `pass_env` names. They may be keys."""
        return {key: value for key, value in host.items() if any(fnmatchcase(key, name) for name in self.pass_env)}


def parse_agent_option(option: str) -> AcpAgentConfig:
    """`NAME=COMMAND ARGS…`, or the `NAME` of an agent the registry knows."""
    name, given, command = option.partition("=")
    if not given:
        return _known(name)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise AcpConfigError(f"agent {name}: {error} in {command!r}") from error
    if not words:
        raise AcpConfigError(f"agent {name}: the command is empty; write NAME=COMMAND ARGS")
    known = KNOWN_AGENTS.get(name) or _known_command(words[0])
    return AcpAgentConfig(
        name=name,
        command=words[0],
        args=tuple(words[1:]),
        pass_env=known.variables if known else (),
        keys=known.keys if known else (),
        loads_servers=known.loads_servers if known else (),
    )


def _known_command(command: str) -> KnownAgent | None:
    """The known agent that uses this program, even if it is configured under another name."""
    commands = {agent.command: agent for agent in KNOWN_AGENTS.values() if agent.command != "python3"}
    return commands.get(Path(command).name)


def config_from_table(name: str, table: Mapping[str, Any]) -> AcpAgentConfig:
    """The settings in an `[agents.NAME]` table. A name that the registry knows needs no command."""
    for key, value in table.items():
        kind = _TABLE.get(key)
        if kind is None:
            raise AcpConfigError(f"agents.{name}.{key}: unknown key; known: {', '.join(_TABLE)}")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise AcpConfigError(f"agents.{name}.{key}: expected {_spelled(kind)}, got {value!r}")
    known = KNOWN_AGENTS.get(name)
    if known is None and "command" not in table:
        raise AcpConfigError(f"agents.{name}: give a command, or use one of: {', '.join(KNOWN_AGENTS)}")
    return AcpAgentConfig(name=name, **(_of_known(known) | _fields(name, table)))


_TABLE: Mapping[str, type | tuple[type, ...]] = {
    "command": str,
    "args": list,
    "env": dict,
    "pass_env": list,
    "cwd": str,
    "title": str,
    "description": str,
    "default_model": str,
    "permissions": str,
    "loads_servers": list,
    "files": bool,
    "start_timeout": (int, float),
    "cancel_timeout": (int, float),
    "idle_timeout": (int, float),
    "unwatched_timeout": (int, float),
}


def _fields(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(table)
    for key in ("args", "pass_env", "env", "loads_servers"):
        if key in fields:
            fields[key] = _all_strings(f"agents.{name}.{key}", fields[key])
    if "cwd" in fields:
        fields["cwd"] = _directory(f"agents.{name}.cwd", fields["cwd"])
    if "command" in fields:
        fields["command"] = os.path.expanduser(fields["command"])  # Not a Path, which would remove the dot of ./agent.
        fields.setdefault("args", ())
    if fields.get("permissions", "ask") not in get_args(Policy):
        raise AcpConfigError(f"agents.{name}.permissions: expected one of {', '.join(get_args(Policy))}")
    return fields


def _directory(where: str, name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise AcpConfigError(f"{where}: ~NAME is the home of a user of this machine, and {name!r} names none") from None


def _all_strings(where: str, value: list[Any] | dict[str, Any]) -> tuple[str, ...] | dict[str, str]:
    items = list(value.values()) if isinstance(value, dict) else value
    if not all(isinstance(item, str) for item in items):
        raise AcpConfigError(f"{where}: expected strings only")
    return cast("dict[str, str]", value) if isinstance(value, dict) else tuple(items)


def _known(name: str) -> AcpAgentConfig:
    known = KNOWN_AGENTS.get(name)
    if known is None:
        names = ", ".join(KNOWN_AGENTS)
        form = f"{name or 'NAME'}=COMMAND ARGS"
        raise AcpConfigError(f"there is no known agent {name!r}; write {form}, or one of: {names}")
    return AcpAgentConfig(name=name, **_of_known(known))


def places() -> Path:
    """Where agents are installed: `AHPKIT_AGENTS_DIR`, else beside the host's data."""
    from platformdirs import user_data_path

    named = os.environ.get("AHPKIT_AGENTS_DIR")
    return Path(named) if named else user_data_path("ahpkit-agents", appauthor=False)


def program_of(agent: KnownAgent) -> str | None:
    """The program that runs an agent: the one on the PATH, else the one in the agent's own place."""
    own = places() / "bin" / agent.name
    found = shutil.which(agent.command)
    if own.exists() and (found is None or agent.command == "python3"):
        return str(own)
    return found


def _of_known(known: KnownAgent | None) -> dict[str, Any]:
    if known is None:
        return {}
    command = known.command if shutil.which(known.command) else program_of(known) or known.command
    return {
        "command": command,
        "args": known.args,
        "title": known.title,
        "pass_env": known.variables,
        "keys": known.keys,
        "loads_servers": known.loads_servers,
    }


def _spelled(kind: type | tuple[type, ...]) -> str:
    return (
        "a number"
        if isinstance(kind, tuple)
        else {str: "a string", list: "a list", dict: "a table"}.get(kind, "a boolean")
    )


__all__ = ["AcpAgentConfig", "AcpConfigError", "config_from_table", "parse_agent_option", "places", "program_of"]
