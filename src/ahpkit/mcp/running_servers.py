"""Runs the MCP servers that one session wants, and stops all others of the session.

async with RunningServers(port, cwd=…) as servers:
    servers.want({"id": config})      # starts, stops and replaces until this is what runs
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from ahpkit.mcp.calls import Limits, ServerPort
from ahpkit.mcp.connect import ServerConfig
from ahpkit.mcp.server import McpServer


class RunningServers:
    """Owns the tasks of its servers. Leaving the context stops all of them."""

    def __init__(self, port: ServerPort, *, cwd: Path, limits: Limits | None = None) -> None:
        self._port = port
        self._cwd = cwd
        self._limits = limits
        self._servers: dict[str, McpServer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for id in list(self._servers):
            self.stop(id)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def __iter__(self) -> Iterator[McpServer]:
        return iter(self._servers.values())

    def get(self, id: str) -> McpServer | None:
        return self._servers.get(id)

    def want(self, configs: Mapping[str, ServerConfig]) -> None:
        """Run exactly these servers: start missing ones, stop all others."""
        for id in self._servers.keys() - configs.keys():
            self.stop(id)
        for id, config in configs.items():
            known = self._servers.get(id)
            if known is not None and known.config != config:
                self.stop(id)
                known = None
            if known is None:
                self._start(id, config)

    def stop(self, id: str) -> None:
        """Stop a server at once: it is not called any more, and its process ends."""
        server = self._servers.pop(id, None)
        task = self._tasks.pop(id, None)
        if server is not None and task is not None:
            server.halt()
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _start(self, id: str, config: ServerConfig) -> None:
        server = McpServer(id, config, self._port, cwd=self._cwd, limits=self._limits)
        self._servers[id] = server
        self._tasks[id] = asyncio.create_task(server.run(), name=f"MCP server {config.name}")


__all__ = ["RunningServers"]
