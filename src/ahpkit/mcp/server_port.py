"""What a running MCP server needs: its limits, its session (`ServerPort`), and who makes a call (`Caller`, `Call`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ahpkit.mcp.connect import MAX_MESSAGE
from ahpkit.mcp.errors import McpError
from ahpkit.protocol.common.state import JsonObject

if TYPE_CHECKING:
    from ahpkit.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how much."""

    start: float = 60.0
    """Seconds from the start to the first list of tools."""
    call: float = 600.0
    """Seconds for a tool without a word of progress."""
    delays: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0)
    """Seconds before each further try. After the last one it is an error, and stays one until somebody acts."""
    steady: float = 60.0
    """Seconds after which a crash is a first one again."""
    listed: int = 10_000
    """Tools, prompts or resources of one server. More are not listed."""
    pages: int = 200
    asks: int = 10
    """Questions and model requests during one call."""
    relist: float = 0.2
    """Seconds between two looks at lists that change without end."""
    message: int = MAX_MESSAGE


class Caller(Protocol):
    """Who runs a tool: hears of progress, and answers what the server asks meanwhile."""

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def auth_required(self, state: JsonObject) -> None:
        """The call waits for a token; `state` says for what."""
        ...

    def auth_resolved(self) -> None: ...

    async def elicit(self, params: JsonObject) -> JsonObject:
        """An `ElicitResult` for `elicitation/create`."""
        ...

    async def sample(self, params: JsonObject) -> JsonObject:
        """A `CreateMessageResult`; raise `McpError` to refuse."""
        ...


class ServerPort(Protocol):
    """What a server needs of its session."""

    def changed(self, server: McpServer) -> None:
        """Called when its state or one of its lists changed."""
        ...

    def notified(self, server: McpServer, method: str, params: JsonObject) -> None: ...

    def roots(self) -> Sequence[str]:
        """The session's working directories, as URIs."""
        ...

    def token(self, resource: str) -> str | None: ...

    def token_refused(self, resource: str, token: str) -> None: ...

    @property
    def samples(self) -> bool:
        """Whether callers of this session answer sampling requests."""
        ...


class Call:
    """One call in flight: who made it, and how much longer it may take."""

    def __init__(self, caller: Caller, clock: asyncio.Timeout, limits: Limits) -> None:
        self.caller = caller
        self.asked = 0
        self.over = False
        self._clock = clock
        self._limits = limits

    def alive(self) -> None:
        """It said something: its time begins again."""
        if not self.over and not self._clock.expired():
            self._clock.reschedule(asyncio.get_running_loop().time() + self._limits.call)

    async def ask(self, question: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """Put a question of the server. Its clock stands still while somebody answers."""
        self.asked += 1
        if self.asked > self._limits.asks:
            raise McpError(f"a server may ask {self._limits.asks} times during one call, and has done so")
        self._clock.reschedule(None)
        try:
            return await question()
        finally:
            self.alive()


__all__ = ["Call", "Caller", "Limits", "ServerPort"]
