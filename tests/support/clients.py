"""For tests of the client over the fake host: names, waiting, losing connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ahpkit.client import Backoff, Client
from ahpkit.testing.fake_host import FakeHost
from support.waiting import BOUND

SESSION = "ahp-session:/s"
CHAT = "ahp-chat:/c"

QUICKLY = Backoff(first=0.001, longest=0.01)
"""Pauses before a reconnect that are too short to notice."""


async def eventually(condition: Callable[[], object]) -> None:
    """Let everything run until `condition` holds, within bounds."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  # Conditions are of all kinds, and the fake host has no timers.
            await asyncio.sleep(0)


async def settled() -> None:
    """Let everything run that can run without a timer: for tests that something does *not* happen."""
    for _ in range(50):
        await asyncio.sleep(0)


async def lose_connection(host: FakeHost, client: Client) -> None:
    """Cut the connection and wait until the client is back."""
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    await eventually(lambda: client.status == "connected")
