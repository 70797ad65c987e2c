"""What was echoed is there after a restart, whatever happens to the files of the log under a running host."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.flow import open_session, remark, say, state_of, title
from support.process import host_process
from support.raw_client import Json

ROOT = "ahp-root://"
SESSIONS = 5


def cut(wal: Path) -> None:
    os.truncate(wal, 0)


def halve(wal: Path) -> None:
    os.truncate(wal, wal.stat().st_size // 2)


def overwrite(wal: Path) -> None:
    wal.write_bytes(b"x\n")


@pytest.mark.parametrize(
    ("harm", "end"), [(cut, "kill"), (halve, "kill"), (overwrite, "stop"), (halve, "stop at once")]
)
async def test_a_write_ahead_log_that_is_cut_off_costs_nothing(
    tmp_path: Path, harm: Callable[[Path], None], end: str
) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        sessions = [(await open_session(client))[0] for _ in range(SESSIONS)]
        for number, session in enumerate(sessions):
            await client.accepted(session, title(f"echoed {number}"))
        wal = tmp_path / "data" / "log.db-wal"
        at_rest = not wal.stat().st_size  # This took long: everything is in the main file already.
        harm(wal)
        if end != "stop at once":
            await client.accepted(sessions[0], title("echoed after it"))
        await client.aclose()
        if end == "kill":
            host.kill()
            await host.ended()
        else:
            assert await host.stop() == 0
    assert at_rest or "it was cut off while it was in use; it is made again" in host.errors
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        titles = [(await state_of(client, session))["summary"]["title"] for session in sessions]
        await client.aclose()
    first = "echoed 0" if end == "stop at once" else "echoed after it"
    assert titles == [first, *(f"echoed {number}" for number in range(1, SESSIONS))]
    assert "damaged" not in host.errors


FIRST_PAGE = 32 + 24 + 100
"""Where a byte of it is, behind the header of the log and that of its first frame."""


async def test_bytes_of_the_write_ahead_log_that_changed_after_a_crash_are_said_to_have_changed(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, _ = await open_session(client)
        echoed = [(await client.accepted(session, title(f"echoed {number}")))["serverSeq"] for number in range(20)]
        host.kill()
        await host.ended()
    wal = tmp_path / "data" / "log.db-wal"
    data = bytearray(wal.read_bytes())
    data[FIRST_PAGE] ^= 1  # Further on may be what is left of an earlier log, which is not read.
    wal.write_bytes(data)
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        result = await client.call("subscribe", session)
        if "result" in result:
            assert result["result"]["snapshot"]["fromSeq"] > echoed[-1], "no number is given out twice"
        await client.aclose()
    assert "the write-ahead log log.db-wal is damaged" in host.errors


def behind_a_link(wal: Path) -> None:
    wal.rename(wal.with_name("elsewhere"))
    wal.symlink_to("elsewhere")


def replaced(wal: Path) -> None:
    wal.rename(wal.with_name("elsewhere"))
    wal.write_bytes(b"something else" * 100)


@pytest.mark.parametrize("harm", [Path.unlink, replaced, behind_a_link])
async def test_a_write_ahead_log_that_is_replaced_costs_nothing(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """SQLite opens none behind a link: after a crash the host did not start."""
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, _ = await open_session(client)
        await client.accepted(session, title("echoed"))
        harm(tmp_path / "data" / "log.db-wal")
        await client.accepted(session, title("echoed after it"))
        host.kill()
        await host.ended()
    assert any(said in host.errors for said in ("it was put back", "it is made again"))
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        assert (await state_of(client, session))["summary"]["title"] == "echoed after it"
        await client.aclose()
    assert "damaged" not in host.errors


def refuse(data: Path, text: bytes | None) -> None:
    """From now on the database takes no entry that has this text, though the disk has room. None: it takes all."""
    with closing(sqlite3.connect(data / "log.db")) as database:
        if text is None:
            database.execute("DROP TRIGGER refuse")
        else:
            database.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN instr(new.payload, x'{text.hex()}')"
                " BEGIN SELECT RAISE(ABORT, 'the database does not want it'); END"
            )


def annotation(name: str, text: str) -> Json:
    action = remark(text)
    return {**action, "annotation": {**action["annotation"], "id": name}}


async def test_an_action_that_the_database_refuses_costs_that_action_only(tmp_path: Path) -> None:
    """Two clients send as fast as they can, so the bad ones are in batches with good ones."""
    async with host_process(tmp_path) as host:
        refuse(tmp_path / "data", b"no room for this")
        good, bad = await host.client(ROOT, client_id="good"), await host.client(ROOT, client_id="bad")
        session, _ = await open_session(good)
        remarks = f"{session}/annotations"
        for client in (good, bad):
            await client.ask("subscribe", remarks)
        faulty = [f"bad{number}" for number in (7, 8, 40, 99)]
        sent = {
            client.client_id: {name: annotation(name, "no room for this" if name in faulty else "x") for name in names}
            for client in (good, bad)
            if (names := [f"{client.client_id}{number}" for number in range(100)])
        }
        for pair in zip(sent["good"].values(), sent["bad"].values(), strict=True):
            for client, action in zip((good, bad), pair, strict=True):
                client.post(remarks, action)
        stored = {name for names in sent.values() for name in names} - set(faulty)
        for client in (good, bad):
            for name in stored:
                told = await client.action(about(remarks, name))
                assert "rejectionReason" not in told
        for name in faulty:
            told = await bad.action(about(remarks, name))
            assert told["rejectionReason"] == "this action could not be stored, so it was not done"
            assert told["origin"]["clientId"] == "bad"
        assert not any(about(remarks, name)(told) for told in good.actions() for name in faulty)
        after = await good.accepted(remarks, annotation("after it", "x"))
        shown = (await state_of(good, remarks))["annotations"]
        assert {one["id"] for one in shown} == {*stored, "after it"}
        for client in (good, bad):
            await client.aclose()
        host.kill()
        await host.ended()
    refuse(tmp_path / "data", None)
    assert "Traceback" not in host.errors
    lines = [line for line in host.errors.splitlines() if "could not be stored" in line]
    assert len(lines) == len(faulty), host.errors
    assert all("dropped: " in line and "the database does not want it" in line for line in lines)
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        snapshot = (await client.ask("subscribe", remarks))["snapshot"]
        assert snapshot["state"]["annotations"] == shown
        assert snapshot["fromSeq"] >= after["serverSeq"]
        assert (await client.accepted(remarks, annotation("later", "x")))["serverSeq"] > after["serverSeq"]
        await client.aclose()
    assert "damaged" not in host.errors


def about(channel: str, name: str) -> Callable[[Json], bool]:
    """Whether an action is about the annotation of that name."""
    return lambda told: told["channel"] == channel and told["action"].get("annotation", {}).get("id") == name


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (b"network; ", ["complete", "complete"]),
        (b"chat/responsePart", ["complete", "complete"]),
        (b"chat/turnComplete", ["error", "error"]),
    ],
    ids=["a piece of an answer", "its beginning", "the end of a turn"],
)
async def test_what_the_host_says_itself_and_the_database_refuses_costs_that_only(
    tmp_path: Path, text: bytes, ends: list[str]
) -> None:
    """Nobody is to be told, the turn goes on to an end, and the chat can be used."""
    async with host_process(tmp_path) as host:
        refuse(tmp_path / "data", text)
        client = await host.client(ROOT)
        session, chat = await open_session(client, provider="demo")
        for turn in ("t1", "t2"):
            client.received.clear()
            await client.accepted(chat, say("hello", turn))
            await client.action(lambda told: told["action"]["type"] in ("chat/turnComplete", "chat/error"))
        shown = await state_of(client, chat)
        assert [turn["state"] for turn in shown["turns"]] == ends
        [entry] = (await state_of(client, session))["chats"]
        assert entry["status"] == shown["status"]
        await client.aclose()
        host.kill()
        await host.ended()
    refuse(tmp_path / "data", None)
    assert "could not be stored and is dropped: " in host.errors
    assert "Traceback" not in host.errors
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        assert (await state_of(client, chat))["turns"] == shown["turns"]
        await client.aclose()


async def test_a_message_that_the_database_refuses_is_not_answered(tmp_path: Path) -> None:
    """Its sender hears that it was not done. So no agent works on it, unseen by everybody."""
    async with host_process(tmp_path) as host:
        refuse(tmp_path / "data", b"/stream 300")
        client = await host.client(ROOT)
        session, chat = await open_session(client, provider="demo")
        reason = await client.rejected(chat, say("/stream 300"))
        assert reason == "this action could not be stored, so it was not done"
        client.received.clear()
        await client.accepted(chat, say("hello", "t2"))
        await client.action("chat/turnComplete")
        heard = {told["action"].get("turnId") for told in client.actions(chat)}
        assert "t1" not in heard
        [turn] = (await state_of(client, chat))["turns"]
        assert (turn["id"], turn["state"]) == ("t2", "complete")
        assert (await state_of(client, session))["chats"][0]["status"] == (await state_of(client, chat))["status"]
        await client.aclose()
        await host.stop()
    assert "Traceback" not in host.errors
