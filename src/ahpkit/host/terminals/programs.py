"""Chooses the program of a terminal and its environment: the login shell, or an agent's command."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ahpkit.protocol.errors import InvalidParams

_PASSED_ON = re.compile(
    r"HOME|LOGNAME|USER|PATH|SHELL|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|SSL_CERT_(FILE|DIR)|(?i:\w+_proxy)"
)
"""What every program needs. The host's environment may hold keys of agents, so nothing else is passed on; a login shell
reads the rest from the person's own files."""

_MAX_TITLE = 80
"""Characters of a command that are used as a title."""


def environment(host: Mapping[str, str]) -> dict[str, str]:
    """The environment of a terminal, made from the host's."""
    passed = {key: value for key, value in host.items() if _PASSED_ON.fullmatch(key)}
    if not any(key in passed for key in ("LC_ALL", "LC_CTYPE", "LANG")):
        passed["LANG"] = "C.UTF-8"
    return passed | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "ahpkit"}


def agent_environment(host: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The same for a command of an agent, without a pager."""
    return environment(host) | {"PAGER": "cat", "GIT_PAGER": "cat"} | dict(given)


def login_shell(env: Mapping[str, str]) -> list[str]:
    """The person's shell; it must be an absolute path, as in /etc/shells."""
    shell = env.get("SHELL", "")
    return [shell if shell.startswith("/") and shutil.which(shell) else "/bin/sh", "-l"]


def agent_command(command: str, args: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> list[str]:
    """The words to run. A command without arguments that is not a program's name is run as a line of the shell: agents
    send both forms."""
    found = shutil.which(str(cwd / command) if "/" in command else command, path=env.get("PATH"))
    if found is not None:
        return [str(Path(found).absolute()), *args]
    if args:
        raise InvalidParams(f"command: there is no program {command!r}")
    return ["/bin/sh", "-c", command]


def line_of(command: str, args: Sequence[str]) -> str:
    """A command as somebody would type it."""
    return " ".join([command, *map(shlex.quote, args)])


def title_of(command: str, args: Sequence[str]) -> str:
    """A command as a title."""
    line = line_of(command, args).split("\n", 1)[0]
    return line if len(line) <= _MAX_TITLE else line[: _MAX_TITLE - 1] + "…"


__all__ = ["agent_command", "agent_environment", "environment", "line_of", "login_shell", "title_of"]
