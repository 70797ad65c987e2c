"""The log is a port: a host on an engine that gives its numbers late, with gaps, behaves like any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import pytest

from ahpkit.log.engine import Commit, Draft, LocalLog
from ahpkit.log.memory import MemoryStorage
from support.bench import Bench, say
from support.clients import eventually
from support.late_log import Disk, LateLog


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
