"""A host in this process, for tests of agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from ahpkit.agents.python import agent
from ahpkit.host.agent import Turn
from ahpkit.testing.memory_host import memory_host
from support.waiting import BOUND


@agent(name="parrot")
async def parrot(turn: Turn) -> AsyncIterator[str]:
    yield f"You said: {turn.prompt}"


@agent(name="where")
async def where(turn: Turn) -> str:
    return str(turn.chat.working_directory)


async def test_an_agent_is_asked_through_a_real_host_and_client() -> None:
    async with asyncio.timeout(BOUND), memory_host(parrot) as host, host.client() as client:
        session = await client.create_session()
        chat = await session.chat()
        assert await chat.ask("hello") == "You said: hello"


async def test_several_clients_share_a_session(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(BOUND),
        memory_host(parrot, where, directory=tmp_path) as host,
        host.client() as one,
        host.client() as two,
    ):
        mine = await (await one.create_session(provider="where")).chat()
        assert await mine.ask("?") == str(tmp_path)
        (summary,) = await two.sessions()
        theirs = await (await two.session(summary["resource"])).chat()
        assert [turn["id"] for turn in theirs.confirmed["turns"]] == [turn["id"] for turn in mine.confirmed["turns"]]


async def test_leaving_ends_every_connection() -> None:
    async with asyncio.timeout(BOUND):
        async with memory_host(parrot) as host:
            client = host.client()
            await client.__aenter__()
        assert [task for task in asyncio.all_tasks() if task.get_name() == "serve a client in memory"] == []
        await client.__aexit__()
