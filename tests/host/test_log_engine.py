"""The log is a port: a host on an engine that gives its numbers late, with gaps, behaves like any other.

Nothing that the engine has not committed is shown, and the event loop never waits for a storage.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.host.states import NO_SESSION
from ahpkit.log.engine import Commit, Draft, LocalLog
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.log.storage import Storage
from support.bench import Bench, say
from support.clients import eventually
from support.late_log import Disk, LateLog
from support.raw_client import Json


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    bench = Bench(tmp_path)
    await bench.start(log=LateLog(Disk()))
    try:
        yield bench
    finally:
        await bench.stop()


def title(text: str) -> dict[str, str]:
    return {"type": "session/titleChanged", "title": text}


async def test_a_conversation_takes_place_and_every_number_is_higher_than_the_one_before(bench: Bench) -> None:
    client, other = await bench.client(), await bench.client()
    session, chat = await bench.session(client)
    await other.ask("subscribe", chat)
    await client.accepted(chat, say("hello"))
    for one in (client, other):
        await one.action("chat/turnComplete")
    numbers = [envelope["serverSeq"] for envelope in client.actions()]
    assert numbers == sorted(set(numbers))
    assert all(later - earlier >= 3 for earlier, later in pairwise(numbers))
    assert (await bench.state(client, chat))["turns"][0]["responseParts"][0]["content"] == "You said: hello"
    assert (await bench.state(client, session))["summary"]["title"] == "hello"


async def test_who_was_away_gets_exactly_what_was_missed(bench: Bench) -> None:
    client = await bench.client(client_id="me")
    session, _ = await bench.session(client)
    seen = (await client.accepted(session, title("one")))["serverSeq"]
    missed = [(await client.accepted(session, title(text)))["serverSeq"] for text in ("two", "three")]
    back = await bench.connect("back")
    result = await back.ask("reconnect", clientId="back", lastSeenServerSeq=seen, subscriptions=[session])
    titles = [one for one in result["actions"] if one["action"]["type"] == "session/titleChanged"]
    assert [envelope["serverSeq"] for envelope in titles] == missed


async def test_a_session_that_began_after_a_number_is_shown_as_a_snapshot(bench: Bench) -> None:
    client = await bench.client()
    first, _ = await bench.session(client)
    seen = (await client.accepted(first, title("one")))["serverSeq"]
    await client.accepted(first, title("two"))
    second, _ = await bench.session(client)
    back = await bench.connect("back")
    result = await back.ask("reconnect", clientId="back", lastSeenServerSeq=seen, subscriptions=[second])
    assert result["type"] == "snapshot"


async def test_an_action_that_is_sent_again_is_applied_once(bench: Bench) -> None:
    client = await bench.client(client_id="me")
    session, _ = await bench.session(client)
    first = await client.accepted(session, title("once"))
    client.post(session, title("once"), client_seq=first["origin"]["clientSeq"])
    await client.ask("ping")
    await client.wait(lambda _: len([e for e in client.actions(session) if e["serverSeq"] == first["serverSeq"]]) == 2)


async def test_a_restart_brings_everything_back(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("hello"))
    await client.action("chat/turnComplete")
    log = bench.host.spine.log
    assert isinstance(log, LateLog)
    await bench.stop()
    await bench.start(log=LateLog(log.disk))
    client = await bench.client()
    assert [item["resource"] for item in (await client.ask("listSessions"))["items"]] == [session]
    assert (await bench.state(client, chat))["turns"][0]["state"] == "complete"


def draft(number: int) -> Draft:
    return Draft("a", "x/y", b'{"channel":"a","action":%d}' % number, None, None, 0)


async def test_whoever_follows_from_the_past_hears_everything_once() -> None:
    async with LocalLog(MemoryStorage()) as log:
        log.take_recovery()
        log.open("a", b"{}")
        for number in range(3):
            log.append(draft(number))
        early, late = list[Commit](), list[Commit]()
        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(log.follow(0, early.append))]
            await eventually(lambda: numbers(early) == [1, 2, 3])
            following.append(tasks.create_task(log.follow(1, late.append)))
            log.append(draft(3))  # It is committed while the past is read.
            await eventually(lambda: numbers(late) == [2, 3, 4])
            log.append(draft(4))
            await eventually(lambda: numbers(early) == [1, 2, 3, 4, 5])
            assert numbers(late) == [2, 3, 4, 5]
            for task in following:
                task.cancel()
        payloads = [entry.payload for commit in early for entry in commit.entries]
        assert payloads[2] == b'{"channel":"a","action":2,"serverSeq":3}'


def numbers(commits: list[Commit]) -> list[int]:
    return [entry.seq for commit in commits for entry in commit.entries]


# -- what is not committed is not shown --------------------------------------------------------------------------------


@pytest.fixture
async def held(tmp_path: Path) -> AsyncGenerator[tuple[Bench, LateLog]]:
    """A host whose log commits only when a test says so, once `by_hand` is set."""
    bench, log = Bench(tmp_path), LateLog(Disk())
    await bench.start(log=log)
    try:
        yield bench, log
    finally:
        log.by_hand = False
        log.commit()
        await bench.stop()


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
async def test_initialize_shows_nothing_that_is_not_committed(held: tuple[Bench, LateLog], version: str) -> None:
    bench, log = held
    writer = await bench.client()
    session, _ = await bench.session(writer)
    await writer.accepted(session, title("committed"))
    log.commit()
    log.by_hand, committed = True, log.head_seq
    writer.post(session, title("not yet"))
    await eventually(lambda: (bench.host.services.session(session) or NO_SESSION)["title"] == "not yet")

    reader = await bench.connect("reader")
    result = await reader.initialize(session, protocolVersions=[version])
    assert shown_title(result["snapshots"][0]["state"]) == "committed"
    assert result["serverSeq"] == result["snapshots"][0]["fromSeq"] == committed
    assert shown_title((await reader.ask("subscribe", session))["snapshot"]["state"]) == "committed"
    assert [shown_title(item) for item in (await reader.ask("listSessions"))["items"]] == ["committed"]
    assert reader.actions(session) == []

    log.commit()
    told = await reader.action("session/titleChanged")
    assert told["action"]["title"] == "not yet"
    assert told["serverSeq"] > committed


async def test_a_session_that_is_not_committed_is_not_there(held: tuple[Bench, LateLog]) -> None:
    bench, log = held
    writer = await bench.client("ahp-root://")
    log.by_hand = True
    creating = asyncio.ensure_future(writer.ask("createSession", "ahp-session:/new"))
    await eventually(lambda: bench.host.services.session("ahp-session:/new") is not None)

    reader = await bench.connect("reader")
    result = await reader.initialize("ahp-root://", "ahp-session:/new")
    assert [snapshot["resource"] for snapshot in result["snapshots"]] == ["ahp-root://"]
    assert result["snapshots"][0]["state"]["activeSessions"] == 0
    assert (await reader.ask("listSessions"))["items"] == []
    assert "ahp-session:/new" in (await reader.refused("subscribe", "ahp-session:/new"))["message"]
    assert not creating.done()

    log.by_hand = False
    log.commit()
    await creating
    assert [item["resource"] for item in (await reader.ask("listSessions"))["items"]] == ["ahp-session:/new"]


def shown_title(state: Json) -> str:
    """The title of a session, or of an entry in the list of sessions, in any version."""
    return state["summary"]["title"] if "summary" in state else state["title"]


# -- the event loop does not wait for the disk -------------------------------------------------------------------------


class WatchedStorage:
    """Passes every call on to a storage, and notes whether it was made in the thread that made this object."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._here = threading.get_ident()
        self.calls: dict[str, set[bool]] = defaultdict(set)
        """Method → whether it was called here, elsewhere, or both."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._storage, name)

        def noted(*args: Any, **options: Any) -> Any:
            self.calls[name].add(threading.get_ident() == self._here)
            return method(*args, **options)

        return noted


async def test_no_call_of_the_storage_is_made_on_the_event_loop(tmp_path: Path) -> None:
    watched = WatchedStorage(SqliteStorage(tmp_path / "log.db"))
    bench = Bench(tmp_path)
    bench.storage = cast("Storage", watched)
    await bench.start()
    client = await bench.client(client_id="me")
    session, chat = await bench.session(client)
    await client.accepted(chat, say("hello"))
    await client.action("chat/turnComplete")
    first = await client.accepted(session, title("once"))
    await client.accepted(session, title("twice"))
    back = await bench.connect("back")
    missed = await back.ask("reconnect", clientId="back", lastSeenServerSeq=first["serverSeq"], subscriptions=[session])
    assert missed["type"] == "replay"
    assert (await back.ask("fetchTurns", chat, limit=5))["turns"]
    assert (await back.ask("listSessions"))["items"]
    await bench.restart()
    again = await bench.connect("me")
    await again.ask("reconnect", clientId="me", lastSeenServerSeq=first["serverSeq"], subscriptions=[session])
    again.post(session, title("once"), client_seq=first["origin"]["clientSeq"])
    await again.action(lambda told: told["serverSeq"] == first["serverSeq"])
    assert (await bench.state(await bench.client(), chat))["turns"]
    await bench.stop()
    assert watched.calls.keys() >= {"load", "commit", "read", "seen", "close"}
    assert {name for name, where in watched.calls.items() if True in where} == set()
