"""The socket where agents reach their gateway, with a secret for each session.

    async with GatewaySocket() as server:
        with server.admit(gateway) as pass_:       # a command and its environment for the agent
            ...

The command (`handover`) sends the secret together with its standard input and output, and the host serves the agent on
these directly: a command that carried the bytes would wake two processes more for each call. A connection that does not
bring a known secret and two pipes is closed without an answer, and so is the oldest of too many that have not sent a
secret yet: other users of the machine may connect too. Leaving ends every connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ahpkit.mcp import handover
from ahpkit.transports.errors import BindError
from ahpkit.transports.stdio import over_pipes
from ahpkit.wire.tasks import Tasks, unless

if TYPE_CHECKING:
    from ahpkit.mcp.gateway import Gateway

_log = logging.getLogger(__name__)

_HELLO_PATIENCE = 10.0
_MAX_UNKNOWN = 50
"""Connections that have not sent a secret yet."""
_MAX_CONNECTIONS = 20
"""Connections of one agent at a time, as over HTTP."""
_MAX_SECRET = 200
_MAX_MESSAGE = 8 * 1024 * 1024
_ACCEPT_AGAIN = 1.0
"""Seconds until the next connection is accepted when no more files can be open."""


@dataclass(frozen=True, slots=True)
class SocketAccess:
    """The command with which an agent connects to the gateway. Only `env` holds the secret."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str]

    def __repr__(self) -> str:
        return f"SocketAccess({self.command!r}, {self.args!r}, env=…)"


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A gateway, and what ends each of its connections."""

    gateway: Gateway
    ends: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])


class GatewaySocket:
    """One listening socket for all sessions of a host."""

    def __init__(self) -> None:
        self._admitted: dict[str, _Admitted] = {}
        self._unknown: dict[socket.socket, None] = {}
        """Connections that have not sent a secret yet, the oldest first."""
        self._stack = contextlib.AsyncExitStack()
        self._address = ""

    async def __aenter__(self) -> Self:
        listener, self._address = self._stack.enter_context(_listening())
        self._tasks = await self._stack.enter_async_context(Tasks())
        self._tasks.spawn(self._accept(listener), name="accept agents")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    @contextlib.contextmanager
    def admit(self, gateway: Gateway) -> Generator[SocketAccess]:
        """Let an agent connect while this context is entered."""
        secret = secrets.token_urlsafe(32)
        key = key_of(secret)
        admitted = self._admitted[key] = _Admitted(gateway)
        try:
            args = ("-I", "-S", str(Path(handover.__file__)), self._address)
            yield SocketAccess(sys.executable, args, {handover.SECRET: secret})
        finally:
            del self._admitted[key]
            for end in admitted.ends:
                _resolve(end)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                _log.warning("an agent cannot connect now: %s", error.strerror)
                await asyncio.sleep(_ACCEPT_AGAIN)
            else:
                self._unknown[connection] = None
                if len(self._unknown) > _MAX_UNKNOWN:
                    self._turn_away(next(iter(self._unknown)))
                self._tasks.spawn(self._serve(connection), name="an agent's way to the host")

    def _turn_away(self, connection: socket.socket) -> None:
        """End a connection that has not sent a secret yet: its task sees that nothing more comes."""
        del self._unknown[connection]
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one agent until its input ends, its command ends, or its gateway is not admitted any more."""
        with connection:
            connection.setblocking(False)
            try:
                key, pipes = await _hello(connection)
            finally:
                self._unknown.pop(connection, None)
            with contextlib.ExitStack() as stack:
                for pipe in pipes:
                    stack.enter_context(pipe)
                admitted = self._admitted.get(key)
                if admitted is not None and pipes and len(admitted.ends) < _MAX_CONNECTIONS:
                    await _serve_known(admitted, connection, pipes)


async def _serve_known(admitted: _Admitted, connection: socket.socket, pipes: Sequence[FileIO]) -> None:
    async with _readable(connection) as over:  # The command sends nothing more, so this is its end.
        admitted.ends.add(over)
        try:
            connection.send(handover.TAKEN)
            await unless(over, _talk(admitted.gateway, *pipes))
        except (OSError, BindError) as error:
            _log.warning("an agent cannot be served: %s", error)
        except Exception:  # The connections of other agents go on.
            _log.exception("an agent's connection to the host failed")
        finally:
            admitted.ends.discard(over)


async def _talk(gateway: Gateway, stdin: FileIO, stdout: FileIO) -> None:
    import anyio

    from ahpkit.mcp.connect import LineStream

    async with over_pipes(stdin, stdout, address="agent", max_bytes=_MAX_MESSAGE) as transport:
        try:
            await gateway.serve(LineStream(transport))
        except* anyio.BrokenResourceError:  # The agent went away, and left requests that nobody had taken yet.
            _log.debug("an agent went away while it was asking")


@contextlib.contextmanager
def _listening() -> Generator[tuple[socket.socket, str]]:
    """A socket, and its address on a command line.

    On Linux it has a name and no file, so an agent that sees other files than the host reaches it too. Everywhere the
    secret decides who is served.
    """
    with contextlib.ExitStack() as stack:
        if sys.platform == "linux":
            address = f"@ahpkit-{secrets.token_hex(8)}"
        else:
            address = str(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ahpkit-"))) / "agents")
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.setblocking(False)
        listener.bind(handover.named(address))
        listener.listen()
        yield listener, address


async def _hello(connection: socket.socket) -> tuple[str, list[FileIO]]:
    """What a command sends first: the key of its secret, and its two pipes. A command that sends nothing in time has an
    empty key and no pipes."""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(_HELLO_PATIENCE), _readable(connection) as something:
            await something
            return _received(connection)
    return "", []


def _received(connection: socket.socket) -> tuple[str, list[FileIO]]:
    data, numbers, *_ = socket.recv_fds(connection, _MAX_SECRET, 2)
    key = key_of(data.strip().decode("utf-8", "replace")) if data.endswith(b"\n") else ""
    if len(numbers) != 2 or not all(map(handover.is_pipe, numbers)):
        for number in numbers:
            os.close(number)
        return key, []
    for number in numbers:
        os.set_inheritable(number, False)
    return key, [FileIO(number, mode) for number, mode in zip(numbers, ("rb", "wb"), strict=True)]


@contextlib.asynccontextmanager
async def _readable(connection: socket.socket) -> AsyncGenerator[asyncio.Future[None]]:
    """Done when there is something to read, or the other side is gone."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(connection, _resolve, readable)
    try:
        yield readable
    finally:
        loop.remove_reader(connection)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def key_of(secret: str) -> str:
    """Secrets are looked up by their hash: comparing takes the same time for every wrong one."""
    return hashlib.sha256(secret.encode()).hexdigest()


__all__ = ["GatewaySocket", "SocketAccess", "key_of"]
