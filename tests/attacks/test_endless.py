"""Endless sessions and chats are refused with a reason."""

from __future__ import annotations

from pathlib import Path

from ahpkit.host.config import HostConfig
from support.bench import running_bench


async def test_a_session_more_than_the_host_takes(tmp_path: Path) -> None:
    async with running_bench(tmp_path, config=HostConfig(default_directory=tmp_path, max_sessions=3)) as bench:
        client = await bench.client()
        made = [await bench.session(client) for _ in range(3)]
        refused = await client.refused("createSession", "ahp-session:/more")
        assert "this host has 3 sessions" in refused["message"]
        await client.ask("disposeSession", made[0][0])
        await client.ask("createSession", "ahp-session:/more")


async def test_a_chat_more_than_a_session_takes(tmp_path: Path) -> None:
    async with running_bench(tmp_path, config=HostConfig(default_directory=tmp_path, max_chats=3)) as bench:
        client = await bench.client()
        session, _chat = await bench.session(client)
        for number in range(2):
            await client.ask("createChat", session, chat=f"ahp-chat:/{number}")
        refused = await client.refused("createChat", session, chat="ahp-chat:/more")
        assert "may have 3 chats" in refused["message"]
        await client.ask("disposeChat", "ahp-chat:/1")
        await client.ask("createChat", session, chat="ahp-chat:/more")
