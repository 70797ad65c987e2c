"""A WebSocket server whose connections wait to be picked up by the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from ahpkit.wire.transport import Transport
from support.waiting import BOUND


@dataclass
class Serving:
    url: str
    port: int
    accepted: asyncio.Queue[Transport]


@contextlib.asynccontextmanager
async def serving(*, auth: Authenticator | None = None, **options: Any) -> AsyncGenerator[Serving]:
    """Serve, at most 20 seconds, and without a token unless `auth` says so; connections stay until the end."""
    accepted: asyncio.Queue[Transport] = asyncio.Queue()
    done = asyncio.Event()

    async def handler(transport: Transport) -> None:
        accepted.put_nowait(transport)
        await done.wait()

    async with asyncio.timeout(BOUND), serve_http(handler, auth=auth or Authenticator(None), **options) as server:
        try:
            yield Serving(server.url, server.port or 0, accepted)
        finally:
            done.set()
