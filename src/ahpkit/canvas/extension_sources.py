"""Connects canvas extensions: processes that the host starts and restarts, and a socket they connect to."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import random
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ahpkit.canvas.extension import MAX_LINE, serve_extension
from ahpkit.canvas.extension_protocol import ExtensionRefused
from ahpkit.canvas.provider import ProviderRegistrar
from ahpkit.transports.errors import BindError
from ahpkit.transports.process import ChildProcess
from ahpkit.transports.stdio import LineTransport
from ahpkit.transports.unix import unix_listener
from ahpkit.wire.backoff import backoff

SOCKET_NAME = "extensions.sock"
"""Name of the socket in the host's data directory."""

LONGEST_PAUSE = 30.0
"""Seconds between the end of a process that keeps ending early and its next start."""

_STABLE = 10.0
"""Seconds after which an end counts as the first one again."""

_MAX_CONNECTIONS = 64
"""Extensions on the socket at the same time."""

_log = logging.getLogger(__name__)


class ExtensionProcess:
    """Starts a command and talks to it over its stdin and stdout; starts it again when it ends.

    What it prints to stderr, and lines on stdout that are no messages, are kept for the log: the last lines say why it
    ended. It runs in a process group of its own and ends with everything it started.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.command:
            raise ValueError("an extension needs a command")
        self._cwd = cwd or Path.cwd()
        self._env = dict(os.environ if env is None else env)
        self._longest_pause = longest_pause

    @property
    def default_id(self) -> str:
        """For an extension that names no id: the same for the same command, also after a restart of the host."""
        digest = hashlib.sha256("\0".join(self.command).encode()).hexdigest()
        return f"{Path(self.command[0]).name}-{digest[:8]}"

    async def run(self, registrar: ProviderRegistrar) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            why = await self._run_once(registrar)
            failures = 1 if time.monotonic() - began > _STABLE else failures + 1
            delay = backoff(failures, random.random, longest=self._longest_pause)
            _log.warning("the canvas extension %s ended, starting again in %.1f s: %s", self.command[0], delay, why)
            await asyncio.sleep(delay)

    async def _run_once(self, registrar: ProviderRegistrar) -> str:
        """Run the process to its end; returns why it ended."""
        try:
            async with ChildProcess(self.command, env=self._env, cwd=self._cwd, max_line=MAX_LINE) as process:
                try:
                    await serve_extension(process.transport, registrar, default_id=self.default_id)
                except ExtensionRefused as error:
                    return " | ".join([str(error), *process.log.lines(3)])
                return " | ".join(["the connection ended", *process.log.lines(3)])
        except OSError as error:
            return f"it cannot be started: {error.strerror}"


class ExtensionSocket:
    """Listens on a Unix socket that only this user may connect to."""

    def __init__(self, path: Path, *, max_connections: int = _MAX_CONNECTIONS) -> None:
        self.path = path
        self._max_connections = max_connections

    async def run(self, registrar: ProviderRegistrar) -> None:
        try:
            with unix_listener(self.path) as listener:
                connections = _Connections(registrar, self._max_connections)
                server = await asyncio.start_unix_server(connections.accept, sock=listener, start_serving=False)
                # Connections end first: closing a server waits for them.
                async with server, asyncio.TaskGroup() as connections.tasks:
                    await server.start_serving()
                    await asyncio.Event().wait()
        except BindError as error:
            _log.warning("canvas extensions cannot connect: %s", error)


class _Connections:
    """Extensions that connected by themselves, each served by a task of its own."""

    tasks: asyncio.TaskGroup

    def __init__(self, registrar: ProviderRegistrar, most: int) -> None:
        self._registrar = registrar
        self._most = most
        self._count = 0

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._count >= self._most:
            _log.warning("an extension was turned away: %d are connected", self._count)
            writer.close()
            return
        self._count += 1
        self.tasks.create_task(self._serve(LineTransport(reader, writer, address="extension", max_bytes=MAX_LINE)))

    async def _serve(self, transport: LineTransport) -> None:
        try:
            await serve_extension(transport, self._registrar)
        except ExtensionRefused as error:
            _log.warning("an extension on the socket was refused: %s", error)
        except Exception:  # One extension must not end the others.
            _log.exception("serving an extension failed")  # Its neighbours go on.
        finally:
            self._count -= 1


__all__ = ["LONGEST_PAUSE", "SOCKET_NAME", "ExtensionProcess", "ExtensionSocket"]
