"""Gives an ACP agent files and terminals of the host; clients can watch these terminals.

Without access an agent's requests are refused as unknown methods. Agents expect this from a client that did not offer
files or terminals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ahpkit.host.agent import Chat
from ahpkit.host.resources.agent_files import Approval
from ahpkit.host.terminals.feature import Terminals
from ahpkit.host.terminals.terminal import AgentTerminal
from ahpkit.platform.pty import ExitStatus
from ahpkit.protocol.terminal import TerminalSessionClaim


class FileAccess(Protocol):
    """Text files as one chat's agent sees them. A refusal is raised as an `RpcError`."""

    async def read(self, path: Path) -> str: ...

    async def needs_approval(self, path: Path) -> Approval | None:
        """Describes the file if a person must approve that it is written; None if no approval is needed."""
        ...

    async def write(self, path: Path, content: str, *, approved: Approval | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """What a terminal has shown, and how its command ended, if it has ended."""

    output: str
    truncated: bool = False
    exit_code: int | None = None
    signal: str | None = None
    exited: bool = False


class TerminalAccess(Protocol):
    """Terminals that run for one chat's agent. A refusal is raised as an `RpcError`."""

    async def create(
        self,
        command: str,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        output_limit: int | None,
        turn_id: str | None = None,
    ) -> str:
        """Run a command, on behalf of the turn if one runs. Returns the terminal's id."""
        ...

    async def output(self, id: str) -> TerminalOutput: ...

    async def wait(self, id: str) -> TerminalOutput:
        """Wait until the command has ended."""
        ...

    async def kill(self, id: str) -> None: ...

    async def release(self, id: str) -> None:
        """Release a terminal: its command is ended if it still runs."""
        ...

    def uri(self, id: str) -> str | None:
        """The terminal channel that clients may subscribe to."""
        ...


class HostTerminals:
    """Implements `TerminalAccess` for one chat. A terminal's id is its URI."""

    def __init__(self, terminals: Terminals, chat: Chat) -> None:
        self._terminals = terminals
        self._chat = chat
        self._opened: dict[str, AgentTerminal] = {}

    async def create(
        self,
        command: str,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        output_limit: int | None,
        turn_id: str | None = None,
    ) -> str:
        session, chat = self._chat.session_uri, self._chat.uri
        claim: TerminalSessionClaim = {"kind": "session", "session": session, "chat": chat}
        if turn_id is not None:
            claim["turnId"] = turn_id
        terminal = await self._terminals.open_terminal(
            session, command, args, env=env, cwd=cwd, output_limit=output_limit, claim=claim
        )
        self._opened[terminal.uri] = terminal
        return terminal.uri

    async def output(self, id: str) -> TerminalOutput:
        return self._shown(id, self._opened[id].output().exit)

    async def wait(self, id: str) -> TerminalOutput:
        return self._shown(id, await self._opened[id].wait_exit())

    async def kill(self, id: str) -> None:
        await self._opened[id].kill()

    async def release(self, id: str) -> None:
        await self._opened[id].release()

    def uri(self, id: str) -> str | None:
        """The channel of a terminal, also after its release, because the tool call that used the terminal still shows
        it."""
        return id if id in self._opened else None

    def _shown(self, id: str, ended: ExitStatus | None) -> TerminalOutput:
        shown = self._opened[id].output()
        if ended is None:
            return TerminalOutput(shown.text, truncated=shown.truncated)
        return TerminalOutput(
            shown.text, truncated=shown.truncated, exit_code=ended.code, signal=ended.signal, exited=True
        )


__all__ = ["Approval", "FileAccess", "HostTerminals", "TerminalAccess", "TerminalOutput"]
