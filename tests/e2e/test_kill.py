"""A real host that is killed while it works: what was shown is there afterwards, and what is there is whole."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from ahpkit.protocol.meta_keys import MISSED
from support import requirement
from support.flow import open_session, say, state_of, title
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient
from support.waiting import BOUND

ROUNDS = int(os.environ.get("AHPKIT_KILL_ROUNDS", "5"))
MAIN = "ahp-session:/main"
IN_FLIGHT = 30


@dataclass
class Shown:
    """What clients were shown over all rounds."""

    head: int = 0
    """The highest serverSeq any of them saw."""
    checked: int = 0
    """The serverSeq up to which everything was found again."""
    envelopes: dict[int, Json] = field(default_factory=dict[int, Json])
    """Since then, of the main session."""
    created: set[str] = field(default_factory=set[str])
    disposed: set[str] = field(default_factory=set[str])
    unclear: set[str] = field(default_factory=set[str])
    """Asked for, and the host died before it answered."""

    def see(self, client: RawClient) -> None:
        for said in client.actions():
            self.head = max(self.head, said["serverSeq"])
            if said["channel"] == MAIN and "rejectionReason" not in said:
                self.envelopes[said["serverSeq"]] = said


@requirement("core:hardening:server-seq-survives-restart")
@requirement("core:connection:server-seq-monotonic")
async def test_nothing_shown_is_missing_after_any_of_many_kills_under_load(tmp_path: Path) -> None:
    rng, shown = random.Random(7), Shown()
    for number in range(ROUNDS):
        async with host_process(tmp_path) as host:
            if number == 0:
                client = await host.client(client_id="first")
                await open_session(client, MAIN)
                shown.created.add(MAIN)
                await client.aclose()
            else:
                await _check(host, shown)
            await _work_until_killed(host, shown, number, after=rng.randrange(1, 150))
    async with host_process(tmp_path) as host:
        await _check(host, shown)
        client = await host.client()
        assert (await client.accepted((await open_session(client))[0], title("still works")))["serverSeq"] > shown.head
        await client.aclose()


@requirement("core:hardening:server-seq-survives-restart")
async def test_an_import_that_a_kill_cuts_off_leaves_nothing(tmp_path: Path) -> None:
    """It is stored in many commits; others are served between them, and the session is there after the last one."""
    message = {"text": "x" * 100_000, "origin": {"kind": "user"}}
    turns: list[Json] = [
        {"id": f"t{number}", "message": message, "responseParts": [], "state": "complete"} for number in range(80)
    ]
    document: Json = {"format": 1, "title": "half", "provider": "demo", "chats": [{"title": "c", "turns": turns}]}
    async with host_process(tmp_path) as host:
        client, other = await host.client(), await host.client(client_id="other")
        session, _ = await open_session(other)
        client.send(
            {"jsonrpc": "2.0", "id": "i", "method": "_ahpkit/sessions/import", "params": {"document": document}}
        )
        [log] = tmp_path.glob("**/log.db")  # noqa: ASYNC240  # Two folders.
        while not await asyncio.to_thread(_parts, log):
            await other.accepted(session, title("meanwhile"))
        host.kill()
        await host.ended()
        await client.aclose()
        await other.aclose()
    async with host_process(tmp_path) as host:
        client = await host.client()
        listed = [one["title"] for one in (await client.ask("listSessions"))["items"]]
        if "half" not in listed:  # Else it was faster than we were.
            await client.ask("subscribe", session)
            left = 1
            while left:  # What is left of it goes after commits, part by part.
                await client.accepted(session, title("now"))
                left = await asyncio.to_thread(_parts, log)
        assert listed in (["meanwhile"], ["half", "meanwhile"])
        await client.aclose()


def _parts(log: Path) -> int:
    with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM parts").fetchone()[0]


async def _work_until_killed(host: HostProcess, shown: Shown, number: int, *, after: int) -> None:
    """Several clients at full speed; the host is killed once that many echoes came back."""
    writer = await host.client(MAIN, client_id=f"writer-{number}")
    maker = await host.client(client_id=f"maker-{number}")
    talker = await host.client(client_id=f"talker-{number}")
    async with asyncio.timeout(BOUND):
        await asyncio.gather(
            _write(writer, host, after), _make_sessions(maker, shown, number), _talk(talker), return_exceptions=False
        )
    await host.ended()
    for client in (writer, maker, talker):
        shown.see(client)
        await client.aclose()


async def _write(client: RawClient, host: HostProcess, after: int) -> None:
    """Keep some actions on their way, for ever."""
    posted = 0
    while client.closed is None:
        echoed = len(client.received)
        if echoed >= after:
            host.kill()
        for _ in range(IN_FLIGHT - (posted - echoed)):
            posted += 1
            client.post(MAIN, title(f"number {posted} of {client.client_id}"))
        try:
            await client.wait(lambda _, echoed=echoed: len(client.received) > echoed)
        except AssertionError:
            assert client.closed is not None


async def _make_sessions(client: RawClient, shown: Shown, number: int) -> None:
    """Create and dispose of sessions until the host is gone."""
    made: list[str] = []
    for count in range(10_000):
        uri = f"ahp-session:/{number}-{count}"
        method = "createSession" if count % 3 else "disposeSession"
        if method == "disposeSession":
            if not made:
                continue
            uri = made.pop()
        shown.unclear.add(uri)
        try:
            await client.ask(method, uri)
        except AssertionError:
            assert client.closed is not None
            return
        shown.unclear.discard(uri)
        if method == "createSession":
            made.append(uri)
            shown.created.add(uri)
        else:
            shown.created.discard(uri)
            shown.disposed.add(uri)


async def _talk(client: RawClient) -> None:
    """One long turn in a chat of the main session."""
    try:
        chat = (await state_of(client, MAIN))["defaultChat"]
        await client.ask("subscribe", chat)
        client.post(chat, say("/stream 100000", f"turn-{client.client_id}"))
        await client.wait_closed()
    except AssertionError:
        assert client.closed is not None


async def _check(host: HostProcess, shown: Shown) -> None:
    client = await host.connect("checker")
    since: Json = {"lastSeenServerSeq": shown.checked, "subscriptions": [MAIN]}
    result = await client.ask("reconnect", clientId="checker", **since, _meta={MISSED: "actions"})
    assert result["type"] == "replay"
    logged = [said["serverSeq"] for said in result["actions"]]
    assert logged == sorted(set(logged))
    found = {said["serverSeq"]: said for said in result["actions"]}
    for seq, said in shown.envelopes.items():
        assert found[seq] == said
    assert max(logged, default=shown.head) >= max(shown.envelopes, default=0)
    await _check_sessions(client, shown)
    await client.aclose()
    fresh = await host.connect("fresh")
    shown.checked = (await fresh.initialize())["serverSeq"]
    assert shown.checked >= shown.head
    shown.head, shown.envelopes = shown.checked, {}
    await fresh.aclose()


async def _check_sessions(client: RawClient, shown: Shown) -> None:
    there = {item["resource"] for item in (await client.ask("listSessions"))["items"]}
    assert shown.created - shown.unclear <= there
    assert not (shown.disposed - shown.unclear) & there
    shown.created &= there
    shown.disposed -= there
    shown.unclear.clear()
    for uri in there:
        state = await state_of(client, uri)
        chats = [chat["resource"] for chat in state["chats"]]
        assert state["defaultChat"] in chats
        for chat in chats:
            found = await state_of(client, chat)
            assert "activeTurn" not in found
            for turn in found["turns"]:
                assert turn["state"] in ("complete", "error")
        if uri != MAIN:
            await client.ask("disposeSession", uri)
            shown.created.discard(uri)
            shown.disposed.add(uri)


@requirement("core:hardening:no-phantom-approval")
async def test_an_approval_that_was_never_given_is_not_shown_as_given(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client()
        session, chat = await open_session(client)
        client.post(chat, say('/tool calculate {"expression": "6 * 7"}'))
        await client.action("chat/toolCallReady")
        host.kill()
        await client.wait_closed()
    async with host_process(tmp_path) as host:
        client = await host.client(session)
        turn = (await state_of(client, chat))["turns"][0]
        assert turn["state"] == "error"
        assert "stopped" in turn["error"]["message"]
        call = next(part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall")
        assert (call["status"], call["reason"]) == ("cancelled", "skipped")
        assert "confirmed" not in call
        await client.accepted(chat, say("go on", "t2"))
        await client.action("chat/turnComplete")
        await client.aclose()


@requirement("core:hardening:server-seq-survives-restart")
async def test_a_host_that_is_killed_while_it_starts_starts_and_the_turn_can_go_on(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client()
        session, chat = await open_session(client)
        client.post(chat, say("/sleep 60"))
        seq = (await client.accepted(session, title("kept")))["serverSeq"]
        host.kill()
    for _ in range(3):
        async with host_process(tmp_path) as host:
            host.kill()
    async with host_process(tmp_path) as host:
        client = await host.connect()
        assert (await client.initialize())["serverSeq"] >= seq
        assert (await state_of(client, session))["summary"]["title"] == "kept"
        assert [turn["state"] for turn in (await state_of(client, chat))["turns"]] == ["error"]
        newer = await host.connect("newer")
        await newer.initialize(chat, protocolVersions=["1.0.0"])
        [turn] = (await state_of(newer, chat))["turns"]
        assert turn["responseParts"][-1]["resumable"] is True
        await newer.accepted(chat, {"type": "chat/turnResume", "turnId": turn["id"]})
        await newer.aclose()
        await client.aclose()
