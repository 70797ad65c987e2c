"""Every promise of SECURITY.md that no other file of this directory is about."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from ahpkit.transports.connect import connect_transport
from ahpkit.transports.errors import ConnectError
from support import requirement
from support.http import get
from support.process import finish_cli
from support.site import Site
from support.waiting import BOUND

SECURITY = Path(__file__).resolve().parents[2] / "SECURITY.md"


async def test_it_listens_on_loopback_and_nowhere_else_without_a_token(site: Site) -> None:
    async with site.serving():
        assert site.host.url.startswith("ws://127.0.0.1:")
    code, _, errors = await finish_cli(["serve", "--host", "0.0.0.0", "--port", "0", "--no-token"], site.home)
    assert (code, "--no-token" in errors) == (1, True)


@requirement("security:token:no-path")
async def test_a_token_is_asked_for_and_the_answer_does_not_say_where_it_is(site: Site) -> None:
    async with site.serving():
        for token in (None, "wrong"):
            with pytest.raises(ConnectError) as caught:
                await connect_transport(site.host.url, token=token)
            assert str(site.home) not in str(caught.value)
            assert "/data" not in str(caught.value)


async def test_the_token_is_private_never_logged_and_in_no_state(site: Site) -> None:
    async with site.serving("--verbose") as client:
        await client.ask("subscribe", "ahp-root://")
        session, chat = await site.session()
        await site.turn(chat)
        await client.ask("subscribe", session)
        token = site.host.token or ""
        assert token not in json.dumps(client.received)
        assert token not in site.host.errors
        assert (site.home / "data" / "token").stat().st_mode & 0o777 == 0o600


async def test_foreign_web_pages_stay_out(site: Site) -> None:
    async with site.serving():
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            status = await upgrade(site, headers)
            assert status in (400, 403, 421), (headers, status)


async def upgrade(site: Site, headers: dict[str, str]) -> int:
    """The status of a WebSocket handshake with a valid token and these headers."""
    answer = await get(
        site.host.url.replace("ws://", "http://") + "/",
        **{
            "Authorization": f"Bearer {site.host.token}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            **headers,
        },
    )
    return answer.status


async def test_what_the_policy_does_not_know_is_refused_with_a_reason(site: Site) -> None:
    async with site.serving() as client:
        session, _ = await site.session()
        reason = await client.rejected(session, {"type": "session/ready"})
        assert reason
        assert (await client.refused("noSuchMethod"))["message"]


async def test_errors_carry_a_code_and_safe_words(site: Site) -> None:
    async with site.serving() as client:
        await site.session()
        for method, params in (
            ("resourceRead", {"uri": "file:///%00"}),
            ("resourceRead", {"uri": "file:///" + "x" * 5000}),
            ("resourceWrite", {"uri": site.work.as_uri(), "data": "x", "encoding": "utf-8"}),
            ("resourceMove", {"source": site.work.as_uri(), "destination": (site.work / "x").as_uri()}),
            ("resourceCopy", {"source": site.work.as_uri(), "destination": (site.work / "x").as_uri()}),
            ("resourceDelete", {"uri": (site.work / "none").as_uri()}),
        ):
            error = await client.refused(method, **params)
            assert error["code"] in range(-32700, -31999), (method, error)
            assert error["code"] != -32603, (method, error)
            assert "Traceback" not in json.dumps(error)
        assert "Traceback" not in site.host.errors


@requirement("security:export:private")
async def test_an_export_is_for_its_owner_only(site: Site) -> None:
    async with site.serving():
        session, _ = await site.session()
        await site.run("sessions", "export", session, "--output", "out.json")
        assert (site.home / "out.json").stat().st_mode & 0o777 == 0o600


async def test_paths_that_no_file_could_have_are_not_found(site: Site) -> None:
    """Nobody needs a token to ask for them, so they must not fill the log."""
    paths = ("/%00", "/a%00b.js", "/index.html%00", f"/{'a' * 70_000}", f"/{'a/' * 3_000}", "/%0d%0ax", "/%ff%fe")
    async with site.serving():
        for path in paths:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.host.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(), BOUND)
            assert answer.startswith(b"HTTP/1.1 404"), (path[:20], answer[:100])
            writer.close()
            await writer.wait_closed()
        await site.host.stop()
    assert site.host.errors == ""


def test_every_promise_names_the_tests_that_keep_it() -> None:
    promises = SECURITY.read_text(encoding="utf-8").partition("## What the host promises")[2].partition("\n## ")[0]
    _, *bullets = re.split(r"\n- ", promises)
    assert len(bullets) > 10
    here = Path(__file__).resolve().parents[2]
    for bullet in bullets:
        named = re.findall(r"`(tests/[\w/.]+)`", bullet)
        assert named, bullet
        assert [name for name in named if not (here / name).exists()] == []
