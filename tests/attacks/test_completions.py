"""Completions from outside: odd names on disk and odd words that somebody types are answered at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.raw_client import Json, RawClient
from support.site import Site

WORDS = ("@" + "*" * 5_000, "@" + "{a,b}" * 2_000, "@[!-" * 500, "#" + "../" * 500, "@" + "a?" * 1_000, "@\0")
SHOWN = (b"bad%2e%2e", b"bad" + b"x" * 240)
HIDDEN = (b"bad\xff.txt", b"bad\x1b[2J.txt", b"bad\x7f.txt", "bad\u202etxt.exe".encode())


@pytest.fixture
def odd(site: Site) -> Path:
    for name in (*SHOWN, *HIDDEN):
        Path(os.fsdecode(os.fsencode(site.work) + b"/" + name)).touch()
    (site.work / "bad-link").symlink_to(site.outside / "secret")
    (site.work / "bad-loop").symlink_to(site.work)
    return site.work


async def offered(client: RawClient, chat: str, typed: str) -> list[Json]:
    length = len(typed.encode("utf-16-le", "surrogatepass")) // 2
    return (await client.ask("completions", chat, kind="userMessage", text=typed, offset=length))["items"]


async def test_odd_names_and_words_are_answered_and_lead_nowhere(site: Site, odd: Path) -> None:
    async with site.serving() as client:
        _, chat = await site.session()
        items = await offered(client, chat, "@bad")
        assert {item["insertText"] for item in items} == {f"@{name.decode()} " for name in SHOWN}
        for item in items:
            assert not (await client.call("resourceRead", uri=item["attachment"]["uri"])).get("error")
        for word in WORDS:
            assert len(await offered(client, chat, word)) <= 200
        assert await client.ask("ping") is None
        await site.host.stop()
    assert site.host.errors == ""


async def test_clients_that_ask_and_leave_at_once_leave_no_line_in_the_log(site: Site) -> None:
    for number in range(3_000):
        (site.work / f"file-{number}").touch()
    async with site.serving() as client:
        _, chat = await site.session()
        for number in range(10):
            other = await site.host.client(client_id=f"leaves-{number}")
            for request in range(60):
                params = {"channel": chat, "kind": "userMessage", "text": "#", "offset": 1}
                other.send({"jsonrpc": "2.0", "id": f"q{request}", "method": "completions", "params": params})
            await client.ask("ping")
            other.transport.abort()
            assert len(await offered(client, chat, "#")) > 0
        await site.host.stop()
    assert site.host.errors == ""
