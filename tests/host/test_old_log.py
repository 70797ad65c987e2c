"""A log that was written when the host was 0.4.0 inside: converted when it is opened, and nothing of it is lost."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.dialects.states_up import migrate_channels
from ahpkit.dialects.v0_4.channels import channel_of, reduce
from ahpkit.host.sessions.old_log import convert_0_4
from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery
from ahpkit.log.errors import SchemaTooNew
from ahpkit.log.migrations import MIGRATIONS, migrate
from ahpkit.log.salvage import create
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.protocol.annotations import AnnotationsState
from ahpkit.wire.codec import decode_own, encode
from support import requirement
from support.bench import Bench
from support.process import host_process, start_host
from support.terminal import terminal

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


def old_log(path: Path, *more: Entry | ChannelSnapshot) -> None:
    """A file as the last version wrote it: states at number 4, two actions after them, and whatever else."""
    snapshots = {uri: ChannelSnapshot(uri, 4, encode(state)) for uri, state in STATES.items()}
    create(path, Recovery(head_seq=4, snapshots=snapshots))
    storage = SqliteStorage(path)
    storage.load()
    archived = {"type": "session/isArchivedChanged", "isArchived": True}
    storage.commit([entry(5, SESSION, RENAMED, 1), entry(6, SESSION, archived, 2), *more])
    storage.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = 1 WHERE key = 'schema'")
        db.execute("DROP TABLE parts")


@requirement("gen:project:log-migration")
async def test_a_log_of_0_4_goes_on_as_1_0(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    old_log(path)
    bench = Bench(tmp_path)
    bench.storage = SqliteStorage(path, convert=convert_0_4)
    await bench.start()
    try:
        state = bench.host.services.session(SESSION)
        assert state is not None
        assert (state["title"], state["status"], state["activeClients"]) == ("Renamed", 33 | 64, [])
        chat = bench.host.services.chat(CHAT)
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
        remarks = cast("AnnotationsState", bench.host.services.state(f"{SESSION}/annotations"))
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


def streamed(turn_id: str) -> list[dict[str, Any]]:
    """A turn whose text comes in pieces, and some that lead nowhere."""
    delta = {"type": "chat/delta", "turnId": turn_id, "partId": "p"}
    thought = {"type": "chat/reasoning", "turnId": turn_id, "partId": "r"}
    return [
        {"type": "chat/turnStarted", "turnId": turn_id, "message": FAILED["message"]},
        {"type": "chat/responsePart", "turnId": turn_id, "part": {"kind": "markdown", "id": "p", "content": ""}},
        {**delta, "content": "one "},
        {**delta, "content": "two "},
        {"type": "chat/responsePart", "turnId": turn_id, "part": {"kind": "reasoning", "id": "r", "content": ""}},
        {**thought, "content": "hm "},
        {**thought, "content": "hm"},
        {**delta, "content": "three"},
        {**delta, "partId": "nowhere", "content": "lost"},
        {**delta, "turnId": "nowhere", "content": "lost"},
        {**delta, "content": " four"},
        delta,
        {**delta, "content": ""},
        {"type": "chat/turnComplete", "turnId": turn_id},
    ]


def test_streamed_text_is_joined_and_every_state_is_what_its_actions_make_one_by_one() -> None:
    actions = [*streamed("t2"), *streamed("t3")]
    told: list[tuple[str, dict[str, Any]]] = []
    for number, action in enumerate(actions):
        told += [(CHAT, action), (SESSION, {"type": "session/titleChanged", "title": str(number)})]
    tail = [entry(seq, channel, action, seq) for seq, (channel, action) in enumerate(told, 5)]
    snapshots = {uri: ChannelSnapshot(uri, 4, encode(state)) for uri, state in STATES.items()}
    reports: list[tuple[int, int]] = []
    converted = convert_0_4(
        Recovery(head_seq=tail[-1].seq, snapshots=snapshots, tail=tail),
        lambda done, total: reports.append((done, total)),
    )
    assert converted is not None
    expected = dict(STATES)
    for channel, action in told:
        if "content" in action or action["type"] != "chat/delta":  # The one without content cannot be applied.
            expected[channel] = reduce(channel, expected[channel], action, now=CHANGED)
    for uri, (state, _) in migrate_channels(expected, _kind, lambda uri: SESSION).items():
        assert decode_own(converted.snapshots[uri].state) == decode_own(encode(state)), uri
    texts = [part["content"] for part in decode_own(converted.snapshots[CHAT].state)["turns"][-1]["responseParts"]]
    assert texts == ["one two three four", "hm hm"]
    assert reports[-1] == (len(tail), len(tail))
    assert reports == sorted(reports)


ODD: list[bytes] = [
    encode({"channel": SESSION, "action": {"type": "session/fromTheFuture", "title": "?"}, "serverSeq": 7}),
    encode({"channel": SESSION, "action": {"type": "session/titleChanged"}, "serverSeq": 8}),
    encode({"channel": SESSION, "action": {"type": 5}, "serverSeq": 9}),
    encode({"channel": SESSION, "action": {"type": []}, "serverSeq": 10}),
    encode({"channel": SESSION, "action": "nothing", "serverSeq": 11}),
    encode({"channel": SESSION, "serverSeq": 12}),
    encode([]),
    b"no JSON",
]


async def test_actions_that_nobody_knows_cost_nothing_but_themselves(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    strange = "example-thing:/kept"
    last = entry(7 + len(ODD), SESSION, {**RENAMED, "title": "At last"}, 3)
    odd = [Entry(seq, SESSION, payload, None, None, CHANGED) for seq, payload in enumerate(ODD, 7)]
    old_log(path, ChannelSnapshot(strange, 6, encode({"anything": [1, None]})), *odd, last)
    bench = Bench(tmp_path)
    bench.storage = SqliteStorage(path, convert=convert_0_4)
    await bench.start()
    state, other = bench.host.services.session(SESSION), bench.host.services.state(strange)
    await bench.stop()
    assert state is not None
    assert (state["title"], state["status"] & 64) == ("At last", 64)
    assert other == {"anything": [1, None]}


async def test_a_person_is_shown_how_far_it_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    old_log(data / "log.db")
    async with terminal(["serve", "--port", "0", "--data-dir", str(data)], tmp_path) as person:
        await person.see("Converting the sessions of an older ahpkit", "100%", "ahpkit is listening on")
        person.interrupt()
        assert await person.exited() == 0
    assert (data / "log.db.old-1").exists()


def _kind(uri: str) -> str | None:
    channel = channel_of(uri)
    return None if channel is None else channel.name


class Killed(BaseException):
    """What a process that is killed leaves behind: nothing after this point is done."""


@pytest.mark.parametrize("after", range(17))  # As many steps as there are, and one run without an interruption.
def test_an_interrupted_conversion_starts_again_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    path = tmp_path / "log.db"
    old_log(path)
    before = path.read_bytes()
    left = after

    def interrupted(work: Callable[..., Any]) -> Callable[..., Any]:
        def work_or_die(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return work(*arguments, **options)

        return work_or_die

    opened: list[SqliteStorage] = []
    with monkeypatch.context() as patched, suppress(Killed):
        patched.setattr(os, "replace", interrupted(os.replace))
        patched.setattr(os, "fsync", interrupted(os.fsync))
        patched.setattr(sqlite3, "connect", interrupted(sqlite3.connect))
        opened.append(SqliteStorage(path, convert=interrupted(convert_0_4)))
        opened[0].load()
    for storage in opened:
        storage.close()
    storage = SqliteStorage(path, convert=convert_0_4)
    converted = storage.load()
    storage.close()
    assert decode_own(converted.snapshots[SESSION].state)["title"] == "Renamed"
    assert converted.clients == {"me": 2}
    assert [kept.read_bytes() for kept in tmp_path.glob("log.db.old-*") if kept.suffix[-1].isdigit()] == [before]


STAGES = (
    ("sqlite3.connect", "log.db", {"log.db"}),
    ("sqlite3.connect", "log.db.part", {"log.db", "log.db.part"}),
    ("os.rename", "log.db.part", {"log.db", "log.db.part"}),
    ("os.rename", "log.db", {"log.db", "log.db.upgraded"}),
    ("os.rename", "log.db.upgraded", {"log.db.old-1", "log.db.upgraded"}),
    ("sqlite3.connect", "log.db", {"log.db", "log.db.old-1"}),
)
"""Before what a host is killed, and the files that it leaves: one stage of the conversion after the other."""


@requirement("gen:project:log-migration")
async def test_a_host_that_is_killed_in_every_stage_of_the_conversion_loses_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    old_log(data / "log.db")
    before = (data / "log.db").read_bytes()
    for event, name, left in STAGES:
        with pytest.raises(AssertionError, match="the host did not start"):
            await start_host(tmp_path, through=("support.killed_host", event, name))
        assert {path.name for path in data.glob("log.db*")} == left
    async with host_process(tmp_path) as host:
        client = await host.connect()
        shown = {one["resource"]: one["state"] for one in (await client.initialize(SESSION, CHAT))["snapshots"]}
        assert shown[SESSION]["summary"]["title"] == "Renamed"
        assert shown[CHAT]["turns"] == [FAILED]
    assert [kept.read_bytes() for kept in data.glob("log.db.old-*")] == [before]


def test_an_older_ahpkit_refuses_the_new_file_in_words(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    old_log(path)
    storage = SqliteStorage(path, convert=convert_0_4)
    storage.load()
    storage.close()
    with closing(sqlite3.connect(path)) as db, pytest.raises(SchemaTooNew, match="newer"):
        migrate(db, path, MIGRATIONS[:1])


@requirement("gen:project:log-migration")
async def test_turns_that_ran_in_several_sessions_of_an_old_log_have_ended(tmp_path: Path) -> None:
    """Each session has two chats, which are movable since 1.0.0: the host says so, and ends what ran, as it starts."""
    states: dict[str, Any] = {"ahp-root://": STATES["ahp-root://"]}
    for session in ("ahp-session:/a", "ahp-session:/b", "ahp-session:/c"):
        chats = [f"{session.replace('session', 'chat')}{number}" for number in range(2)]
        entries = [{**STATES[SESSION]["chats"][0], "resource": chat} for chat in chats]
        summary = {**STATES[SESSION]["summary"], "resource": session, "createdAt": 1e300}
        states[session] = {**STATES[SESSION], "summary": summary, "chats": entries, "defaultChat": chats[0]}
        for chat in chats:
            active: dict[str, Any] = {"id": "t2", "message": FAILED["message"], "responseParts": []}
            states[chat] = {
                **STATES[CHAT],
                "resource": chat,
                "turns": [{**FAILED, "error": None}],
                "activeTurn": active,
            }
    path = tmp_path / "data" / "log.db"
    path.parent.mkdir()
    create(path, Recovery(head_seq=4, snapshots={uri: ChannelSnapshot(uri, 4, encode(states[uri])) for uri in states}))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = 1 WHERE key = 'schema'")
        db.execute("DROP TABLE parts")
    async with host_process(tmp_path) as host:
        client = await host.connect("new")
        await client.ask("initialize", clientId="new", protocolVersions=["1.0.0"])
        sessions = (await client.ask("listSessions"))["items"]
        assert len(sessions) == 3, "whatever a wrong clock said"
        for chat in (chat["resource"] for one in sessions for chat in one["chats"]):
            state = (await client.ask("subscribe", chat))["snapshot"]["state"]
            first, second = state["turns"]
            assert first["responseParts"] == [], "null is no error"
            assert second["responseParts"][-1]["error"]["errorType"] == "host/interrupted"
            assert state.get("movable", False) is (chat[-1] == "1"), "the default chat stays"
