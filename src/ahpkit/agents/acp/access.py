"""Interfaces of what an ACP agent may use of the host: files and terminals.

Without access an agent's requests are refused as unknown methods, which is what agents expect of a client that did not
offer them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ahpkit.host.resources.agent_files import Approval


class FileAccess(Protocol):
    """Text files as one chat's agent sees them. Refuse with an `RpcError`."""

    async def read(self, path: Path) -> str: ...

    async def needs_approval(self, path: Path) -> Approval | None:
        """What kind of file needs a person's approval to be written; None if none is needed."""
        ...

    async def write(self, path: Path, content: str, *, approved: Approval | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """What a terminal has shown, and how its command ended if it did."""

    output: str
    truncated: bool = False
    exit_code: int | None = None
    signal: str | None = None
    exited: bool = False


class TerminalAccess(Protocol):
    """Terminals run for one chat's agent. Refuse with an `RpcError`."""

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
        """Run a command, for a turn if one runs; returns the terminal's id."""
        ...

    async def output(self, id: str) -> TerminalOutput: ...

    async def wait(self, id: str) -> TerminalOutput:
        """Wait until the command has ended."""
        ...

    async def kill(self, id: str) -> None: ...

    async def release(self, id: str) -> None:
        """The agent needs it no more: end the command if it runs."""
        ...

    def uri(self, id: str) -> str | None:
        """The terminal channel that clients may subscribe to."""
        ...


__all__ = ["Approval", "FileAccess", "TerminalAccess", "TerminalOutput"]
