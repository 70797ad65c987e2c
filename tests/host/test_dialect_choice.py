"""A client that saw what the log has lost: it is noticed, and gets states instead of a replay that does not fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ahpkit.host.clients.dialect_choice import ClientNotes, ClientRecord
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.log.sqlite import SqliteStorage
from support.bench import Bench
from support.flow import title
from support.raw_client import Json, RawClient

SESSION = "ahp-session:/s"
ACTIONS = {"ahpkit/missed": "actions"}


def notes() -> ClientNotes:
    return ClientNotes(DurableValues(lambda key, data: None))


async def rename(client: RawClient, *titles: str) -> int:
    """Name the session several times; the number of the last one."""
    return [(await client.accepted(SESSION, title(name)))["serverSeq"] for name in titles][-1]


async def come_back(bench: Bench, client_id: str, last_seen: int, **meta: object) -> Json:
    client = await bench.connect(client_id)
    client.version = str(meta["ahpkit/spoken"]) if "ahpkit/spoken" in meta else None
    found = await client.ask(
        "reconnect",
        clientId=client_id,
        lastSeenServerSeq=last_seen,
        subscriptions=[SESSION],
        _meta={**ACTIONS, **meta},
    )
    await client.aclose()
    return found


@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "0.9.0", "1.0.0"])
@pytest.mark.parametrize("runs", [1, 2])
async def test_a_client_of_a_lost_history_gets_states(tmp_path: Path, version: str, runs: int) -> None:
    """An older copy of the log is put back. Its numbers are then used again, up to the very one that a client saw."""
    path = tmp_path / "log.db"
    bench = Bench(tmp_path)
    bench.storage = SqliteStorage(path)
    await bench.start()
    client = await bench.client(client_id="ahead", offer=[version])
    await client.ask("createSession", SESSION)
    await client.ask("subscribe", SESSION)
    kept = await rename(client, "kept")
    await bench.stop()
    shutil.copy(path, tmp_path / "copy.db")
    bench.storage = SqliteStorage(path)
    await bench.start()
    assert (await come_back(bench, "ahead", kept))["type"] == "replay"
    again = await bench.client(SESSION, client_id="ahead", offer=[version])
    lost = await rename(again, "lost", "lost too")
    await bench.stop()

    shutil.copy(tmp_path / "copy.db", path)
    bench.storage = SqliteStorage(path)
    await bench.start()
    other = await bench.client(SESSION, client_id="other", offer=["1.0.0"])
    number = kept
    while number < lost:
        number = await rename(other, f"new after {number}")
    for _ in range(runs - 1):
        bench.storage = SqliteStorage(path)
        await bench.restart()
    for _ in range(2):  # The second time, the answer to the first did not arrive.
        found = await come_back(bench, "ahead", lost)
        assert found["type"] == "snapshot"
        [shown] = found["snapshots"]
        assert "new after" in str(shown["state"])
    other = await bench.client(SESSION, client_id="other", offer=["1.0.0"])
    seen = await rename(other, "last")
    assert (await come_back(bench, "ahead", seen - 1))["actions"][0]["serverSeq"] == seen
    await bench.stop()


async def test_a_client_that_asks_for_more_than_it_missed_says_how_much_it_saw(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.start()
    client = await bench.client(client_id="ahead")
    await client.ask("createSession", SESSION)
    await client.ask("subscribe", SESSION)
    seen = await rename(client, "one", "two")
    await bench.restart()
    assert (await come_back(bench, "ahead", seen, **{"ahpkit/highest": seen + 9}))["type"] == "snapshot"
    assert (await come_back(bench, "ahead", seen, **{"ahpkit/highest": "no number"}))["type"] == "replay"
    await bench.stop()


async def test_a_client_that_the_host_never_heard_of_gets_states(tmp_path: Path) -> None:
    """Its data directory was deleted, and the new host has reached the same number."""
    bench = Bench(tmp_path)
    await bench.start()
    client = await bench.client()
    await client.ask("createSession", SESSION)
    await client.ask("subscribe", SESSION)
    seen = await rename(client, "one", "two")
    assert (await come_back(bench, "stranger", seen, **{"ahpkit/spoken": "1.0.0"}))["type"] == "snapshot"
    await bench.stop()


def test_a_note_is_read_as_it_was_written() -> None:
    for note in (ClientRecord("1.0.0", [], 3), ClientRecord("0.9.0", ["apps", "models"], 1, 57)):
        assert ClientRecord.read(note.written()) == note
    assert ClientRecord.read("0.9.0 apps") == ClientRecord("0.9.0", ["apps"])  # Written before runs were counted.


def test_only_so_many_runs_and_clients_are_remembered() -> None:
    known = notes()
    known.begin(0)
    known.set("early", ClientRecord("1.0.0", [], known.run))
    assert known.shares_history("early", 10**9)  # Its own run goes on.
    for head in range(1_001):
        known.begin(head)
    assert not known.shares_history("early", 0)  # Nobody knows any more where its run ended.
    for number in range(10_000):
        known.set(f"client-{number}", ClientRecord("1.0.0", [], known.run))
    assert known.get("early") is None
    assert known.get("client-0") is not None
