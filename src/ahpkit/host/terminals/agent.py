"""The terminal of an agent's command, as the agent uses it: output, exit, kill and release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ahpkit.host.terminals.scrollback import Tail
from ahpkit.host.terminals.terminal import Terminal
from ahpkit.platform.pty import ExitStatus


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """What a command has printed, without escape sequences, and how it ended if it did."""

    text: str
    truncated: bool
    """Whether earlier output is missing."""
    exit: ExitStatus | None


class AgentTerminal:
    """A command that an agent runs. After `release` people may still look at its output for a while."""

    def __init__(self, terminal: Terminal, tail: Tail, *, on_released: Callable[[], None]) -> None:
        self._terminal = terminal
        self._tail = tail
        self._on_released = on_released

    @property
    def uri(self) -> str:
        """The channel that clients may subscribe to."""
        return self._terminal.uri

    def output(self) -> AgentOutput:
        text, truncated = self._tail.read()
        return AgentOutput(text, truncated, self._terminal.exit_status)

    async def wait_exit(self) -> ExitStatus:
        """Wait until the command has ended; `output` is complete then."""
        return await self._terminal.wait_over()

    async def kill(self) -> None:
        """End the command; its output stays."""
        await self._terminal.end()

    async def release(self) -> None:
        """The agent no longer needs the terminal: end the command if it runs. May be called again."""
        await self._terminal.end()
        self._tail.clear()
        self._on_released()


__all__ = ["AgentOutput", "AgentTerminal"]
