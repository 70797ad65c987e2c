"""Subscriptions: states, actions as they come, and consumers that fall behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.client import ChannelGone, Client, ClientClosed, LaggedError
from ahpkit.client.subscription import BoundedQueue, Lagged
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.testing.fake_host import FakeHost
from support.clients import QUICKLY, SESSION, eventually, settled
from support.waiting import BOUND


def renamed(title: str) -> dict[str, Any]:
    return {"type": "session/titleChanged", "title": title}


async def test_actions_come_in_order_with_their_numbers(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        for title in "abc":
            host.emit(SESSION, renamed(title))

        got = [await anext(session) for _ in range(3)]

    assert [envelope["serverSeq"] for envelope in got] == [1, 2, 3]
    assert [envelope["action"]["title"] for envelope in got] == ["a", "b", "c"]  # type: ignore[typeddict-item]  # All of them are titles.


async def test_a_consumer_that_falls_behind_is_told_and_goes_on(host: FakeHost, client: Client):
    async with client.subscribe(SESSION, limit=2) as slow, client.subscribe(SESSION) as quick:
        for title in "abcd":
            host.emit(SESSION, renamed(title))
        await quick.wait_for(lambda state: state["title"] == "d")

        with pytest.raises(LaggedError) as caught:
            await anext(slow)
        assert (caught.value.channel, caught.value.last_seq, caught.value.next_seq) == (SESSION, 0, 4)
        assert slow.state["title"] == "d", "the state is up to date"
        host.emit(SESSION, renamed("e"))
        assert (await anext(slow))["serverSeq"] == 5

        assert [(await anext(quick))["serverSeq"] for _ in range(5)] == [1, 2, 3, 4, 5]


async def test_a_reconnect_by_snapshot_tells_consumers_that_actions_are_missing(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        host.accepting = False
        host.drop()
        await eventually(lambda: client.status == "reconnecting")
        host.emit(SESSION, renamed("missed"))
        host.forget()
        host.accepting = True

        with pytest.raises(LaggedError):
            await anext(session)
        assert session.state["title"] == "missed"


async def test_waiting_for_a_state_takes_nothing_from_the_iteration(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        waiting = asyncio.create_task(session.wait_for(lambda state: state["title"] == "b"))
        await settled()
        host.emit(SESSION, renamed("a"))
        host.emit(SESSION, renamed("b"))

        assert (await waiting)["title"] == "b"
        assert (await anext(session))["serverSeq"] == 1


async def test_a_condition_that_fails_fails_the_wait(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        with pytest.raises(KeyError):
            await session.wait_for(lambda state: state["no such key"])


async def test_nobody_waits_for_a_channel_that_is_no_longer_followed(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        waiting = asyncio.create_task(session.wait_for(lambda state: False))
        await settled()
    with pytest.raises(ChannelGone, match="no longer follows"):
        await waiting


async def test_the_end_of_the_client_ends_the_iteration(host: FakeHost):
    async with Client(host.dial, backoff=QUICKLY) as client:
        session = await client.subscribe(SESSION).__aenter__()
        waiting = asyncio.create_task(anext(session))
        await settled()
    with pytest.raises(ClientClosed):
        await waiting


async def test_leaving_a_subscription_ends_its_iteration(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        host.emit(SESSION, renamed("a"))
        await session.wait_for(lambda state: state["title"] == "a")

    assert [envelope["serverSeq"] async for envelope in session] == [1]


async def test_nobody_waits_for_a_channel_that_was_removed_before(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        host.notify("root/sessionRemoved", {"channel": ROOT_URI, "session": SESSION})
        with pytest.raises(ChannelGone, match="removed"):
            await anext(session)

        with pytest.raises(ChannelGone, match="removed"):
            await session.wait_for(lambda state: False)


async def test_a_channel_that_goes_while_it_is_opened_is_never_handed_out(host: FakeHost, client: Client):
    subscription = client.subscribe(SESSION)
    opening = asyncio.create_task(subscription.__aenter__())
    await eventually(lambda: len(host.sent("subscribe")) == 1)
    host.notify("root/sessionRemoved", {"channel": ROOT_URI, "session": SESSION})

    with pytest.raises(ChannelGone):
        await opening


async def test_items_come_in_order():
    feed: BoundedQueue[int] = BoundedQueue()
    feed.push(1)
    feed.push(2)

    assert [await feed.take(), await feed.take()] == [1, 2]


async def test_a_full_feed_drops_everything_and_says_so_once():
    feed: BoundedQueue[int] = BoundedQueue(limit=2)
    for number in range(5):
        feed.push(number)

    with pytest.raises(Lagged):
        await feed.take()
    feed.push(9)
    assert await feed.take() == 9


async def test_a_waiting_consumer_is_woken_by_an_item_a_lag_and_an_end():
    feed: BoundedQueue[int] = BoundedQueue()
    for happen, expected in ((lambda: feed.push(1), None), (feed.lag, Lagged), (feed.end, StopAsyncIteration)):
        taking = asyncio.create_task(_outcome(feed))
        await asyncio.sleep(0)
        happen()
        async with asyncio.timeout(BOUND):
            assert await taking is expected


async def _outcome(feed: BoundedQueue[int]) -> type[BaseException] | None:
    try:
        await feed.take()
    except (Lagged, StopAsyncIteration) as error:
        return type(error)
    return None


async def test_what_waits_is_delivered_before_the_end():
    feed: BoundedQueue[int] = BoundedQueue()
    feed.push(1)
    feed.end(ConnectionError("over"))
    feed.push(2)

    assert await feed.take() == 1
    for _ in range(2):
        with pytest.raises(ConnectionError, match="over"):
            await feed.take()


async def test_the_first_end_counts():
    feed: BoundedQueue[int] = BoundedQueue()
    feed.end(ConnectionError("first"))
    feed.end()

    with pytest.raises(ConnectionError):
        await feed.take()
