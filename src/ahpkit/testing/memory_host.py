"""Runs a real host inside this process, with clients, without sockets or files, to try and to test agents.

    async with memory_host(my_agent) as host, host.client() as client:
        session = await client.create_session()
        chat = await session.chat()
        assert await chat.ask("hello") == "You said: hello"

Except for the transport and the storage, it is the host that `ahpkit serve` runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from opentelemetry.trace import TracerProvider

from ahpkit.client.client import Client
from ahpkit.client.resources import OnUnsavedText
from ahpkit.client.responder import OnConfirmation, OnInput
from ahpkit.host.agent import Agent
from ahpkit.host.config import HostConfig
from ahpkit.host.feature import Feature
from ahpkit.host.host import Host
from ahpkit.log.memory import MemoryStorage
from ahpkit.transports.memory import memory_pair
from ahpkit.wire.transport import Transport


class MemoryHost:
    """A running host that clients in the same process connect to."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._serving: set[asyncio.Task[None]] = set()

    def client(
        self,
        *,
        client_id: str | None = None,
        extensions: Mapping[str, Any] | None = None,
        on_confirmation: OnConfirmation | None = None,
        on_input: OnInput | None = None,
        unsaved_text: OnUnsavedText | None = None,
        mcp_apps: bool = False,
        tracer_provider: TracerProvider | None = None,
    ) -> Client:
        """A client to enter with `async with`; the options are those of `ahpkit.client.connect`."""
        return Client(
            self.dial,
            client_id=client_id,
            extensions=extensions,
            on_confirmation=on_confirmation,
            on_input=on_input,
            unsaved_text=unsaved_text,
            mcp_apps=mcp_apps,
            tracer_provider=tracer_provider,
        )

    async def dial(self) -> Transport:
        """A connection to the host, for tests without our client."""
        ours, theirs = memory_pair()
        serving = asyncio.create_task(self.host.serve(theirs), name="serve a client in memory")
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        return ours

    async def wait_idle(self) -> None:
        """Wait until no client is connected."""
        while self._serving:
            await asyncio.wait(self._serving)


@asynccontextmanager
async def memory_host(
    *agents: Agent,
    features: Sequence[Feature] = (),
    directory: Path | None = None,
    tracer_provider: TracerProvider | None = None,
) -> AsyncGenerator[MemoryHost]:
    """A host with these agents, the first being the default; `directory` is where sessions work by default."""
    config = HostConfig(default_directory=directory or Path.cwd())
    host = Host(MemoryStorage(), agents=agents, features=features, config=config, tracer_provider=tracer_provider)
    async with host:
        running = MemoryHost(host)
        yield running
    await running.wait_idle()


__all__ = ["MemoryHost", "memory_host"]
