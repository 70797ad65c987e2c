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


async def test_a_client_that_leaves_before_it_is_refused_leaves_no_line(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with host_process(tmp_path) as host:
        watcher = await host.client()
        for number in range(40):
            client = await host.client(client_id=f"leaves-{number}")
            for request in range(60):
                method = ("resourceRead", "resourceList", "resourceWrite", "resourceDelete")[request % 4]
                params = {"channel": ROOT, "uri": "file:///etc/passwd", "data": "x", "encoding": "utf-8"}
                client.send({"jsonrpc": "2.0", "id": f"q{request}", "method": method, "params": params})
            if number % 2:
                await watcher.ask("ping")
            client.transport.abort()
        await watcher.ask("ping")
        await watcher.aclose()
        await host.stop()
    # To stop may take two seconds: the host says goodbye also to a client whose end it has not read yet.
    assert [line for line in host.errors.splitlines() if not line.startswith("stopping;")] == []
