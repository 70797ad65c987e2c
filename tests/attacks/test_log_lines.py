"""Nobody can fill the host's log, or write records of their own into it."""

from __future__ import annotations

from pathlib import Path

from support.flow import open_session
from support.process import host_process

ROOT = "ahp-root://"


async def test_messages_that_are_wrong_again_and_again_leave_a_few_short_lines(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.connect()
        await client.initialize(ROOT, protocolVersions=["1.0.0"])
        session, chat = await open_session(client)
        for number in range(300):
            client.send({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"channel": 7}})
            client.send_bytes(b"{")
            client.post(chat, {"type": "chat/turnStarted", "turnId": number})
            client.post(session, {"type": "session/configChanged", "config": {f"k{number}": "v" * 1000}})
            client.post(ROOT, {"type": "root/configChanged", "config": {f"{number}{'k' * 5_000}": 1}})
            await client.ask("ping")
        await client.aclose()
        await host.stop()
    lines = host.errors.splitlines()
    assert len(lines) < 100, lines[:100]
    assert max(map(len, lines), default=0) < 5_000


async def test_no_text_looks_like_a_record_of_its_own(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.connect("me\nERROR all is lost")
        await client.initialize(ROOT, protocolVersions=["1.0.0"])
        settings = {"a\nERROR all is lost": 1, "b\r\nERROR all is lost": 1}
        await client.dispatch(ROOT, {"type": "root/configChanged", "config": settings})
        await client.aclose()
        await host.stop()
    assert "all is lost" in host.errors
    assert not any(line.startswith("ERROR") for line in host.errors.splitlines())
