"""Signs in to MCP servers for browsers: the person signs in in a separate tab, and the token goes directly to the host.

    async with SignIns(host.serve) as sign_ins:
        address = await sign_ins.begin(session_uri, server_id)   # for the browser to open

The authorization server leads back to an address on this machine, so this works for browsers of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Self

from ahpkit.client.client import Client
from ahpkit.client.errors import ClientError
from ahpkit.protocol.errors import RpcError
from ahpkit.transports.memory import memory_pair
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)

AT_ONCE = 8
"""Sign-ins that are under way at the same time."""

_PATIENCE = 60.0
"""Seconds until the authorization server has said where to sign in."""

Begin = Callable[[str, str], Awaitable[str]]


class SignInFailed(Exception):
    """The sign-in did not begin; the text says why."""


class SignIns:
    """Sign-ins that browsers began. Each is a client of the host until its token is handed over."""

    def __init__(self, serve: Callable[[Transport], Awaitable[None]], *, at_once: int = AT_ONCE) -> None:
        self._serve = serve
        self._at_once = at_once
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()
        self._served: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in (*self._running, *self._served):
            task.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def begin(self, session: str, server: str) -> str:
        """Begin to sign in to a server that asks for it; the address to open. Raises `SignInFailed`."""
        if len(self._running) >= self._at_once:
            raise SignInFailed("too many sign-ins are under way: finish one of them first")
        opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = self._tasks.create_task(self._sign_in(session, server, opened), name="sign in to an MCP server")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            async with asyncio.timeout(_PATIENCE):
                return await opened
        except SignInFailed:
            await asyncio.wait({task})  # Its place is free again.
            raise
        except TimeoutError:
            task.cancel()
            raise SignInFailed("the authorization server does not answer") from None

    async def _sign_in(self, session: str, server: str, opened: asyncio.Future[str]) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = await stack.enter_async_context(Client(self._dial, client_id=f"ahpkit-sign-in-{id(opened)}"))
                found = (await client.session(session)).mcp_server(server)
                await found.log_in(open_browser=lambda url: loop.call_soon_threadsafe(_tell, opened, url), keep=True)
        except (ClientError, RpcError, LookupError, OSError) as error:
            if opened.done():
                _log.info("a sign-in was not finished: %s", error)
            else:
                opened.set_exception(SignInFailed(str(error)))

    async def _dial(self) -> Transport:
        ours, theirs = memory_pair()
        serving = self._tasks.create_task(_quietly(self._serve(theirs)), name="serve a sign-in")
        self._served.add(serving)
        serving.add_done_callback(self._served.discard)
        return ours


def _tell(opened: asyncio.Future[str], url: str) -> None:
    if not opened.done():
        opened.set_result(url)


async def _quietly(serving: Awaitable[None]) -> None:
    with contextlib.suppress(Exception):
        await serving


__all__ = ["Begin", "SignInFailed", "SignIns"]
