"""The loopback socket where agents reach their gateway, with a secret for each session.

    async with GatewaySocket() as server:
        with server.admit(gateway) as pass_:       # a command and its environment for the agent
            ...

A connection that does not begin with a known secret is closed without an answer. Leaving ends every connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ahpkit.mcp import relay
from ahpkit.transports.stdio import LineTransport

if TYPE_CHECKING:
    from ahpkit.mcp.gateway import Gateway

_log = logging.getLogger(__name__)

_LOOPBACK = "127.0.0.1"
_HELLO_PATIENCE = 10.0
_MAX_SECRET = 200
_MAX_MESSAGE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pass:
    """The command with which an agent connects to the gateway. Only `env` holds the secret."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str]

    def __repr__(self) -> str:
        return f"Pass({self.command!r}, {self.args!r}, env=…)"


class GatewaySocket:
    """One listening socket for all sessions of a host. It listens from the first `admit` on."""

    def __init__(self) -> None:
        self._gateways: dict[str, Gateway] = {}
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._server: asyncio.Server | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, _LOOPBACK, 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._end(list(self._tasks))
        await self._server.wait_closed()

    @contextlib.contextmanager
    def admit(self, gateway: Gateway) -> Generator[Pass]:
        """Let an agent connect while this context is entered."""
        secret = secrets.token_urlsafe(32)
        key = key_of(secret)
        self._gateways[key] = gateway
        try:
            args = ("-I", "-S", str(Path(relay.__file__)), _LOOPBACK, str(self._port))
            yield Pass(sys.executable, args, {relay.SECRET: secret})
        finally:
            del self._gateways[key]
            for task in [task for task, known in self._tasks.items() if known == key]:
                task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer), name="an agent's way to the host")
        self._tasks[task] = ""
        task.add_done_callback(lambda task: self._tasks.pop(task, None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from ahpkit.mcp.connect import LineStream

        try:
            key = await _hello(reader)
            gateway = self._gateways.get(key)
            task = asyncio.current_task()
            if gateway is None or task is None:
                return
            self._tasks[task] = key
            transport = LineTransport(reader, writer, address="agent", max_bytes=_MAX_MESSAGE)
            lines = LineStream(transport)
            await gateway.serve(lines, lines)
        except Exception:  # The connections of other agents go on.
            _log.exception("an agent's connection to the host failed")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _hello(reader: asyncio.StreamReader) -> str:
    """The key of the secret that a connection begins with."""
    try:
        async with asyncio.timeout(_HELLO_PATIENCE):
            line = await reader.readuntil(b"\n")
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        return ""
    return key_of(line.strip().decode("utf-8", "replace")) if len(line) <= _MAX_SECRET else ""


def key_of(secret: str) -> str:
    """Secrets are looked up by their hash: comparing takes the same time for every wrong one."""
    return hashlib.sha256(secret.encode()).hexdigest()


__all__ = ["GatewaySocket", "Pass", "key_of"]
