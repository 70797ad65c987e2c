"""Offers terminals to clients and agents, and decides who may open, type into and close which one.

A terminal is a shell of the user who runs the host. The directory it starts in is checked like any resource, to prevent
mistakes; it is not a sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.limits import MAX_TITLE
from ahpkit.host.registration import Command, Registration, TerminalApplied
from ahpkit.host.states import NO_SESSION
from ahpkit.host.terminals.chat_terminals import ChatTerminals, TerminalRecords
from ahpkit.host.terminals.output import Tail
from ahpkit.host.terminals.pool import (
    MAX_RELEASED,
    MAX_TERMINALS,
    Launch,
    Pool,
    agent_command,
    agent_environment,
    environment,
    line_of,
    login_shell,
    title_of,
)
from ahpkit.host.terminals.terminal import AgentTerminal, Terminal
from ahpkit.protocol.channels import channel_of
from ahpkit.protocol.errors import InvalidParams, NotFound, PermissionDenied, SessionNotFound
from ahpkit.protocol.terminal import (
    CreateTerminalParams,
    DisposeTerminalParams,
    TerminalAction,
    TerminalClaim,
    TerminalSessionClaim,
    TerminalState,
)

MAX_SIZE = 10_000
"""Columns and rows. Programs reserve memory for the whole screen."""

MAX_INPUT = 1024 * 1024
"""Characters that may wait for a process that does not read: a large paste."""

AGENT_OUTPUT = 1024 * 1024
"""Bytes kept for an agent, which may ask for less."""


class Terminals(Feature):
    """Agents may always open terminals, clients only if `enabled`. A terminal without a directory starts in
    `directory`."""

    name = "terminals"

    def __init__(
        self,
        reading: Callable[[str, str], Awaitable[Path]],
        *,
        directory: Path,
        enabled: bool = False,
        environ: Mapping[str, str] = os.environ,
        max_terminals: int = MAX_TERMINALS,
        max_released: int = MAX_RELEASED,
        max_input: int = MAX_INPUT,
    ) -> None:
        """`reading` gives the real path of a directory that a client or a session may read."""
        self._reading = reading
        self._directory = directory
        self._enabled = enabled
        self._environ = environ
        self._max_terminals = max_terminals
        self._max_released = max_released
        self._max_input = max_input

    def register(self, host: Registration, services: Services) -> None:
        self.services = services
        records = TerminalRecords(services.values)
        limits = {"max_terminals": self._max_terminals, "max_released": self._max_released}
        self._pool = Pool(services, is_shown=records.is_shown, **limits)
        in_chats = ChatTerminals(services, records, lambda: self._pool)
        in_chats.register(host)
        host.commands.add(Command("createTerminal", self._create, ordered=True, changes=True))
        host.commands.add(Command("disposeTerminal", self._dispose, changes=True))
        host.actions.refuse(self._refuse, "terminal/")
        host.actions.listen(self._on_applied, "terminal/")
        host.sessions.disposed.add(self._session_disposed)
        host.sessions.chat_disposed.add(self._chat_disposed)
        host.recover.add(in_chats.recover)
        host.recover.add(self._pool.recover)

    async def aclose(self) -> None:
        await self._pool.aclose()

    # -- for clients ---------------------------------------------------------------------------------------------

    async def _create(self, client: ConnectedClient, params: CreateTerminalParams) -> None:
        self._check_enabled()
        uri, claim = params["channel"], params["claim"]
        if (channel := channel_of(uri)) is None or channel.name != "terminal":
            raise InvalidParams(f"channel: {uri[:200]!r} is not a terminal URI; use ahp-terminal:/<id>")
        if (reason := self._refuse_claim(claim)) is not None:
            raise InvalidParams(f"claim: {reason}")
        cols, rows = int(params.get("cols", 80)), int(params.get("rows", 24))  # 80.0 is an integer in JSON
        if not _fits(cols, rows):
            raise InvalidParams(f"cols, rows: must be between 1 and {MAX_SIZE}")
        if len(params.get("name", "")) > MAX_TITLE:
            raise InvalidParams(f"name: a terminal's name has at most {MAX_TITLE} characters")
        directory = await self._start_directory(client, params)
        await self._pool.open(uri, self._shell(params, directory, cols=cols, rows=rows))

    def _shell(self, params: CreateTerminalParams, directory: Path, *, cols: int, rows: int) -> Launch:
        env = environment(self._environ)
        command = login_shell(env)
        name = params.get("name", "")
        return Launch(
            title=name or Path(command[0]).name,
            title_is_given=bool(name),
            claim=params["claim"],
            command=command,
            env=env,
            cwd=directory,
            cols=cols,
            rows=rows,
        )

    async def _start_directory(self, client: ConnectedClient, params: CreateTerminalParams) -> Path:
        claim, uri = params["claim"], params.get("cwd")
        if uri is None and claim["kind"] == "session":
            directories = (self.services.session(claim["session"]) or NO_SESSION).get("workingDirectories", ())
            uri = directories[0] if directories else None
        return self._directory if uri is None else await self._reading(client.client_id, uri)

    async def _dispose(self, client: ConnectedClient, params: DisposeTerminalParams) -> None:
        self._check_enabled()
        terminal = self._pool.get(params["channel"])
        if terminal is None:
            raise NotFound(f"there is no terminal {params['channel']}")
        if (reason := self._refuse_disposal(terminal, client.client_id)) is not None:
            raise PermissionDenied(reason)
        await self._pool.dispose(terminal)

    def _check_enabled(self) -> None:
        if not self._enabled:
            raise PermissionDenied(
                "this host does not let clients open terminals; start it with --terminals to allow it"
            )

    def _refuse_disposal(self, terminal: Terminal, client_id: str) -> str | None:
        claim = terminal.state["claim"]
        if terminal.exit_status is not None or claim.get("clientId") == client_id:
            return None
        if claim["kind"] == "session":
            return "this terminal is held by a session; cancel its turn, or wait until the command has ended"
        holder = self.services.client(claim["clientId"])
        return None if holder is None else "this terminal is held by another client"

    # -- for agents ----------------------------------------------------------------------------------------------

    async def open_terminal(
        self,
        session_uri: str,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str],
        cwd: Path,
        output_limit: int | None = None,
        claim: TerminalSessionClaim | None = None,
    ) -> AgentTerminal:
        """Run a command for a session's agent. `output_limit` is in bytes; `claim` may name the turn and tool call."""
        if session_uri not in self.services.session_uris():
            raise SessionNotFound(f"there is no session {session_uri}")
        if not cwd.is_absolute():
            raise InvalidParams(f"cwd: {cwd} is not absolute")
        directory = await self._reading(session_uri, cwd.as_uri())
        environment = agent_environment(self._environ, env)
        tail = Tail(AGENT_OUTPUT if output_limit is None else max(0, min(output_limit, AGENT_OUTPUT)))
        launch = Launch(
            title=title_of(command, args),
            title_is_given=True,
            command_line=line_of(command, args),
            claim={**self._claim(session_uri), **claim} if claim else self._claim(session_uri),
            command=agent_command(command, args, env=environment, cwd=directory),
            env=environment,
            cwd=directory,
            tail=tail,
        )
        terminal = await self._pool.open(f"ahp-terminal:/{self.services.new_id()}", launch)
        return AgentTerminal(terminal, tail, on_released=lambda: self._pool.release(terminal))

    def _claim(self, session_uri: str) -> TerminalSessionClaim:
        chat = (self.services.session(session_uri) or NO_SESSION).get("defaultChat", "")
        return {"kind": "session", "session": session_uri, "chat": chat}

    # -- actions on the channels ---------------------------------------------------------------------------------

    def _refuse(self, client_id: str, channel: str, action: TerminalAction, state: TerminalState) -> str | None:
        terminal = self._pool.get(channel)
        if terminal is None:
            return None
        match action["type"]:
            case "terminal/input":
                return self._refuse_input(terminal, action["data"])
            case "terminal/resized" if not _fits(action["cols"], action["rows"]):
                return f"a terminal has at most {MAX_SIZE} columns and rows"
            case "terminal/claimed":
                return self._refuse_claim(action["claim"])
            case _:
                return None

    def _refuse_input(self, terminal: Terminal, data: str) -> str | None:
        if terminal.exit_status is not None:
            return "this terminal's process has exited"
        if terminal.process.unread_input + len(data) > self._max_input:
            return "the process does not read its input; too much of it is waiting"
        return None

    def _refuse_claim(self, claim: TerminalClaim) -> str | None:
        """Why a terminal cannot be handed on: the new holder must exist."""
        if (kind := claim["kind"]) not in ("client", "session"):  # A kind of later versions.
            return f"a terminal is held by a client or a session, not by a {kind!r}"
        match claim["kind"]:
            case "client" if self.services.client(claim["clientId"]) is None:
                return f"client {claim['clientId']!r} is not connected"
            case "session" if claim["session"] not in self.services.session_uris():
                return f"there is no session {claim['session']}"
            case "session" if self.services.session_of(claim["chat"]) != claim["session"]:
                return f"the session has no chat {claim['chat']}"
            case _:
                return None

    def _on_applied(self, applied: TerminalApplied) -> None:
        terminal = self._pool.get(applied.channel)
        if terminal is None:
            return
        action = applied.action
        match action["type"]:
            case "terminal/input":
                terminal.process.write(action["data"].encode(errors="replace"))
            case "terminal/resized":
                terminal.process.resize(int(action["cols"]), int(action["rows"]))
            case "terminal/cleared":
                terminal.cleared()
            case "terminal/titleChanged" if applied.client_id is None:
                self._pool.publish_soon()
            case "terminal/titleChanged":
                terminal.title_is_given = True
                self._pool.publish()
            case "terminal/claimed" | "terminal/exited":
                self._pool.publish()
            case _:
                pass

    def _session_disposed(self, session_uri: str) -> None:
        self._dispose_of("session", session_uri)

    def _chat_disposed(self, chat_uri: str) -> None:
        self._dispose_of("chat", chat_uri)

    def _dispose_of(self, holder: str, uri: str) -> None:
        for terminal in self._pool:
            if terminal.state["claim"].get(holder) != uri:
                continue
            if terminal.exit_status is not None:
                self._pool.forget(terminal)
            else:
                self.services.spawn(self._pool.dispose(terminal), name=f"dispose {terminal.uri}")


def _fits(cols: int, rows: int) -> bool:
    return 1 <= cols <= MAX_SIZE and 1 <= rows <= MAX_SIZE


__all__ = ["Terminals"]
