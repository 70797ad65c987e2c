"""Runs an ACP agent's commands in terminals of the host, which clients can watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ahpkit.agents.acp.access import TerminalOutput
from ahpkit.host.agent import Chat
from ahpkit.host.terminals.agent import AgentTerminal
from ahpkit.host.terminals.feature import Terminals
from ahpkit.platform.pty import ExitStatus
from ahpkit.protocol.terminal import TerminalSessionClaim


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
        """Also after its release: the tool call that used it still shows it."""
        return id if id in self._opened else None

    def _shown(self, id: str, ended: ExitStatus | None) -> TerminalOutput:
        shown = self._opened[id].output()
        if ended is None:
            return TerminalOutput(shown.text, truncated=shown.truncated)
        return TerminalOutput(
            shown.text, truncated=shown.truncated, exit_code=ended.code, signal=ended.signal, exited=True
        )


__all__ = ["HostTerminals"]
