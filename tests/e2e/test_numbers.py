"""A real host and clients whose JSON writes whole numbers in odd ways: nothing echoed is lost, nobody is stopped."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support import requirement
from support.flow import open_session, state_of, title
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient

ROOT = "ahp-root://"


def send_number(client: RawClient, channel: str, action: Json, number: str) -> None:
    """Dispatch with `clientSeq` spelt exactly so."""
    params = json.dumps({"channel": channel, "action": action})[:-1] + f',"clientSeq":{number}}}'
    client.send_bytes(f'{{"jsonrpc":"2.0","method":"dispatchAction","params":{params}}}'.encode())


async def titles(host: HostProcess, *sessions: str) -> list[str]:
    client = await host.client(client_id="reader")
    return [(await state_of(client, uri))["summary"]["title"] for uri in sessions]


@requirement("core:wire:whole-numbers")
@requirement("core:hardening:server-seq-survives-restart")
async def test_whole_numbers_in_any_spelling_are_echoed_as_integers_and_nothing_is_lost(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        odd, other = await host.client(ROOT), await host.client(ROOT, client_id="other")
        first, _ = await open_session(odd)
        second, _ = await open_session(other)
        for spelt, number in (("7.0", 7), ("1e3", 1000), ("-0.0", 0), ("9007199254740990.0", 2**53 - 2)):
            send_number(odd, first, title(f"seq {spelt}"), spelt)
            echoed = await odd.action(lambda said, number=number: said.get("origin", {}).get("clientSeq") == number)
            assert "rejectionReason" not in echoed
            assert type(echoed["origin"]["clientSeq"]) is int
        await other.accepted(second, title("echoed after it"))
        host.kill()
        await host.ended()
    async with host_process(tmp_path) as host:
        assert await titles(host, first, second) == ["seq 9007199254740990.0", "echoed after it"]
        await host.stop()
    assert "is not what was written" not in host.errors


@requirement("core:wire:whole-numbers")
@pytest.mark.parametrize("number", ["9223372036854775808", "9007199254740992", "1e18", "-1", "7.5", "1" + "0" * 400])
async def test_a_number_out_of_range_is_refused_with_a_reason_and_stops_nobody(tmp_path: Path, number: str) -> None:
    async with host_process(tmp_path) as host:
        odd, other = await host.client(ROOT), await host.client(ROOT, client_id="other")
        session, _ = await open_session(odd)
        await other.ask("subscribe", session)
        send_number(odd, session, title("refused"), number)
        refused = await odd.action(lambda said: "rejectionReason" in said)
        assert refused["rejectionReason"].startswith("clientSeq: ")
        assert "Python" not in refused["rejectionReason"]
        await other.accepted(session, title("goes on"))
        assert await titles(host, session) == ["goes on"]


@requirement("core:wire:whole-numbers")
async def test_whole_numbers_of_requests_and_their_ids(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, chat = await open_session(client)
        turns = await client.ask("fetchTurns", chat, limit=5.0)
        assert turns == {"turns": [], "hasMore": False}
        assert (await client.ask("completions", chat, text="hi", offset=2.0, kind="userMessage"))["items"] is not None
        for limit in (2**53, -(2.0**80)):
            assert "limit: must be at" in (await client.refused("fetchTurns", chat, limit=limit))["message"]
        client.send_bytes(b'{"jsonrpc":"2.0","id":77.0,"method":"ping","params":{"channel":"ahp-root://"}}')
        answer = await client.wait(lambda message: message.get("id") == 77)
        assert type(answer["id"]) is int
        await client.aclose()
        back = await host.connect()
        answer = await back.ask("reconnect", clientId="tester", lastSeenServerSeq=0.0, subscriptions=[session])
        assert answer["type"] in ("replay", "snapshot")
        far = await host.connect("far")
        refused = await far.refused("reconnect", clientId="far", lastSeenServerSeq=2**63, subscriptions=[])
        assert "lastSeenServerSeq: must be at most" in refused["message"]


@requirement("core:hardening:a-bad-entry-costs-itself")
async def test_a_damaged_entry_costs_only_itself(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        one, two = await host.client(ROOT), await host.client(ROOT, client_id="two")
        first, _ = await open_session(one)
        second, _ = await open_session(two)
        damaged = await one.accepted(first, title("damaged"))
        await two.accepted(second, title("of another channel"))
        await one.accepted(first, {"type": "session/isReadChanged", "isRead": True})
        host.kill()
        await host.ended()
    with closing(sqlite3.connect(tmp_path / "data" / "log.db")) as db, db:
        changed = db.execute("UPDATE entries SET payload = ? WHERE seq = ?", (b"{}", damaged["serverSeq"]))
        assert changed.rowcount == 1
    async with host_process(tmp_path) as host:
        assert await titles(host, first, second) == ["New session", "of another channel"]
        await host.stop()
    assert f"entries that cannot be read: {damaged['serverSeq']}" in host.errors


async def test_names_that_are_too_long_are_refused(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        for uri in ("ahp-session:/" + "x" * 100_000, "ahp-session:/a\0b", "ahp-session:/" + "\ud800" * 3000):
            refused = await client.refused("createSession", uri)
            assert "is not a session URI" in refused["message"] or "a URI has at most" in refused["message"]
            assert len(refused["message"]) < 5000
        await open_session(client)
