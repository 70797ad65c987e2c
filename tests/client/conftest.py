"""A fake host with one session and one chat, and a client connected to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator

import pytest

from ahpkit.client import Client
from ahpkit.testing.fake_host import FakeHost, chat_state, chat_summary, session_state
from support.clients import CHAT, QUICKLY, SESSION
from support.waiting import BOUND


@pytest.fixture
async def bounded() -> AsyncGenerator[None]:
    """A test that waits for something that never comes is ended."""
    loop = asyncio.get_running_loop()
    timer = loop.call_later(BOUND, lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
    yield
    timer.cancel()


@pytest.fixture(autouse=True)
def sound_inside(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    """A callback that fails is logged. That is for users' callbacks: none of the client's own may."""
    yield
    failed = [record.getMessage() for record in caplog.get_records("call") if record.name == "ahpkit.wire.tasks"]
    assert [message for message in failed if "<bound method" in message and "ahpkit.client." in message] == []


@pytest.fixture
async def host(bounded: None) -> AsyncGenerator[FakeHost]:
    async with FakeHost() as host:
        host.open(SESSION, session_state(SESSION, chats=[chat_summary(CHAT)], defaultChat=CHAT))
        host.open(CHAT, chat_state(CHAT))
        yield host


@pytest.fixture
async def client(host: FakeHost) -> AsyncGenerator[Client]:
    async with Client(host.dial, client_id="me", backoff=QUICKLY) as client:
        yield client
