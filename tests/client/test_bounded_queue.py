"""The feed: bounded, and honest about what it dropped."""

from __future__ import annotations

import asyncio

import pytest

from ahpkit.client.bounded_queue import BoundedQueue, Lagged
from support.waiting import BOUND


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
