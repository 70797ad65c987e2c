"""A log that was written when the host was 0.4.0 inside: converted when it is opened, and nothing of it is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ahpkit.host.sessions.old_log import convert_0_4
from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery
from ahpkit.log.salvage import create
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.wire.codec import encode
from support import requirement
from support.bench import Bench

SESSION, CHAT = "ahp-session:/s", "ahp-chat:/c"
CREATED, CHANGED = 1_700_000_000_000, 1_700_000_005_000
FAILED: dict[str, Any] = {
    "id": "t1",
    "message": {"text": "hi", "origin": {"kind": "user"}},
    "responseParts": [],
    "state": "error",
    "error": {"errorType": "e", "message": "gone"},
}
STATES: dict[str, Any] = {
    "ahp-root://": {"agents": [], "activeSessions": 1},
    SESSION: {
        "summary": {
            "resource": SESSION,
            "provider": "scripted",
            "title": "Old",
            "status": 33,
            "createdAt": CREATED,
            "modifiedAt": CREATED,
            "model": {"id": "m"},
        },
        "lifecycle": "ready",
        "chats": [{"resource": CHAT, "title": "Old", "status": 1, "modifiedAt": "2023-11-14T22:13:20.000Z"}],
        "defaultChat": CHAT,
        "config": {"schema": {"type": "object", "properties": {}}, "values": {}},
        "_meta": {"example.com/x": 1},
    },
    CHAT: {"resource": CHAT, "title": "Old", "status": 1, "modifiedAt": "2023-11-14T22:13:20.000Z", "turns": [FAILED]},
    f"{SESSION}/annotations": {
        "annotations": [{"id": "a", "turnId": "t1", "resource": "file:///x", "resolved": False, "entries": []}]
    },
}
RENAMED = {"type": "session/titleChanged", "title": "Renamed"}


def entry(seq: int, channel: str, action: dict[str, Any], client_seq: int) -> Entry:
    origin = {"clientId": "me", "clientSeq": client_seq}
    payload = encode({"channel": channel, "action": action, "origin": origin, "serverSeq": seq})
    return Entry(seq, channel, payload, "me", client_seq, CHANGED)


def old_log(path: Path) -> None:
    """A file as the last version wrote it: states at number 4, two actions after them."""
    snapshots = {uri: ChannelSnapshot(uri, 4, encode(state)) for uri, state in STATES.items()}
    create(path, Recovery(head_seq=4, snapshots=snapshots))
    storage = SqliteStorage(path)
    storage.load()
    archived = {"type": "session/isArchivedChanged", "isArchived": True}
    storage.commit([entry(5, SESSION, RENAMED, 1), entry(6, SESSION, archived, 2)])
    storage.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = 1 WHERE key = 'schema'")


@requirement("gen:project:log-migration")
async def test_a_log_of_0_4_goes_on_as_1_0(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    old_log(path)
    bench = Bench(tmp_path)
    bench.storage = SqliteStorage(path, convert=convert_0_4)
    await bench.start()
    try:
        state = bench.host.services.state(SESSION)
        assert state is not None
        assert (state["title"], state["status"], state["activeClients"]) == ("Renamed", 33 | 64, [])
        chat = bench.host.services.state(CHAT)
        assert chat is not None
        assert chat["turns"][0]["responseParts"][-1] == {"kind": "error", "error": FAILED["error"]}

        client = await bench.connect("me")
        missed = await client.ask("reconnect", clientId="me", lastSeenServerSeq=6, subscriptions=[SESSION, CHAT])
        assert missed["type"] == "snapshot"
        shown = {one["resource"]: one["state"] for one in missed["snapshots"]}
        assert shown[CHAT]["turns"][0]["error"] == FAILED["error"]
        summary = shown[SESSION]["summary"]
        assert (summary["createdAt"], summary["modifiedAt"]) == (CREATED, CHANGED)
        assert (summary["title"], summary["model"]) == ("Renamed", {"id": "m"})
        assert shown[SESSION]["_meta"] == {"example.com/x": 1}
        remarks = bench.host.services.state(f"{SESSION}/annotations")
        assert remarks is not None
        assert remarks["annotations"][0]["origin"] == {"session": SESSION, "turnId": "t1"}

        client.post(SESSION, RENAMED, client_seq=1)
        echo = await client.action("session/titleChanged")
        assert "rejectionReason" not in echo
        since = await bench.host.spine.log.read(7, channels=[SESSION])
        assert {entry.client_id for entry in since} <= {None}  # Nothing of the client is there twice.
    finally:
        await bench.stop()
    assert (tmp_path / "log.db.old-1").exists()


def test_what_is_1_0_already_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    old_log(path)
    storage = SqliteStorage(path, convert=convert_0_4)
    converted = storage.load()
    storage.close()
    assert convert_0_4(converted) is None
