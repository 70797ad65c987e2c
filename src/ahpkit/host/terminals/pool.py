"""Starts all terminals of a host, lists them on the root channel, and disposes of them. Chooses their programs."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ahpkit.host.feature import Services
from ahpkit.host.terminals.output import Tail
from ahpkit.host.terminals.terminal import Terminal
from ahpkit.platform.pty import PtyProcess
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import AlreadyExists, Conflict, InternalError, InvalidParams
from ahpkit.protocol.root import root_terminals_changed
from ahpkit.protocol.terminal import TerminalClaim, TerminalInfo, TerminalState

_PASSED_ON = re.compile(
    r"HOME|LOGNAME|USER|PATH|SHELL|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|SSL_CERT_(FILE|DIR)|(?i:\w+_proxy)"
)
"""Variables that every program needs. Only these are passed on, because the host's environment may hold keys of agents.
A login shell reads other variables from the person's own files."""

_MAX_TITLE = 80
"""Characters of a command that are used as a title."""


def environment(host: Mapping[str, str]) -> dict[str, str]:
    """The environment of a terminal, made from the host's."""
    passed = {key: value for key, value in host.items() if _PASSED_ON.fullmatch(key)}
    if not any(key in passed for key in ("LC_ALL", "LC_CTYPE", "LANG")):
        passed["LANG"] = "C.UTF-8"
    return passed | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "ahpkit"}


def agent_environment(host: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent's command: no pager is started."""
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


MAX_TERMINALS = 64
"""Terminals of a host: more than anybody has open, but few enough to send the whole list with each change."""

MAX_RELEASED = 16
"""Ended terminals that are kept for people to look at; the oldest is removed first."""

_TITLE_DELAY = 0.2
"""Seconds: programs animate their titles; the list of terminals need not follow each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start, and how it is shown."""

    title: str
    title_is_given: bool
    """Whether a person or an agent gave the title. Then titles of the process are ignored."""
    command_line: str | None = None
    """The command that an agent asked for; None for a shell that a client opened."""
    claim: TerminalClaim
    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    cols: int = 80
    rows: int = 24
    tail: Tail | None = None

    def state(self) -> TerminalState:
        """The channel's first state."""
        return {
            "title": self.title,
            "cwd": self.cwd.as_uri(),
            "cols": self.cols,
            "rows": self.rows,
            "content": [],
            "lifecycle": {"status": "running"},
            "claim": self.claim,
        }


class Pool:
    """All terminals of a host, by URI."""

    def __init__(
        self,
        services: Services,
        *,
        is_shown: Callable[[str], bool] = lambda uri: False,
        max_terminals: int = MAX_TERMINALS,
        max_released: int = MAX_RELEASED,
    ) -> None:
        """`is_shown(uri)`: whether people must still be able to read a terminal after it was removed here."""
        self._services = services
        self._is_shown = is_shown
        self._max_terminals = max_terminals
        self._max_released = max_released
        self._terminals: dict[str, Terminal] = {}
        self._starting = 0
        self._released: list[Terminal] = []
        self._disposals: dict[str, asyncio.Task[None]] = {}
        self._publishing: asyncio.TimerHandle | None = None

    def recover(self) -> None:
        """The terminals of an earlier run are gone: clear the list, and close their channels unless a tool call shows
        them."""
        for uri in self._services.channels("terminal"):
            if not self._is_shown(uri):
                self._services.close_channel(uri)
        self.publish()

    def __iter__(self) -> Iterator[Terminal]:
        return iter(tuple(self._terminals.values()))

    def get(self, uri: str) -> Terminal | None:
        return self._terminals.get(uri)

    async def open(self, uri: str, launch: Launch) -> Terminal:
        """Start a terminal; its channel can be subscribed to at once."""
        if self._services.state(uri) is not None:
            raise AlreadyExists(f"there is a terminal {uri} already")
        if len(self._terminals) + self._starting >= self._max_terminals:
            raise Conflict(f"this host has {self._max_terminals} terminals, which is the limit; dispose of one first")
        self._services.open_channel(uri, launch.state())
        self._starting += 1
        try:
            terminal = await self._start(uri, launch)
        except BaseException as error:
            self._services.close_channel(uri)
            if isinstance(error, OSError | ValueError):  # ValueError: a NUL in a word, or a variable's bad name.
                raise Conflict(f"the terminal cannot be started in {launch.cwd}: {error}") from error
            raise
        finally:
            self._starting -= 1
        self._terminals[uri] = terminal
        self.publish()
        return terminal

    async def _start(self, uri: str, launch: Launch) -> Terminal:
        process = await PtyProcess.start(
            launch.command, env=launch.env, cwd=launch.cwd, cols=launch.cols, rows=launch.rows
        )
        return Terminal(
            self._services,
            uri,
            process,
            title_is_given=launch.title_is_given,
            command_line=launch.command_line,
            tail=launch.tail,
        )

    def release(self, terminal: Terminal) -> None:
        """Nobody needs a terminal any more: keep it until too many ended terminals are kept."""
        if terminal.uri in self._terminals and terminal not in self._released:
            self._released.append(terminal)
            if len(self._released) > self._max_released:
                self.forget(self._released[0])

    async def dispose(self, terminal: Terminal) -> None:
        """End a terminal and close its channel. If the caller is cancelled, this continues. May be called again."""
        disposal = self._disposals.get(terminal.uri)
        if disposal is None:
            disposal = self._services.spawn(self._dispose(terminal), name=f"dispose {terminal.uri}")
            self._disposals[terminal.uri] = disposal
        await asyncio.shield(disposal)

    async def _dispose(self, terminal: Terminal) -> None:
        try:
            await terminal.end()
            self.forget(terminal)
        finally:
            del self._disposals[terminal.uri]

    async def aclose(self) -> None:
        """End all of them."""
        await asyncio.gather(*map(self.dispose, self))
        self._cancel_publishing()

    def forget(self, terminal: Terminal) -> None:
        """The terminal's process is gone: close its channel unless a tool call shows it, and remove it from the
        list."""
        if self._terminals.pop(terminal.uri, None) is None:
            return
        if terminal in self._released:
            self._released.remove(terminal)
        if self._is_shown(terminal.uri):
            self._services.spawn(self._rest(terminal.uri), name=f"rest {terminal.uri}")
        else:
            self._services.close_channel(terminal.uri)
        self.publish()

    async def _rest(self, uri: str) -> None:
        with suppress(InternalError):  # The disk cannot be written: the state stays as it is.
            await self._services.durable()
            await self._services.rest_channel(uri)

    def publish_soon(self) -> None:
        """Like `publish`, for changes that may follow each other quickly."""
        if self._publishing is None:
            self._publishing = asyncio.get_running_loop().call_later(_TITLE_DELAY, self.publish)

    def publish(self) -> None:
        """Update the list on the root channel."""
        self._cancel_publishing()
        listed = [_info(terminal) for terminal in self]
        if listed != self._services.root().get("terminals", []):
            self._services.dispatch(ROOT_URI, root_terminals_changed(terminals=listed))

    def _cancel_publishing(self) -> None:
        if self._publishing is not None:
            self._publishing.cancel()
            self._publishing = None


def _info(terminal: Terminal) -> TerminalInfo:
    state = terminal.state
    return {
        "resource": terminal.uri,
        "title": state["title"],
        "claim": state["claim"],
        "lifecycle": state["lifecycle"],
    }


__all__ = [
    "MAX_RELEASED",
    "MAX_TERMINALS",
    "Launch",
    "Pool",
    "agent_command",
    "agent_environment",
    "environment",
    "line_of",
    "login_shell",
    "title_of",
]
