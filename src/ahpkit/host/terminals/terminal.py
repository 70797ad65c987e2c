"""Runs one terminal: its process, the channel that shows the output, and the interface for an agent."""

from __future__ import annotations

import asyncio
import codecs
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ahpkit.host.feature import Services
from ahpkit.host.terminals.output import MAX_KEPT, OutputReader, Tail, forget_oldest, weight
from ahpkit.platform.pty import ExitStatus, PtyProcess
from ahpkit.protocol.terminal import TerminalAction, TerminalState, terminal_data, terminal_exited

_log = logging.getLogger(__name__)

_LAST_WORDS = 1.0
"""Seconds for showing the last output of a process that was ended. Only a full disk makes this take longer."""


class Terminal:
    """Shows a process until it ends. Its channel is open before and after."""

    def __init__(
        self,
        services: Services,
        uri: str,
        process: PtyProcess,
        *,
        title_is_given: bool,
        command_line: str | None,
        tail: Tail | None,
    ) -> None:
        self.uri = uri
        self.command_line = command_line
        """The command that an agent asked for; None for a shell that a client opened."""
        self.started_at = services.now()
        self.process = process
        self.exit_status: ExitStatus | None = None
        """How the process ended; set when all of its output was shown."""
        self.title_is_given = title_is_given
        """Whether a person or an agent gave the title. Then titles of the process are ignored."""
        self._services = services
        self._tail = tail
        self._output = OutputReader()
        self._kept = 0
        self._over = asyncio.Event()
        self._showing = services.spawn(self._show(), name=f"show {uri}")

    async def wait_over(self) -> ExitStatus:
        """Wait until the process has ended and everything it printed was shown."""
        await self._over.wait()
        assert self.exit_status is not None
        return self.exit_status

    async def end(self) -> None:
        """End the process and all processes that it started. May be called again."""
        await self.process.kill()
        await asyncio.wait([self._showing], timeout=_LAST_WORDS)
        self._showing.cancel()
        await asyncio.wait([self._showing])

    def cleared(self) -> None:
        """The content was cleared, by a client or by the host."""
        self._kept = 0

    @property
    def state(self) -> TerminalState:
        state = self._services.terminal(self.uri)
        assert state is not None
        return state

    async def _show(self) -> None:
        try:
            await self._show_output()
        except Exception:  # The process still has to be ended.
            _log.exception("the terminal %s cannot be shown any more", self.uri)
        finally:
            await self.process.aclose()
            self._ended(await self.process.wait())

    async def _show_output(self) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        while data := await self.process.read():
            self._apply(self._output.feed(decode(data), now=self._services.now()))
            await self._services.room(self.uri)
        rest = self._output.feed(decode(b"", final=True), now=self._services.now())
        self._apply([*rest, *self._output.finish(now=self._services.now())])

    def _apply(self, actions: Iterable[TerminalAction]) -> None:
        for action in filter(self._is_news, actions):
            self._dispatch(action)
            if self._tail is not None and action["type"] == "terminal/data":
                self._tail.add(action["data"])
        if self._kept > MAX_KEPT:
            for action in forget_oldest(self.state["content"]):
                self._dispatch(action)

    def _is_news(self, action: TerminalAction) -> bool:
        if action["type"] == "terminal/titleChanged":
            return not self.title_is_given and action["title"] != self.state["title"]
        return action["type"] != "terminal/cwdChanged" or action["cwd"] != self.state.get("cwd")

    def _dispatch(self, action: TerminalAction) -> None:
        self._kept += weight(action)
        self._services.dispatch(self.uri, action)

    def _ended(self, status: ExitStatus) -> None:
        self.exit_status = status
        if status.signal is not None:  # Shown as text, because the state has no member for signals.
            self._dispatch(terminal_data(data=f"\r\n[ended by {status.signal}]\r\n"))
        self._services.dispatch(self.uri, terminal_exited(exit_code=status.code))
        self._over.set()


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """The output of a command, without escape sequences, and how it ended (None: it runs)."""

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


__all__ = ["AgentOutput", "AgentTerminal", "Terminal"]
