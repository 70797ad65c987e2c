"""Notifying: what counts as an event, and that a webhook and a command hear of it from a real host."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.testing.memory_host import memory_host
from ahpkit.web.notify import LONG, Event, Watcher, command, notifying, webhook

IDLE, FAILED, RUNNING, NEEDS, READ = 1, 2, 8, 24, 32


def summary(status: int, uri: str = "ahp-session:/1") -> dict[str, Any]:
    return {"resource": uri, "status": status, "title": "Fix it", "provider": "demo"}


def kinds(*steps: tuple[float, int]) -> list[str]:
    watcher = Watcher(page_url="http://x")
    found: list[str] = []
    for now, status in steps:
        found += [event["event"] for event in watcher.look([summary(status)], now=now)]
    return found


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(0, IDLE), (1, RUNNING), (2, NEEDS)], ["needs-you"]),
        ([(0, IDLE), (1, NEEDS), (2, NEEDS | READ), (3, RUNNING), (4, NEEDS)], ["needs-you", "needs-you"]),
        ([(0, NEEDS)], []),
        ([(0, IDLE), (1, RUNNING), (2, FAILED)], ["failed"]),
        ([(0, FAILED), (1, FAILED | READ)], []),
        ([(0, IDLE), (1, RUNNING), (2, IDLE)], []),
        ([(0, IDLE), (1, RUNNING), (2 + LONG, IDLE)], ["finished"]),
        ([(0, RUNNING), (5 + LONG, IDLE)], ["finished"]),
    ],
)
def test_what_is_worth_telling(steps: list[tuple[float, int]], expected: list[str]) -> None:
    assert kinds(*steps) == expected


def test_an_event_leads_to_the_card_and_holds_nothing_of_the_conversation() -> None:
    watcher = Watcher(page_url="http://x")
    list(watcher.look([summary(IDLE)], now=0))
    (event,) = watcher.look([summary(NEEDS)], now=1)
    assert event == {
        "event": "needs-you",
        "session": "ahp-session:/1",
        "title": "Fix it",
        "provider": "demo",
        "url": "http://x/#/s/ahp-session%3A%2F1",
    }


def test_the_first_session_of_a_host_is_told_of_like_any_other() -> None:
    watcher = Watcher(page_url="http://x")
    assert list(watcher.look([], now=0)) == []
    assert [event["event"] for event in watcher.look([summary(NEEDS)], now=1)] == ["needs-you"]


async def test_a_real_session_that_asks_is_told_and_one_that_fails_to_be_told_costs_the_others_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: asyncio.Queue[Event] = asyncio.Queue()

    async def broken(event: Event) -> None:
        raise OSError("the world is away")

    async with memory_host(DemoAgent()) as host:
        async with notifying(host.host.serve, [broken, heard.put], page_url="http://x"), host.client() as client:
            session = await client.create_session()
            chat = await session.chat()
            chat.send('/tool calculate {"expression": "1"}')
            event = await asyncio.wait_for(heard.get(), 20)
            assert event["event"] == "needs-you"
            assert event["session"] == session.uri
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_command_gets_the_event_as_a_line_on_its_input(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"import sys; open({str(out)!r}, 'w').write(sys.stdin.read())"
    await command([sys.executable, "-c", script])({"event": "failed"})
    assert out.read_text() == '{"event": "failed"}\n'


async def test_a_webhook_gets_the_event_as_json() -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        heard.put_nowait(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await webhook(f"http://127.0.0.1:{port}/hook")({"event": "needs-you"})
        assert json.loads(await heard.get()) == {"event": "needs-you"}
