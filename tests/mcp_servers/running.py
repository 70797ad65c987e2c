"""Helpers for tests of MCP servers: a port that remembers, a caller that answers, servers that run meanwhile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ahpkit.mcp.calls import Limits
from ahpkit.mcp.connect import ServerConfig
from ahpkit.mcp.errors import McpError
from ahpkit.mcp.server import McpServer
from ahpkit.mcp.tokens import Tokens
from ahpkit.protocol.common.state import JsonObject
from support import template

PROGRAM = str(Path(__file__).parent / "plain_server.py")
SDK_MODULE = "mcp_servers.sdk_server"
QUICK = Limits(start=20.0, call=20.0, delays=(0.01, 0.01), relist=0.01)


def program(*modes: str, **env: str) -> ServerConfig:
    """The plain test server as a declaration."""
    return _declared((sys.executable, PROGRAM), {"TEST_MODES": " ".join(modes), **env})


def of_era(era: str) -> ServerConfig:
    """The server of the official SDK in one of its eras, or the plain one, which has to behave like it."""
    return program() if era == "plain" else _declared(tuple(sdk_command()), {"TEST_MODES": era})


def sdk_command() -> list[str]:
    """Starts the server of the official SDK, which takes more than a second to import."""
    return template.command(SDK_MODULE)


def _declared(command: tuple[str, ...], env: dict[str, str]) -> ServerConfig:
    return ServerConfig(name="test", command=command, env=env, cwd=Path.cwd())


class Port:
    """Remembers what a server tells, and wakes who waits for it."""

    def __init__(self, *, samples: bool = True) -> None:
        self.kinds: list[str] = []
        self.states: list[JsonObject] = []
        self.notifications: list[tuple[str, JsonObject]] = []
        self.tokens = Tokens()
        self.samples = samples
        self._news = asyncio.Event()

    def changed(self, server: McpServer) -> None:
        if not self.states or self.states[-1] != server.state:
            self.states.append(server.state)
            self.kinds.append(server.state["kind"])
        self._news.set()

    def notified(self, server: McpServer, method: str, params: JsonObject) -> None:
        self.notifications.append((method, params))
        self._news.set()

    def roots(self) -> list[str]:
        return ["file:///work"]

    def token(self, resource: str) -> str | None:
        return self.tokens.find("s", resource)

    def token_refused(self, resource: str, token: str) -> None:
        self.tokens.drop(resource, token)

    async def renew_token(self, resource: str) -> bool:
        return await self.tokens.renew("s", resource)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._news.clear()
                await self._news.wait()


class Answers:
    """A caller that says the same each time."""

    def __init__(self, answer: JsonObject | None = None, *, session: str = "ahp-session:/one") -> None:
        self.session = session
        self.answer = answer or {"action": "accept", "content": {"name": "Ann"}}
        self.asked: list[JsonObject] = []
        self.waits: list[JsonObject] = []
        """What it had to wait for a token for; an empty one when it went on."""
        self.heard: list[tuple[float, float | None, str | None]] = []

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))

    def auth_required(self, state: JsonObject) -> None:
        self.waits.append(state)

    def auth_resolved(self) -> None:
        self.waits.append({})

    async def elicit(self, params: JsonObject) -> JsonObject:
        self.asked.append(params)
        return self.answer

    async def sample(self, params: JsonObject) -> JsonObject:
        if self.answer.get("action") == "refuse":
            raise McpError("nobody here answers for a model")
        return {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}


@asynccontextmanager
async def running(
    config: ServerConfig, port: Port, *, limits: Limits = QUICK, wait: bool = True
) -> AsyncGenerator[McpServer, None]:
    """A server that runs inside, and is ready when `wait` says so."""
    server = McpServer("id", config, port, cwd=Path.cwd(), limits=limits)
    task = asyncio.create_task(server.run())
    try:
        if wait:
            await port.until(lambda: server.ready)
        yield server
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def text_of(result: JsonObject) -> str:
    content: list[Any] = result["content"]
    return "".join(part.get("text", "") for part in content)
